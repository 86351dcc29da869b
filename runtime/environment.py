"""The environment variables that uopc reads, all of them, in one table.

Every other module asks here; nothing else looks a `UOPC_` name up. The table in the README is the
same table (`VARIABLES`). Values are read at the time of asking, so a test or a notebook may change
them between two compilations.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uopc.dialects.errors import UopcError

MAX_DEBUG_LEVEL = 4
CUDA_CHOICES = ("auto", "driver", "emulator")


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, its default in words, and what it does."""

    name: str
    default: str
    meaning: str


CC = Variable(
    "UOPC_CC",
    "the first of cc, gcc, clang on PATH",
    "the C compiler: a name, a path (spaces are fine), or a command such as `ccache gcc`",
)
CACHE = Variable(
    "UOPC_CACHE",
    "$XDG_CACHE_HOME/uopc, else ~/.cache/uopc",
    "the folder that keeps compiled code between runs",
)
DEBUG = Variable(
    "UOPC_DEBUG",
    "0",
    "1 a line a run; 2 a line a kernel; 3 a second, warm run of each kernel; 4 the C as well",
)
THREADS = Variable(
    "UOPC_THREADS",
    "the processors that this process may use",
    "how many threads a program may run on",
)
RECYCLE = Variable(
    "UOPC_RECYCLE",
    "256",
    "MiB of dropped results that are kept as memory for new ones; 0 keeps none",
)
CUDA = Variable(
    "UOPC_CUDA",
    "auto",
    "where CUDA programs run: driver, a GPU; emulator, none needed; auto, a GPU if there is one",
)

TARGET_CPU = Variable(
    "UOPC_TARGET_CPU",
    "native",
    "the CPU family that kernels are shaped and compiled for: native, this machine, or one by name",
)

BEAM = Variable(
    "UOPC_BEAM",
    "0",
    "search for fast schedules by measuring, with so many of the best varied in each round; 0 not",
)

VARIABLES: tuple[Variable, ...] = (CC, CACHE, DEBUG, THREADS, TARGET_CPU, BEAM, RECYCLE, CUDA)


def compiler_command() -> str:
    """What UOPC_CC holds, or the empty string."""
    return os.environ.get(CC.name, "").strip()


def cache_directory() -> Path | None:
    """Where compiled code is kept; None where no folder of the user can be named."""
    if chosen := os.environ.get(CACHE.name, ""):
        return Path(os.path.expanduser(chosen)).absolute()  # noqa: PTH111 (never raises)
    # The XDG specification: a relative path there is to be ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "uopc"
    try:
        return Path.home() / ".cache" / "uopc"
    except RuntimeError:
        return None


def debug_level() -> int:
    """UOPC_DEBUG, 0 when it is unset. Raises `bad-environment` unless it is 0 to 4."""
    return _integer(DEBUG, 0, MAX_DEBUG_LEVEL, 0)


def shows_c() -> bool:
    """Whether UOPC_DEBUG is the level that shows the C; False where it is no level at all."""
    return os.environ.get(DEBUG.name, "").strip() == str(MAX_DEBUG_LEVEL)


def thread_count() -> int:
    """UOPC_THREADS, else the processors of this process's affinity mask.

    Raises `bad-environment` unless the variable is a number from 1 to 4096.
    """
    return _integer(THREADS, 1, 4096, available_processors())


def recycled_bytes() -> int:
    """UOPC_RECYCLE in bytes, 256 MiB when it is unset.

    Raises `bad-environment` unless the variable is a number from 0 to 999999.
    """
    return _integer(RECYCLE, 0, 999_999, 256) << 20


def target_cpu() -> str:
    """The CPU family that UOPC_TARGET_CPU names, else `native`."""
    return os.environ.get(TARGET_CPU.name, "").strip() or "native"


def beam() -> int:
    """UOPC_BEAM, 0 when it is unset. Raises `bad-environment` unless it is 0 to 64."""
    return _integer(BEAM, 0, 64, 0)


_STORE: Any = getattr(os.environ, "_data", None)
"""What os.environ reads, which takes a tenth of the time; None where Python has it otherwise."""
_SETTINGS = tuple(
    each.name if _STORE is None else os.environ.encodekey(each.name) for each in (TARGET_CPU, BEAM)
)


def compile_settings() -> tuple[object, ...]:
    """The variables that decide, beside a program, what it is compiled to: to be compared, not
    read. Asked at every call of a jitted function."""
    get = (os.environ if _STORE is None else _STORE).get
    return get(_SETTINGS[0]), get(_SETTINGS[1])


def available_processors() -> int:
    """How many processors this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def cuda_choice() -> str:
    """UOPC_CUDA: `auto`, `driver` or `emulator`. Raises `bad-environment` for anything else."""
    chosen = os.environ.get(CUDA.name, "").strip() or CUDA_CHOICES[0]
    if chosen in CUDA_CHOICES:
        return chosen
    raise UopcError(
        "bad-environment",
        f"{CUDA.name} is {chosen[:40]!r}; expected {', '.join(CUDA_CHOICES)}",
        hint=f"{CUDA.name} means: {CUDA.meaning}",
    )


def cuda_toolkit_folders() -> list[Path]:
    """Where a CUDA toolkit may lie: CUDA_HOME, CUDA_PATH, then the usual folder."""
    named = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    return [Path(folder) for folder in [*named, "/usr/local/cuda"] if folder]


def _integer(variable: Variable, lower: int, upper: int, default: int) -> int:
    text = os.environ.get(variable.name, "").strip()
    if not text:
        return default
    # isdecimal, not int(): int() also takes `1_0`, `+1` and text of any length.
    if text.isascii() and text.isdecimal() and len(text) <= 6 and lower <= int(text) <= upper:
        return int(text)
    raise UopcError(
        "bad-environment",
        f"{variable.name} is {text[:40]!r}; expected a number from {lower} to {upper}",
        hint=f"{variable.name} means: {variable.meaning}",
    )
