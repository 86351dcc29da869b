"""dot, dot_general, convolution, chlo.ragged_dot: movement ops, a product and a sum."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.stablehlo_attributes import ConvAttr, StructAttr
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    invalid,
    number,
    result_type,
    row,
    struct,
    unsupported,
)
from uopc.passes.stablehlo_conversion.shapes import check_axes
from uopc.passes.stablehlo_conversion.windows import Window, check_window, windows

Values = Sequence[SSAValue]


def product(
    b: Builder,
    x: SSAValue,
    y: SSAValue,
    batch: Sequence[tuple[int, int]],
    summed: Sequence[tuple[int, int]],
    element: Attribute,
) -> SSAValue:
    """Sums of products over pairs of axes: axes of `batch`, then what is left of x, then of y.

    Halves are multiplied and summed in f32, exactly but for the sum, and rounded once.
    """
    kind = row(element)
    work = f32 if kind.name in ("f16", "bf16") else element
    x, y = b.cast(x, work), b.cast(y, work)
    own_x = [k for k in range(len(shape_of(x))) if k not in [a for a, _ in (*batch, *summed)]]
    own_y = [k for k in range(len(shape_of(y))) if k not in [a for _, a in (*batch, *summed)]]
    shared = [shape_of(x)[k] for k, _ in batch]
    sizes_x, sizes_y = [shape_of(x)[k] for k in own_x], [shape_of(y)[k] for k in own_y]
    inner = [shape_of(x)[k] for k, _ in summed]
    shape = [*shared, *sizes_x, *sizes_y, *inner]
    x = b.permute(x, [*(k for k, _ in batch), *own_x, *(k for k, _ in summed)])
    y = b.permute(y, [*(k for _, k in batch), *own_y, *(k for _, k in summed)])
    x = b.expand(b.reshape(x, [*shared, *sizes_x, *(1 for _ in own_y), *inner]), shape)
    y = b.expand(b.reshape(y, [*shared, *(1 for _ in own_x), *sizes_y, *inner]), shape)
    axes = range(len(shape) - len(inner), len(shape))
    terms = b.op(e.AndOp if kind.is_bool else e.MulOp, x, y)
    return b.cast(b.reduce("or" if kind.is_bool else "add", terms, axes), element)


def _pairs(
    op: Operation, dims: StructAttr, part: str, x: SSAValue, y: SSAValue
) -> list[tuple[int, int]]:
    """The axes of both sides that belong together."""
    lhs, rhs = dims.axes(f"lhs_{part}_dimensions"), dims.axes(f"rhs_{part}_dimensions")
    check_axes(op, lhs, len(shape_of(x)))
    check_axes(op, rhs, len(shape_of(y)))
    sizes = [[shape_of(v)[k] for k in axes] for v, axes in ((x, lhs), (y, rhs))]
    if sizes[0] != sizes[1]:
        raise invalid(op, f"pairs axes of sizes {sizes[0]} and {sizes[1]}")
    return list(zip(lhs, rhs, strict=True))


def _dot_general(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    dims = struct(op, "dot_dimension_numbers")
    batch = _pairs(op, dims, "batching", x[0], x[1])
    summed = _pairs(op, dims, "contracting", x[0], x[1])
    return [product(c.build, x[0], x[1], batch, summed, result_type(op)[0])]


def _dot(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    last = len(shape_of(x[0])) - 1
    if shape_of(x[0])[last:] != shape_of(x[1])[:1]:
        raise invalid(op, "needs a last axis and a first axis of one size")
    return [product(c.build, x[0], x[1], [], [(last, 0)], result_type(op)[0])]


def _convolution(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The windows of the input, times the kernel, summed over the window and input features.

    With groups of features or of the batch, these are an axis that both sides have.
    """
    b = c.build
    dims = struct(op, "dimension_numbers")
    if not isinstance(dims, ConvAttr) or len(x) != 2:
        raise invalid(op, "lacks dimension_numbers or an operand")
    image, kernel = _in_order(b, op, dims, *x)
    groups, batches = number(op, "feature_group_count", 1), number(op, "batch_group_count", 1)
    window = _window(op, shape_of(kernel)[2:])
    flipped = axes_of(op, "window_reversal", (0,) * len(window.sizes))
    kernel = b.flip(kernel, [k + 2 for k, f in enumerate(flipped) if f])
    n, features = shape_of(image)[:2]
    taken, made = shape_of(kernel)[:2]
    if min(groups, batches) < 1 or n % batches or made % groups or made % batches:
        raise invalid(op, "has group counts that do not divide its sizes")
    if features != taken * groups or min(groups, batches) > 1:
        raise invalid(op, f"has {features} features of {groups} groups, kernel of {taken}")
    zero = b.constant(0, element_of(image))
    counts = window.counts(shape_of(image)[2:])
    places = _image_windows(b, image, window, zero)  # n, features, counts…, sizes…
    spatial = len(counts)
    # One group axis: of features, or of the batch, for both only one may be there.
    apart = max(groups, batches)
    split = (1, n, groups, taken) if groups > 1 else (batches, n // batches, 1, features)
    places = b.reshape(places, [*split, *counts, *window.sizes])
    kernel = b.reshape(kernel, [taken, apart, made // apart, *window.sizes])
    group = 2 if groups > 1 else 0
    rest = 0 if groups > 1 else 2
    places = b.permute(places, [group, 1, 3, *range(4, 4 + 2 * spatial), rest])
    places = b.reshape(places, shape_of(places)[:-1])  # the group axis that is not used
    summed = [(2, 0), *((3 + spatial + k, 3 + k) for k in range(spatial))]
    result = product(b, places, kernel, [(0, 1)], summed, result_type(op)[0])
    # group, n, counts…, made / group
    order = [1, 0, 2 + spatial, *range(2, 2 + spatial)]
    result = b.reshape(b.permute(result, order), [shape_of(result)[1], made, *counts])
    return [_out_of_order(b, dims, result)]


def _in_order(
    b: Builder, op: Operation, dims: ConvAttr, image: SSAValue, kernel: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """batch, features, axes… and input features, output features, axes…"""
    order = _order(dims, "input", "input_batch_dimension", "input_feature_dimension")
    kernel_order = _order(
        dims, "kernel", "kernel_input_feature_dimension", "kernel_output_feature_dimension"
    )
    for axes, value in ((order, image), (kernel_order, kernel)):
        if sorted(axes) != list(range(len(shape_of(value)))):
            raise invalid(op, f"names axes {axes} of a value of rank {len(shape_of(value))}")
    return b.permute(image, order), b.permute(kernel, kernel_order)


def _order(dims: ConvAttr, which: str, first: str, second: str) -> list[int]:
    spatial = dims.axes(f"{which}_spatial_dimensions")
    return [dims.integer(first, -1), dims.integer(second, -1), *spatial]


def _out_of_order(b: Builder, dims: ConvAttr, result: SSAValue) -> SSAValue:
    order = _order(dims, "output", "output_batch_dimension", "output_feature_dimension")
    return b.permute(result, [order.index(k) for k in range(len(order))])


def _window(op: Operation, sizes: Sequence[int]) -> Window:
    ones = (1,) * len(sizes)
    padding = axes_of(op, "padding", (0,) * (2 * len(sizes)))
    window = Window(
        tuple(sizes),
        axes_of(op, "window_strides", ones),
        padding[0::2],
        padding[1::2],
        axes_of(op, "lhs_dilation", ones),
        axes_of(op, "rhs_dilation", ones),
    )
    check_window(op, window, len(sizes))
    return window


def _image_windows(b: Builder, image: SSAValue, window: Window, zero: SSAValue) -> SSAValue:
    """Windows along all axes but the first two: those, then positions, then places."""
    whole = Window(
        (1, 1, *window.sizes),
        (1, 1, *window.strides),
        (0, 0, *window.low),
        (0, 0, *window.high),
        (1, 1, *window.base_dilations),
        (1, 1, *window.window_dilations),
    )
    placed = windows(b, image, whole, zero)
    shape, rank = shape_of(placed), len(whole.sizes)
    return b.reshape(placed, [*shape[:rank], *shape[rank + 2 :]])


def _ragged_dot(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Rows of the left side, in groups of given sizes, each group by its own right side.

    All products are taken of which each row's own is kept, so the work is that of all groups.
    """
    b, dims = c.build, struct(op, "ragged_dot_dimension_numbers")
    lhs, rhs, sizes = x
    batch = _pairs(op, dims, "batching", lhs, rhs)
    summed = _pairs(op, dims, "contracting", lhs, rhs)
    ragged, group = dims.axes("lhs_ragged_dimensions"), dims.axes("rhs_group_dimensions")
    if len(ragged) != 1 or len(group) != 1 or batch or len(shape_of(sizes)) != 1:
        raise unsupported(op, "other than with one ragged axis of rows and no batch axes")
    check_axes(op, (*ragged, *(a for a, _ in summed)), len(shape_of(lhs)))
    check_axes(op, (*group, *(a for _, a in summed)), len(shape_of(rhs)))
    groups, rows = shape_of(sizes)[0], shape_of(lhs)[ragged[0]]
    if shape_of(rhs)[group[0]] != groups:
        raise invalid(op, f"has {groups} group sizes for {shape_of(rhs)[group[0]]} groups")
    # ends[g] is the sum of sizes up to g; a row r is of the first group with r < ends[g].
    square = (groups, groups)
    before = b.op(e.CmpleOp, b.iota(1, square), b.iota(0, square))
    spread = b.spread(sizes, square, (1,))
    ends = b.reduce("add", b.where(before, spread, b.like(spread, 0)), (1,))
    table = (rows, groups)
    row_index = b.cast(b.iota(0, table), element_of(sizes))
    end = b.spread(ends, table, (1,))
    start = b.spread(b.op(e.SubOp, ends, sizes), table, (1,))
    inside = b.op(e.AndOp, b.op(e.CmpleOp, start, row_index), b.op(e.CmpltOp, row_index, end))
    element = result_type(op)[0]
    every = product(b, lhs, rhs, [], summed, element)  # own axes of lhs, then group and others
    own = [k for k in range(len(shape_of(lhs))) if k not in [a for a, _ in summed]]
    own_rhs = [k for k in range(len(shape_of(rhs))) if k not in [a for _, a in summed]]
    group_axis = len(own) + own_rhs.index(group[0])
    mask = b.spread(inside, shape_of(every), (own.index(ragged[0]), group_axis))
    return [b.reduce("add", b.where(mask, every, b.like(every, 0)), (group_axis,))]


PRODUCT_RULES: dict[str, Rule] = {
    "chlo.ragged_dot": _ragged_dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
}
