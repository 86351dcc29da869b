"""linalg's structured ops: iterate, compute a body at each point, combine what is reduced.

Named ops stand as rows: the letters of each operand's axes, a window in brackets, and what is done.
Ops with a body of their own (generic, map, reduce) go through it: see conversion.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type_named
from uopc.dialects.numbers import scalar_value
from uopc.dialects.stablehlo_attributes import int_list
from uopc.passes.linalg_conversion.spaces import Access, Axis, loop_sizes, over_loops
from uopc.passes.reductions import identity
from uopc.passes.stablehlo_conversion.builder import (
    Builder,
    element_of,
    number_of,
    row_of,
    shape_of,
)
from uopc.passes.stablehlo_conversion.conversion import invalid
from uopc.passes.stablehlo_conversion.elementwise import round_away

COMBINE: dict[str, type[Any]] = {
    "add": e.AddOp, "mul": e.MulOp, "max": e.MaxOp, "min": e.MinOp, "and": e.AndOp,
    "or": e.OrOp, "xor": e.XorOp,
}  # fmt: skip

CONTRACTIONS: dict[str, str] = {
    "matmul": "mk kn mn", "batch_matmul": "bmk bkn bmn", "matvec": "mk k m", "vecmat": "k kn n",
    "dot": "k k ", "batch_matvec": "bmk bk bm", "batch_vecmat": "bk bkn bn",
    "conv_1d": "[ox] x o", "conv_2d": "[ox][py] xy op", "conv_3d": "[ox][py][qz] xyz opq",
    "conv_1d_nwc_wcf": "n[ox]c xcf nof", "conv_1d_ncw_fcw": "nc[ox] fcx nfo",
    "conv_2d_nhwc_hwcf": "n[ox][py]c xycf nopf", "conv_2d_nhwc_fhwc": "n[ox][py]c fxyc nopf",
    "conv_2d_nchw_fchw": "nc[ox][py] fcxy nfop",
    "conv_2d_ngchw_fgchw": "ngc[ox][py] fgcxy ngfop",
    "conv_2d_ngchw_gfchw": "ngc[ox][py] gfcxy ngfop",
    "conv_2d_nhwgc_gfhwc": "n[ox][py]gc gfxyc nopgf",
    "conv_3d_ndhwc_dhwcf": "n[ox][py][qz]c xyzcf nopqf",
    "conv_3d_ncdhw_fcdhw": "nc[ox][py][qz] fcxyz nfopq",
    "depthwise_conv_1d_nwc_wc": "n[ox]c xc noc",
    "depthwise_conv_2d_nhwc_hwc": "n[ox][py]c xyc nopc",
    "depthwise_conv_2d_nchw_chw": "nc[ox][py] cxy ncop",
    "depthwise_conv_2d_nhwc_hwcm": "n[ox][py]c xycm nopcm",
}  # fmt: skip
"""Sums of products. The result's letters come first among the loops."""
POOLS: dict[str, str] = {
    "nwc": "n[ox]c x noc", "ncw": "nc[ox] x nco", "nhwc": "n[ox][py]c xy nopc",
    "nchw": "nc[ox][py] xy ncop", "ndhwc": "n[ox][py][qz]c xyz nopqc",
}  # fmt: skip
ELEMENTWISE: dict[str, type[Any]] = {
    "abs": e.AbsOp, "add": e.AddOp, "ceil": e.CeilOp, "div": e.DivOp, "erf": e.ErfOp,
    "exp": e.ExpOp, "floor": e.FloorOp, "log": e.LogOp, "max": e.MaxOp, "min": e.MinOp,
    "mul": e.MulOp, "negf": e.NegOp, "powf": e.PowOp, "reciprocal": e.RecipOp,
    "rsqrt": e.RsqrtOp, "sqrt": e.SqrtOp, "sub": e.SubOp, "tanh": e.TanhOp,
}  # fmt: skip


def reduced(b: Builder, kind: str, value: SSAValue, start: SSAValue, access: Access) -> SSAValue:
    """Combine over the loops that a result does not have, and with what it held before."""
    kept = [axis.loops[0][0] for axis in access]
    axes = [k for k in range(len(shape_of(value))) if k not in kept]
    result = b.reduce(kind, value, axes)
    ordered = sorted(kept)
    result = b.permute(result, [ordered.index(loop) for loop in kept])
    number = number_of(start)
    row = row_of(result)
    if number is not None and str(scalar_value(number)) == str(_identity(kind, row)):
        return result  # a reduction starts from it anyway
    return b.op(COMBINE[kind], start, result)


def _identity(kind: str, row: Any) -> Any:
    found = identity(kind, row)
    return float(found) if row.is_float else int(found)


def named(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue | None:
    """What a named op computes; None for one that is no row of the tables."""
    name = op.name.removeprefix("linalg.")
    if name in CONTRACTIONS:
        return _space(b, op, CONTRACTIONS[name], x, "add")
    if name.startswith("pooling_"):
        _, layout, kind = name.split("_")
        if layout in POOLS and kind in ("sum", "max", "min"):
            return _space(b, op, POOLS[layout], x, "add" if kind == "sum" else kind, pools=True)
        return None
    if name in FORMULAS:
        return FORMULAS[name](b, op, x)
    cls = ELEMENTWISE.get(name)
    if cls is None:
        return None
    if name == "div" and not row_of(x[0]).is_float:
        cls = e.TruncdivOp
    return b.op(cls, *x[:-1])


def _divide_unsigned(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    row = row_of(x[0])
    if row.is_bool:
        return b.op(e.TruncdivOp, *x[:2])
    unsigned = element_type_named(f"ui{row.bits}").attribute
    quotient = b.op(e.TruncdivOp, *(b.bitcast(v, unsigned) for v in x[:2]))
    return b.bitcast(quotient, element_of(x[0]))


def _softmax(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """exp(x - max) over its sum, along one axis."""
    value, shape = x[0], shape_of(x[0])
    (axis,) = _numbers(op, "dimension")
    if not row_of(value).is_float or not 0 <= axis < len(shape):
        raise invalid(op, f"has dimension {axis} of {op.operands[0].type}")
    kept = [k for k in range(len(shape)) if k != axis]
    top = b.spread(b.reduce("max", value, [axis]), shape, kept)
    powers = b.op(e.ExpOp, b.op(e.SubOp, value, top))
    return b.op(e.DivOp, powers, b.spread(b.reduce("add", powers, [axis]), shape, kept))


FORMULAS: dict[str, Callable[[Builder, Operation, list[SSAValue]], SSAValue]] = {
    "div_unsigned": _divide_unsigned,
    "round": lambda b, op, x: round_away(b, x[:1]),
    "select": lambda b, op, x: b.where(*b.alike(x[:3])),
    "softmax": _softmax,
    "square": lambda b, op, x: b.op(e.MulOp, x[0], x[0]),
}
"""Named ops that are more than one elementwise op."""


def _space(
    b: Builder, op: Operation, text: str, x: list[SSAValue], kind: str, *, pools: bool = False
) -> SSAValue:
    parts = text.split(" ")
    letters = list(dict.fromkeys(c for part in (parts[2], *parts) for c in part if c not in "[]"))
    steps = iter(_numbers(op, "strides"))
    dilations = iter(_numbers(op, "dilations"))
    accesses = [_access(part, letters, steps, dilations) for part in parts]
    sizes = loop_sizes(op, len(letters), accesses, [shape_of(v) for v in x])
    element = element_of(x[2])
    values = [over_loops(b, op, v, a, sizes) for v, a in zip(x[:2], accesses, strict=False)]
    values = [b.cast(v, element) for v in (values[:1] if pools else values)]
    value = values[0] if pools else b.op(e.MulOp, *values)
    return reduced(b, kind, value, x[2], accesses[2])


def _access(part: str, letters: Sequence[str], steps: Any, dilations: Any) -> Access:
    axes: list[Axis] = []
    k = 0
    while k < len(part):
        if part[k] == "[":
            first, second = letters.index(part[k + 1]), letters.index(part[k + 2])
            axes.append(Axis(((first, next(steps, 1)), (second, next(dilations, 1)))))
            k += 4
        else:
            axes.append(Axis(((letters.index(part[k]), 1),)))
            k += 1
    return tuple(axes)


def _numbers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of a property; a splat gives the same for each axis."""
    value: Any = op.get_attr_or_prop(name)
    if value is None:
        return ()
    if isinstance(value, IntegerAttr):
        return (cast("IntegerAttr[Any]", value).value.data,)
    if hasattr(value, "get_values"):
        return tuple(int(v) for v in value.get_values())
    return int_list(value)
