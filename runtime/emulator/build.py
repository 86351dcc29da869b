"""Compile the emulator once and keep it in the cache, by its sources and the compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.runtime.cache import FORMAT_VERSION, Cache, no_folder
from uopc.runtime.compiler import COMPILE_SECONDS, STDERR_LINES, digest, machine, processor

COMPILER_NAMES = ("g++", "c++", "clang++")
FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    # A fault leaves its fiber by a switch of stacks, which fortified code takes for an attack.
    "-U_FORTIFY_SOURCE",
    "-fno-stack-protector",
)

_SOURCES = Path(__file__).parent


def emulator_library(store: Cache) -> Path:
    """The emulator as a shared object, compiled unless the cache has it.

    Raises `no-compiler` and `compile-failed`.
    """
    sources = {path.name: path.read_bytes() for path in sorted(_SOURCES.glob("*.cpp"))}
    headers = {path.name: path.read_bytes() for path in sorted(_SOURCES.glob("*.h"))}
    compiler = _compiler()
    native = "-mcpu=native" if os.uname().machine == "aarch64" else "-march=native"
    command = (
        compiler,
        *FLAGS,
        f"-DUOPC_HOST_COMPILER={_c_string(compiler)}",
        f"-DUOPC_NATIVE={_c_string(native)}",
        "emulator.cpp",
        "-o",
        "emulator.so",
        "-ldl",
    )
    stamp = Path(compiler).stat()
    texts = [name + "\n" + text.decode() for name, text in {**sources, **headers}.items()]
    key = digest(
        "cuda emulator",
        str(FORMAT_VERSION),
        machine(),
        processor(),
        f"{stamp.st_mtime_ns} {stamp.st_size}",
        *command,
        *texts,
    )
    if (found := store.find(key, ".so")) is not None:
        return found
    with store.building(key) as folder:
        if (found := store.find(key, ".so")) is not None:
            return found
        for name, text in {**sources, **headers}.items():
            (folder / name).write_bytes(text)
        return store.write(key, ".so", _built(command, folder))


def _compiler() -> str:
    for name in COMPILER_NAMES:
        if (path := shutil.which(name)) is not None:
            return str(Path(path).absolute())
    raise UopcError(
        "no-compiler",
        f"the CUDA emulator needs a C++ compiler: tried {', '.join(COMPILER_NAMES)} on PATH",
        hint="install one, such as g++",
    )


def _c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _built(command: tuple[str, ...], folder: Path) -> bytes:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_SECONDS,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0:
            return (folder / "emulator.so").read_bytes()
    except subprocess.TimeoutExpired:
        output = f"no end after {COMPILE_SECONDS} seconds"
    except OSError as error:
        raise no_folder(error) from error
    raise UopcError(
        "compile-failed",
        f"{command[0]} did not compile the CUDA emulator",
        hint="\n    ".join(["the compiler said:", *output.splitlines()[:STDERR_LINES]]),
    )
