"""What this machine reaches at most, by ceilings.c: compiled here, run once."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.runtime.cache import open_cache
from uopc.runtime.compiler import find_compiler

SOURCE = Path(__file__).with_name("ceilings.c")


@dataclass(frozen=True)
class Ceilings:
    """GFLOP/s of fused multiply-adds on f32, and GB/s read from memory and from a core's cache."""

    gflops: float
    memory: float
    cache: float


def measured_ceilings(threads: int, seconds: float, mebibytes: int) -> Ceilings | str:
    """The ceilings, or in words why there are none."""
    try:
        compiler = find_compiler(open_cache())
    except UopcError as error:
        return error.message
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "ceilings")
        flags = ["-O3", "-march=native", "-pthread", "-o", program, str(SOURCE)]
        command = [str(threads), str(seconds), str(mebibytes)]
        try:
            subprocess.run([*compiler.command, *flags], check=True, capture_output=True, text=True)
            done = subprocess.run([program, *command], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            output = getattr(error, "stderr", "") or str(error)
            return f"{SOURCE.name} did not run: {output.splitlines()[0]}"
    return Ceilings(**json.loads(done.stdout))


def higher(a: Ceilings | str, b: Ceilings | str) -> Ceilings | str:
    """The higher ones of two measurements: what disturbs can only lower them."""
    if isinstance(a, str) or isinstance(b, str):
        return b if isinstance(a, str) else a
    return Ceilings(max(a.gflops, b.gflops), max(a.memory, b.memory), max(a.cache, b.cache))
