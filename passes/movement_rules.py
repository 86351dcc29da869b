"""How canonicalize simplifies movement ops, reductions and the other ops that know shapes.

The tables at the end list the rules, each under the equation that its function's docstring
states. Equations hold for symbolic sizes too: where a rule needs a fact about sizes that is not
proved for all values of the symbols, it leaves the op alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import ElementType
from uopc.dialects.index_expr import as_expr, at_least
from uopc.dialects.numbers import dense_array, known_element, scalar
from uopc.dialects.sizes import (
    Size,
    SizesAttr,
    element_count,
    size,
    size_upper,
    sizes_of,
    tensor_type,
)
from uopc.dialects.tensor import (
    ArgreduceOp,
    ConstantOp,
    GatherOp,
    IotaOp,
    ReduceOp,
    ScatterOp,
    StageOp,
)
from uopc.dialects.tensor_elementwise import AddOp, BitcastOp, CastOp, tensor_of
from uopc.dialects.tensor_movement import (
    ExpandOp,
    FlipOp,
    Ints,
    PadOp,
    PermuteOp,
    ReshapeOp,
    ShrinkOp,
    int_values,
    ints,
)
from uopc.passes.fold import fold_reduction, identity
from uopc.passes.rewrite_rows import Builder, Rule, defining, splat_of
from uopc.passes.tensor_rules import merge_bitcasts, merge_casts


def _sizes(value: SSAValue) -> tuple[Size, ...]:
    return sizes_of(tensor_of(value))


def _axes(op: Operation, name: str) -> tuple[int, ...]:
    return int_values(cast(Ints, op.properties[name]))


def _amounts(op: Operation, name: str) -> tuple[Size, ...]:
    return cast(SizesAttr, op.properties[name]).data


def _row(value: SSAValue) -> ElementType:
    return known_element(tensor_of(value).element_type)


def _add(a: Size, b: Size) -> Size:
    return size(as_expr(a) + b)


# Any movement.


def keep_type(builder: Builder, op: Operation) -> SSAValue | None:
    """f(x : T) : T = x, for reshape and expand"""
    value = op.operands[0]
    return value if value.type == op.results[0].type else None


def move_splat(builder: Builder, op: Operation) -> SSAValue | None:
    """f(splat v) = splat v"""
    number = splat_of(op.operands[0])
    return None if number is None else builder.constant(number, tensor_of(op.results[0]))


def merge_same(builder: Builder, op: Operation) -> SSAValue | None:
    """f(f(x)) = f(x), for reshape and expand, whose result type says all"""
    inner = defining(op.operands[0], type(op))
    if inner is None:
        return None
    return builder.emit(type(op), [inner.operands[0]], op.results[0].type)


# permute


def drop_permute(builder: Builder, op: Operation) -> SSAValue | None:
    """permute(x, [0, 1, …]) = x; permute that moves only axes of size 1 = reshape(x)"""
    order = _axes(op, "order")
    value = op.operands[0]
    if order == tuple(range(len(order))):
        return value
    sizes = _sizes(value)
    long = [axis for axis in order if sizes[axis] != 1]
    if long == sorted(long):
        return builder.emit(ReshapeOp, [value], op.results[0].type)
    return None


def merge_permutes(builder: Builder, op: Operation) -> SSAValue | None:
    """permute(permute(x, a), b) = permute(x, a[b])"""
    inner = defining(op.operands[0], PermuteOp)
    if inner is None:
        return None
    first = _axes(inner, "order")
    order = ints([first[axis] for axis in _axes(op, "order")])
    return builder.emit(PermuteOp, [inner.operands[0]], op.results[0].type, {"order": order})


def permute_reduced(builder: Builder, op: Operation) -> SSAValue | None:
    """permute(reduce(x, axes), order) = reduce(permute(x), axes behind the kept ones), where the
    last axis moves and nobody else reads the reduction: it is written as its reader wants it"""
    inner = defining(op.operands[0], ReduceOp)
    order = _axes(op, "order")
    if inner is None or order[-1] == len(order) - 1 or op.operands[0].has_more_than_one_use():
        return None
    reduced = _axes(inner, "axes")
    value = inner.operands[0]
    kept = [axis for axis in range(len(_sizes(value))) if axis not in reduced]
    whole = [*(kept[axis] for axis in order), *sorted(reduced)]
    sizes = _sizes(value)
    shape = tensor_type(tensor_of(value).element_type, tuple(sizes[axis] for axis in whole))
    moved = builder.emit(PermuteOp, [value], shape, {"order": ints(whole)})
    axes = range(len(kept), len(whole))
    properties = {"kind": inner.properties["kind"], "axes": ints(axes)}
    return builder.emit(ReduceOp, [moved], op.results[0].type, properties)


# flip


def tidy_flip(builder: Builder, op: Operation) -> SSAValue | None:
    """flip(x, []) = x; axes of size 1 drop out, the others are sorted"""
    axes = _axes(op, "axes")
    value = op.operands[0]
    sizes = _sizes(value)
    needed = sorted(axis for axis in axes if sizes[axis] != 1)
    if not needed:
        return value
    if tuple(needed) != axes:
        return builder.emit(FlipOp, [value], value.type, {"axes": ints(needed)})
    return None


def merge_flips(builder: Builder, op: Operation) -> SSAValue | None:
    """flip(flip(x, a), b) = flip(x, a xor b)"""
    inner = defining(op.operands[0], FlipOp)
    if inner is None:
        return None
    axes = sorted(set(_axes(inner, "axes")) ^ set(_axes(op, "axes")))
    value = inner.operands[0]
    return builder.emit(FlipOp, [value], value.type, {"axes": ints(axes)}) if axes else value


# shrink and pad


def drop_shrink(builder: Builder, op: Operation) -> SSAValue | None:
    """shrink(x, 0 to size, step 1) = x"""
    value = op.operands[0]
    whole = (
        value.type == op.results[0].type
        and not any(_amounts(op, "begins"))
        and _amounts(op, "ends") == _sizes(value)
    )
    return value if whole else None


def _shrink(
    builder: Builder,
    value: SSAValue,
    window: Sequence[tuple[Size, Size, int]],
    result: Attribute,
) -> SSAValue | None:
    """shrink(value) by (begin, end, step) an axis, if that is proved to be in range and right."""
    begins, ends, steps = (
        [w[0] for w in window],
        [w[1] for w in window],
        [w[2] for w in window],
    )
    try:
        proved = ShrinkOp.shrunk(tensor_of(value), begins, ends, steps) == result
    except VerifyException:  # not within the operand for every value of the symbols
        proved = False
    if not proved:
        return None
    properties: dict[str, Attribute] = {
        "begins": SizesAttr(tuple(begins)),
        "ends": SizesAttr(tuple(ends)),
        "steps": ints(steps),
    }
    return builder.emit(ShrinkOp, [value], result, properties)


def _window(op: Operation) -> list[tuple[Size, Size, int]]:
    return list(zip(_amounts(op, "begins"), _amounts(op, "ends"), _axes(op, "steps"), strict=True))


def merge_shrinks(builder: Builder, op: Operation) -> SSAValue | None:
    """shrink(shrink(x, b, e, s), c, d, t) = shrink(x, b + c*s, b + (d - 1)*s + 1, s*t)"""
    inner = defining(op.operands[0], ShrinkOp)
    if inner is None:
        return None
    window = [
        (_add(b, size(as_expr(c) * s)), _add(b, size((as_expr(d) - 1) * s + 1)), s * t)
        for (b, _, s), (c, d, t) in zip(_window(inner), _window(op), strict=True)
    ]
    return _shrink(builder, inner.operands[0], window, op.results[0].type)


def shrink_pad(builder: Builder, op: Operation) -> SSAValue | None:
    """shrink(pad(x, l, h), b, e, s) = shrink(x, b - l, e - l, s), where x covers b to e"""
    inner = defining(op.operands[0], PadOp)
    if inner is None:
        return None
    window = [
        (size(as_expr(b) - low), size(as_expr(e) - low), s)
        for (b, e, s), low in zip(_window(op), _amounts(inner, "low"), strict=True)
    ]
    return _shrink(builder, inner.operands[0], window, op.results[0].type)


def drop_pad(builder: Builder, op: Operation) -> SSAValue | None:
    """pad(x, 0, 0) = x"""
    none = not any(_amounts(op, "low")) and not any(_amounts(op, "high"))
    return op.operands[0] if none else None


def pad_constant(builder: Builder, op: Operation) -> SSAValue | None:
    """pad(splat v, value v) = splat v; pad(x of no elements, value v) = splat v"""
    number = op.properties["value"]
    value = op.operands[0]
    if splat_of(value) == number or any(size_upper(n) == 0 for n in _sizes(value)):
        return builder.constant(cast(PadOp, op).value, tensor_of(op.results[0]))
    return None


def merge_pads(builder: Builder, op: Operation) -> SSAValue | None:
    """pad(pad(x, a, b, value v), c, d, value v) = pad(x, a + c, b + d, value v)"""
    inner = defining(op.operands[0], PadOp)
    if inner is None or inner.properties["value"] != op.properties["value"]:
        return None
    low, high = (
        SizesAttr(tuple(map(_add, _amounts(inner, side), _amounts(op, side))))
        for side in ("low", "high")
    )
    properties = {"low": low, "high": high, "value": op.properties["value"]}
    return builder.emit(PadOp, [inner.operands[0]], op.results[0].type, properties)


# Reductions


def drop_reduce(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(KIND, x, axes []) = x; a sum of floats starts from 0, so there it is x + 0.0"""
    if _axes(op, "axes"):
        return None
    value = op.operands[0]
    if _kind(op) == "add" and _row(value).is_float:
        tensor = tensor_of(value)
        zero = builder.constant(scalar(0, tensor.element_type), tensor)
        return builder.emit(AddOp, [value, zero], tensor)
    return value


def reduce_nothing(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(KIND, x, axes with no elements) = splat of KIND's identity"""
    sizes = _sizes(op.operands[0])
    if not any(size_upper(sizes[axis]) == 0 for axis in _axes(op, "axes")):
        return None
    result = tensor_of(op.results[0])
    return builder.constant(identity(_kind(op), result.element_type), result)


def _kind(op: Operation) -> str:
    return cast(StringAttr, op.properties["kind"]).data


def reduce_splat(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(max, splat v) = splat v, reduce(add, splat v) = splat n*v of integers, and so on"""
    number = splat_of(op.operands[0])
    if number is None:
        return None
    sizes = _sizes(op.operands[0])
    count = element_count(sizes[axis] for axis in _axes(op, "axes"))
    if not at_least(as_expr(count), 1):
        return None
    folded = fold_reduction(_kind(op), number, count if isinstance(count, int) else None)
    return None if folded is None else builder.constant(folded, tensor_of(op.results[0]))


def _reduce(builder: Builder, op: Operation, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    properties = {"kind": op.properties["kind"], "axes": ints(axes)}
    return builder.emit(ReduceOp, [value], op.results[0].type, properties)


def reduce_single(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(x, axes of size 1) = reduce(reshape(x), axes []); they drop out among others too"""
    axes = _axes(op, "axes")
    value = op.operands[0]
    sizes = _sizes(value)
    single = {axis for axis in axes if sizes[axis] == 1}
    if not single:
        return None
    kept = [axis for axis in range(len(sizes)) if axis not in single]
    shape = tensor_type(tensor_of(value).element_type, tuple(sizes[axis] for axis in kept))
    reshaped = builder.emit(ReshapeOp, [value], shape)
    rest = [position for position, axis in enumerate(kept) if axis in axes]
    return _reduce(builder, op, reshaped, rest)


def sort_reduced(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(x, axes [1, 0]) = reduce(x, axes [0, 1])"""
    axes = _axes(op, "axes")
    ordered = sorted(axes)
    return None if ordered == list(axes) else _reduce(builder, op, op.operands[0], ordered)


def merge_reduces(builder: Builder, op: Operation) -> SSAValue | None:
    """reduce(KIND, reduce(KIND, x, a), b) = reduce(KIND, x, a and b), not for sums of floats"""
    inner = defining(op.operands[0], ReduceOp)
    if inner is None or inner.properties["kind"] != op.properties["kind"]:
        return None
    value = inner.operands[0]
    if _kind(op) in ("add", "mul") and _row(value).is_float:
        return None
    first = set(_axes(inner, "axes"))
    left = [axis for axis in range(len(_sizes(value))) if axis not in first]
    axes = sorted(first | {left[axis] for axis in _axes(op, "axes")})
    return _reduce(builder, op, value, axes)


def argreduce_first(builder: Builder, op: Operation) -> SSAValue | None:
    """argreduce(splat) = 0; argreduce(x, axis of size 1) = 0"""
    value = op.operands[0]
    axis = cast(ArgreduceOp, op).axis.value.data
    if splat_of(value) is None and _sizes(value)[axis] != 1:
        return None
    result = tensor_of(op.results[0])
    return builder.constant(scalar(0, result.element_type), result)


# The others


def merge_stages(builder: Builder, op: Operation) -> SSAValue | None:
    """stage(KIND, stage(KIND, x)) = stage(KIND, x)"""
    inner = defining(op.operands[0], StageOp)
    same = inner is not None and inner.properties["kind"] == op.properties["kind"]
    return op.operands[0] if same else None


def drop_detach(builder: Builder, op: Operation) -> SSAValue | None:
    """stage(detach, x) = x, unless the option keep-detach is set"""
    return op.operands[0] if _kind(op) == "detach" and not builder.keep_detach else None


def constant_splat(builder: Builder, op: Operation) -> SSAValue | None:
    """constant dense<[v, v, …]> = constant v"""
    value = cast(ConstantOp, op).value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    dense = cast("DenseIntOrFPElementsAttr", value)
    data = dense.data.data
    array = dense_array(dense)
    width = array.itemsize
    first = data[:width]
    if data[-width:] != first or data != first * (len(data) // width):
        return None
    result = tensor_of(op.results[0])
    return builder.constant(scalar(array.flat[0].item(), result.element_type), result)


def iota_single(builder: Builder, op: Operation) -> SSAValue | None:
    """iota(axis of size 1) = 0"""
    result = tensor_of(op.results[0])
    if sizes_of(result)[cast(IotaOp, op).axis.value.data] != 1:
        return None
    return builder.constant(scalar(0, result.element_type), result)


def scatter_nothing(builder: Builder, op: Operation) -> SSAValue | None:
    """scatter(x, i, updates of no elements) = x"""
    none = any(size_upper(n) == 0 for n in _sizes(op.operands[2]))
    return op.operands[0] if none else None


SHAPE_RULES: dict[type[Operation], tuple[Rule, ...]] = {
    CastOp: (merge_casts,),
    BitcastOp: (merge_bitcasts,),
    ReshapeOp: (keep_type, move_splat, merge_same),
    ExpandOp: (keep_type, move_splat, merge_same),
    PermuteOp: (drop_permute, move_splat, merge_permutes, permute_reduced),
    FlipOp: (tidy_flip, move_splat, merge_flips),
    ShrinkOp: (drop_shrink, move_splat, merge_shrinks, shrink_pad),
    PadOp: (drop_pad, pad_constant, merge_pads),
    ReduceOp: (
        drop_reduce, reduce_nothing, reduce_splat, reduce_single, sort_reduced, merge_reduces,
    ),
    ArgreduceOp: (argreduce_first,),
    StageOp: (drop_detach, merge_stages),
    ConstantOp: (constant_splat,),
    IotaOp: (iota_single,),
    GatherOp: (move_splat,),
    ScatterOp: (scatter_nothing,),
}  # fmt: skip
"""For each op the rules, tried in this order."""
