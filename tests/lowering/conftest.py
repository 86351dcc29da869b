"""Compile what the emitter printed, load it, and hand it numpy arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {
    "gcc": ["gcc", "-x", "c", "-std=c11", "-Wmissing-prototypes"],
    "clang": ["clang", "-x", "c", "-std=c11", "-Wmissing-prototypes"],
    "g++": ["g++", "-x", "c++", "-std=c++17"],
    "clang++": ["clang++", "-x", "c++", "-std=c++17"],
}


class Library:
    """A compiled file; `library(name, *arguments)` calls a function of it."""

    def __init__(self, path: Path) -> None:
        self._dll = ctypes.CDLL(str(path))

    def __call__(self, name: str, *arguments: Any, restype: Any = None) -> Any:
        function = self._dll[name]
        function.restype = restype
        return function(*[_argument(a) for a in arguments])


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_int64(value) if isinstance(value, int) else value


Build = Callable[..., Library]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """`build(text, "gcc", "-O2")`: compile strictly, warnings are errors, and load."""
    count = 0

    def compile_and_load(text: str, compiler: str = "gcc", *flags: str) -> Library:
        nonlocal count
        if shutil.which(LANGUAGES[compiler][0]) is None:
            pytest.skip(f"no {compiler} on this machine")
        count += 1
        source = tmp_path / f"t{count}.c"
        target = tmp_path / f"t{count}.so"
        source.write_text(text)
        command = [*LANGUAGES[compiler], *WARNINGS, *flags, "-shared", "-fPIC"]
        done = subprocess.run(
            [*command, "-o", str(target), str(source), "-lm"], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"
        return Library(target)

    return compile_and_load
