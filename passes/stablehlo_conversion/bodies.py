"""What the body of a reduction, a window or a scatter computes, if utensor has a name for it."""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from uopc.dialects.numbers import known_element, scalar, scalar_value
from uopc.dialects.tensor_elementwise import tensor_of
from uopc.passes.fold import identity
from uopc.passes.stablehlo_conversion.builder import number_of

KINDS = {
    # op: the kind for numbers, for truth values
    "stablehlo.add": ("add", "or"),
    "stablehlo.multiply": ("mul", "and"),
    "stablehlo.maximum": ("max", "or"),
    "stablehlo.minimum": ("min", "and"),
    "stablehlo.and": ("and", "and"),
    "stablehlo.or": ("or", "or"),
    "stablehlo.xor": ("xor", "xor"),
}


def body_kinds(block: Block) -> list[str] | None:
    """How a body of arguments a0, a1, …, b0, b1, … combines each pair, or None if it does not.

    A kind of reduction for `return op(a, b)` in either order, `set` for `return b`, `keep` for
    `return a`.
    """
    count = len(block.args) // 2
    last = block.last_op
    if last is None or len(last.operands) != count:
        return None
    kinds = [_kind(block, k, value) for k, value in enumerate(last.operands)]
    return None if None in kinds else [kind for kind in kinds if kind is not None]


def _kind(block: Block, position: int, value: SSAValue) -> str | None:
    first, second = block.args[position], block.args[len(block.args) // 2 + position]
    if isinstance(value, BlockArgument):
        return "set" if value is second else "keep" if value is first else None
    if not isinstance(value, OpResult) or value.op.name not in KINDS:
        return None
    op: Operation = value.op
    if {id(each) for each in op.operands} != {id(first), id(second)} or value.type != first.type:
        return None
    is_bool = known_element(tensor_of(value).element_type).is_bool
    return KINDS[op.name][is_bool]


def is_identity(kind: str, value: SSAValue) -> bool:
    """Whether a value is known, and combining it by a kind changes nothing."""
    number = number_of(value)
    if number is None:
        return False
    element = tensor_of(value).element_type
    row = known_element(element)
    got = scalar_value(number)
    if kind == "xor" or (kind == "or" and not row.is_float):
        return got == 0
    if kind == "and":
        return number == (scalar(1, element) if row.is_bool else scalar(-1, element))
    return got == scalar_value(identity(kind, element))
