"""What the kernels of a CUDA program take of a GPU, as a table: `uopc-run --show resources`.

resources on sm_90
  kernel  grid    block  registers  spills  shared  occupancy
  r_64    16x1x1    128         18       0       0        100%
"""

from __future__ import annotations

from collections.abc import Mapping

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import LaunchConfig, Plan, Program, Size
from uopc.lowering.plan_text import aligned
from uopc.runtime.cuda_resources import (
    KernelResources,
    Target,
    assembled_resources,
    find_target,
    occupancy,
)
from uopc.runtime.debug import printable

HEAD = ("kernel", "grid", "block", "registers", "spills", "shared", "occupancy")


def resources_table(
    program: Program, plan: Plan, architecture: str, sizes: Mapping[str, int]
) -> str:
    """The table of a plan's kernels at some sizes. Bytes are of a block, registers of a thread.

    Without nvcc, which reports registers and spills, those columns say so. Raises UopcError
    [compile-failed] and [unknown-target].
    """
    target = find_target(architecture)
    note = ""
    assembled: dict[str, KernelResources] = {}
    try:
        assembled = {r.kernel: r for r in assembled_resources(program.source, target)}
    except UopcError as error:
        if error.kind != "no-nvcc":
            raise
        note = f"\n  {error.message}"
    rows: list[tuple[str, ...]] = [HEAD]
    for symbol in dict.fromkeys(call.symbol for call in plan.kernels):
        config = program.launches[symbol]
        found = assembled.get(program.names.get(symbol, symbol))
        taken = _taken(config, found, target, sizes)
        rows.append((printable(symbol), *_launch(config, sizes), *taken))
    lines = [f"resources on {target.architecture}"]
    lines += aligned(rows, right=range(2, len(HEAD))) if len(rows) > 1 else ["  no kernels"]
    return "\n".join(lines) + note


def _value(size: Size, sizes: Mapping[str, int]) -> int:
    return size if isinstance(size, int) else int(size.evaluate_named(dict(sizes)))


def _threads(config: LaunchConfig, sizes: Mapping[str, int]) -> int:
    x, y, z = (_value(n, sizes) for n in config.block)
    return x * y * z


def _launch(config: LaunchConfig, sizes: Mapping[str, int]) -> tuple[str, str]:
    grid = "x".join(str(_value(n, sizes)) for n in config.grid)
    return grid, str(_threads(config, sizes))


def _taken(
    config: LaunchConfig, found: KernelResources | None, target: Target, sizes: Mapping[str, int]
) -> tuple[str, str, str, str]:
    shared = config.static_shared_bytes + _value(config.shared_bytes, sizes)
    registers = 0 if found is None else found.registers
    _, part = occupancy(target, registers, _threads(config, sizes), shared)
    if found is None:
        return "?", "?", str(shared), f"at most {part:.0%}"
    spills = found.spill_stores + found.spill_loads
    return str(found.registers), str(spills), str(shared), f"{part:.0%}"
