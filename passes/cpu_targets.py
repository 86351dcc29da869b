"""What schedules and the emitter need to know of a CPU family: a file each, passes/targets/*.toml.

A family is all CPUs that have its features. `native` is the family of the highest rank that this
machine is of, with the cache sizes that the machine itself tells. Vectors are never wider than a
target's: compilers split wider ones, and the pieces spill.
"""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from uopc.dialects.errors import UopcError

FOLDER = Path(__file__).parent / "targets"
_CPU0 = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class FusedMultiplyAdd:
    """How C spells a * b + c, rounded once, for vectors of some width."""

    bytes: int
    condition: str
    """Where the compiler has it, as a condition of its preprocessor."""
    f32: str
    f64: str


@dataclass(frozen=True)
class Bf16Dot:
    """How C adds the dot products of pairs of bf16 to a vector of f32 of some width."""

    bytes: int
    condition: str
    """Where the compiler has it, as a condition of its preprocessor."""
    statement: str
    """C that adds to `sum` what `a` and `b` give."""


@dataclass(frozen=True)
class CpuTarget:
    """One CPU family."""

    name: str
    vector_bytes: int
    """Width of a vector register; 0 for a target that has no vectors for us."""
    registers: int
    """How many vector registers there are."""
    features: frozenset[str]
    """What a machine of the family has, as /proc/cpuinfo spells it."""
    machines: frozenset[str]
    """The architectures that it may be, as `uname -m` spells them; none for all."""
    rank: int
    level1_bytes: int
    level2_bytes: int
    """Cache sizes: of level 1 for data, and of level 2, both of one core."""
    compiler_flags: tuple[str, ...]
    """What gcc and clang are told so that code is for the whole family."""
    fused: tuple[FusedMultiplyAdd, ...]
    bf16_dots: tuple[Bf16Dot, ...]

    @property
    def fused_multiply_add(self) -> bool:
        """Whether a fused multiply-add of a whole vector is one instruction."""
        return any(each.bytes == self.vector_bytes for each in self.fused)

    @property
    def bf16_dot(self) -> bool:
        """Whether the dot products of a whole vector of pairs of bf16 are one instruction."""
        return any(each.bytes == self.vector_bytes for each in self.bf16_dots)

    @property
    def product_rows(self) -> int:
        """Rows of a matrix product's register tile; with `product_vectors` it fills registers."""
        return 8 if self.registers >= 32 else 6

    @property
    def product_vectors(self) -> int:
        """Vectors across a matrix product's register tile."""
        return 3 if self.registers >= 32 else 2

    def misses(self) -> str:
        """What this machine lacks to run code for the family, in words; empty if nothing."""
        machine = platform.machine()
        if self.machines and machine not in self.machines:
            return f"its architecture is {machine}, not {' or '.join(sorted(self.machines))}"
        missing = sorted(self.features - _machine_features())
        return f"it has no {', '.join(missing)}" if missing else ""


def cpu_target(name: str) -> CpuTarget:
    """The target of a name, or for `native` of this machine. Raises UopcError [unknown-target]."""
    if name == "native":
        return native_target()
    found = cpu_targets().get(name)
    if found is not None:
        return found
    known = ", ".join(cpu_targets())
    raise UopcError(
        "unknown-target", f"there is no CPU target '{name}'", hint=f"expected native or {known}"
    )


@cache
def cpu_targets() -> Mapping[str, CpuTarget]:
    """All targets by name, the most able first. Raises UopcError [bad-target-file]."""
    rows = [read_target(path) for path in FOLDER.glob("*.toml")]
    rows.sort(key=lambda row: (-row.rank, row.name))
    return {row.name: row for row in rows}


@lru_cache(maxsize=1)
def native_target() -> CpuTarget:
    """The most able target that this machine is of, with the machine's own cache sizes."""
    row = next(row for row in cpu_targets().values() if not row.misses())
    return replace(
        row,
        level1_bytes=_cache_bytes(1) or row.level1_bytes,
        level2_bytes=_cache_bytes(2) or row.level2_bytes,
    )


def _machine_features() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    if platform.machine() in ("arm64", "aarch64"):  # macOS has no /proc, every such CPU has NEON
        return frozenset({"asimd"})
    return frozenset({"sse2"}) if platform.machine() in ("x86_64", "AMD64") else frozenset()


def _cache_bytes(level: int) -> int | None:
    """The size of this machine's data cache of a level; None where the system does not say."""
    for folder in sorted(_CPU0.glob("index*")):
        try:
            facts = [(folder / name).read_text().strip() for name in ("level", "type", "size")]
        except OSError:
            continue
        size = facts[2].removesuffix("K")
        if facts[0] == str(level) and facts[1] != "Instruction" and size.isdecimal():
            return int(size) << 10 or None
    return None


# The files.

_SCHEMA: dict[str, object] = {
    "name": str,
    "machines": [str],
    "features": [str],
    "rank": int,
    "vectors": {"bytes": int, "registers": int},
    "caches": {"level1_bytes": int, "level2_bytes": int},
    "compiler": {"flags": [str]},
    "fused_multiply_add": [{"bytes": int, "condition": str, "f32": str, "f64": str}],
    "bf16_dot": [{"bytes": int, "condition": str, "statement": str}],
}
_OPTIONAL = ("fused_multiply_add", "bf16_dot")


def read_target(path: Path) -> CpuTarget:
    """A target from its file. Raises UopcError [bad-target-file] for what does not fit."""
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(path, str(error)) from error
    _check(path, "the file", data, _SCHEMA)
    vector_bytes: int = data["vectors"]["bytes"]
    if vector_bytes not in (0, 8, 16, 32, 64, 128, 256):
        raise _bad(path, f"vectors.bytes is {vector_bytes}; expected 0 or a power of two up to 256")
    if data["name"] != path.stem:
        raise _bad(path, f"name is '{data['name']}'; expected the file's own, '{path.stem}'")
    return CpuTarget(
        name=data["name"],
        vector_bytes=vector_bytes,
        registers=data["vectors"]["registers"],
        features=frozenset(data["features"]),
        machines=frozenset(data["machines"]),
        rank=data["rank"],
        level1_bytes=data["caches"]["level1_bytes"],
        level2_bytes=data["caches"]["level2_bytes"],
        compiler_flags=tuple(data["compiler"]["flags"]),
        fused=tuple(FusedMultiplyAdd(**each) for each in data.get("fused_multiply_add", ())),
        bf16_dots=tuple(Bf16Dot(**each) for each in data.get("bf16_dot", ())),
    )


def _check(path: Path, what: str, value: object, schema: object) -> None:
    """Hold a value against a schema: a type, a list of one, or a table of them."""
    if isinstance(schema, dict):
        keys = cast("dict[str, object]", schema)
        if not isinstance(value, dict):
            raise _bad(path, f"{what} is no table")
        table = cast("dict[str, object]", value)
        for key in table.keys() - keys.keys():
            raise _bad(path, f"{what} has '{key}'; expected {', '.join(keys)}")
        for key, inner in keys.items():
            if key in table:
                _check(path, key, table[key], inner)
            elif key not in _OPTIONAL:
                raise _bad(path, f"{what} has no '{key}'")
    elif isinstance(schema, list):
        (inner,) = cast("list[object]", schema)
        if not isinstance(value, list):
            raise _bad(path, f"{what} is no list")
        for each in cast("list[object]", value):
            _check(path, f"an entry of {what}", each, inner)
    elif schema is str:
        if not isinstance(value, str):
            raise _bad(path, f"{what} is {value!r}; expected a text")
    elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _bad(path, f"{what} is {value!r}; expected a number from 0 on")


def _bad(path: Path, message: str) -> UopcError:
    return UopcError(
        "bad-target-file",
        f"{path}: {message}",
        hint="passes/targets/avx2.toml shows the form",
    )
