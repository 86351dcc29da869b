"""What a schedule needs to know of a CPU family, as rows of a table.

A row is for all CPUs that have its features; `native` is the best row for this machine. Vectors
are never wider than a target's: compilers split wider ones, and the pieces spill.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from uopc.dialects.errors import UopcError


@dataclass(frozen=True)
class CpuTarget:
    """One CPU family."""

    name: str
    vector_bytes: int
    """Width of a vector register; 0 for a target that has no vectors for us."""
    registers: int
    """How many vector registers there are."""
    fused_multiply_add: bool
    """Whether a fused multiply-add is one instruction."""
    features: frozenset[str]
    """What the machine must have, as /proc/cpuinfo spells it."""
    level1_bytes: int = 32 << 10
    level2_bytes: int = 512 << 10
    """Cache sizes: of level 1 for data, and of level 2, both of one core."""

    @property
    def product_rows(self) -> int:
        """Rows of a matrix product's register tile; with `product_vectors` it fills registers."""
        return 8 if self.registers >= 32 else 6

    @property
    def product_vectors(self) -> int:
        """Vectors across a matrix product's register tile."""
        return 3 if self.registers >= 32 else 2


CPU_TARGETS: tuple[CpuTarget, ...] = (
    CpuTarget("avx512", 64, 32, True, frozenset({"avx512f", "fma"}), level2_bytes=1 << 20),
    CpuTarget("avx2", 32, 16, True, frozenset({"avx2", "fma"})),
    CpuTarget("sse2", 16, 16, False, frozenset({"sse2"})),
    CpuTarget("neon", 16, 32, True, frozenset({"asimd"})),
    CpuTarget("portable", 0, 0, False, frozenset()),
)


def cpu_target(name: str) -> CpuTarget:
    """The row of a name, or for `native` of this machine. Raises UopcError [unknown-target]."""
    if name == "native":
        return native_target()
    for row in CPU_TARGETS:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in CPU_TARGETS)
    raise UopcError(
        "unknown-target", f"there is no CPU target '{name}'", hint=f"expected native or {known}"
    )


@lru_cache(maxsize=1)
def native_target() -> CpuTarget:
    """The first row whose features this machine has."""
    features = _machine_features()
    return next(row for row in CPU_TARGETS if row.features <= features)


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
