"""Where an access or a step of a reduction happens: always, never, or under conditions.

A condition `E >= 0` without the vector range is one truth value. Along a vector of lanes v it is

    E = base - v      lanes 0 to base: a prefix mask
    E = base + s*v    any other step: lane by lane
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from uopc.dialects import loop
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, at_least
from uopc.passes.loop_scopes import Lanes, Scopes
from uopc.passes.scalar_builder import CMPI
from uopc.passes.vector_types import integers, vector_type


@dataclass
class Mask:
    """A conjunction of conditions, as far as they are not known to hold."""

    never: bool = False
    scalar: list[Expr] = field(default_factory=list[Expr])
    """Resolved expressions that must be at least 0, alike for all lanes."""
    lanes: list[tuple[Expr, int]] = field(default_factory=list[tuple[Expr, int]])
    """base + step * lane must be at least 0."""

    @property
    def always(self) -> bool:
        return not (self.never or self.scalar or self.lanes)


def mask_of(
    scopes: Scopes, conditions: Sequence[Expr], lanes: Lanes, along: loop.RangeOp | None
) -> Mask:
    """The mask that some conditions are for one copy of the code."""
    mask = Mask()
    for condition in conditions:
        expr = scopes.resolved(condition, lanes)
        low, high = expr.bounds
        if low >= 0 or expr in scopes.assumed or at_least(expr, 0) is True:
            continue
        if high < 0:
            return Mask(never=True)
        base, step = scopes.along(expr, along)
        if step == 0:
            mask.scalar.append(base)
        else:
            if step is None:
                raise UopcError(
                    "no-linear-form",
                    f"the condition {expr} >= 0 is uneven along a vector",
                    hint="expected a condition that grows alike from lane to lane",
                )
            mask.lanes.append((base, step))
    return mask


def lane_mask(scopes: Scopes, mask: Mask, width: int) -> SSAValue | None:
    """The vector of truth values of a mask's lane conditions; None if it has none."""
    result: SSAValue | None = None
    for base, step in mask.lanes:
        made = _one_lane_mask(scopes, base, step, width)
        if result is None:
            result = made
        else:
            scope = scopes.scope_of(scopes.dag.free_in([base for base, _ in mask.lanes]))
            result = scope.builder.op(arith.AndIOp, result, made, result=made.type, properties={})
    return result


def _one_lane_mask(scopes: Scopes, base: Expr, step: int, width: int) -> SSAValue:
    key = ("lanes", base, step, width)
    found = scopes.find(key)
    if found is not None:
        return found
    scope = scopes.scope_of(scopes.dag.free_in([base]))
    b = scope.builder
    type_ = vector_type(i1, width)
    if step == -1:
        count = scopes.index(base + 1)
        made = b.append(vector.CreateMaskOp.create(operands=[count], result_types=[type_]))
    else:
        # base + step * lane >= 0, as step * lane >= -base; most values have lanes of 32 bits too.
        numbers = [*base.bounds, step * (width - 1)]
        narrow = all(abs(number) < 1 << 30 for number in numbers)
        element = i32 if narrow else i64
        wide = vector_type(element, width)
        number = b.op(arith.IndexCastOp, scopes.index(-base), result=element, properties={})
        least = b.append(vector.BroadcastOp.create(operands=[number], result_types=[wide]))
        steps = integers(wide, (step * k for k in range(width)))
        lanes = scopes.root.builder.attribute_constant(steps, wide)
        properties: dict[str, Attribute] = {"predicate": CMPI["sge"]}
        made = b.op(arith.CmpiOp, lanes, least, result=type_, properties=properties)
    scope.values[key] = made
    return made


def guards_of(
    scopes: Scopes, free: frozenset[loop.RangeOp], visible: frozenset[loop.RangeOp]
) -> list[Expr]:
    """The kernel's guards that concern some ranges and whose ranges all have values."""
    found: list[Expr] = []
    for guard, ranges in scopes.dag.guard_ranges:
        if ranges & free and ranges <= visible:
            found.append(guard)
    return found
