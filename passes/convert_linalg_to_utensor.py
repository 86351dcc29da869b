"""convert-linalg-to-utensor: linalg on tensors, with tensor, arith and math, to utensor.

    func.func @f(%x : tensor<4x8xf32>, %w : tensor<8x2xf32>) -> tensor<4x2xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x2xf32>
      %o = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
      %y = linalg.matmul ins(%x, %w : …) outs(%o : tensor<4x2xf32>) -> tensor<4x2xf32>
      func.return %y : tensor<4x2xf32>
    }

becomes movement ops, utensor.mul and utensor.reduce add. Sizes are numbers. In linalg.generic, maps
are loops or windows (`d0 * 2 + d3`), and what is reduced is combined by one known op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type
from uopc.dialects.numbers import dense_array
from uopc.dialects.stablehlo_attributes import int_list
from uopc.passes.dce import erase_dead_ops
from uopc.passes.linalg_conversion import scalars, structured
from uopc.passes.linalg_conversion.scalars import SAME, UNSIGNED, element_for, scalar_op
from uopc.passes.linalg_conversion.spaces import Axis, access_of, loop_sizes, over_loops
from uopc.passes.linalg_conversion.structured import named, reduced
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, number_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import invalid, unsupported

_KINDS = {
    e.AddOp: "add", e.MulOp: "mul", e.MaxOp: "max", e.MinOp: "min", e.AndOp: "and",
    e.OrOp: "or", e.XorOp: "xor",
}  # fmt: skip


@dataclass(frozen=True)
class ConvertLinalgToUtensorPass(ModulePass):
    """Convert functions of linalg on tensors to utensor.

    Raises UopcError [unsupported-op] for what has no conversion, with the op and the reason.
    """

    name = "convert-linalg-to-utensor"
    level_after: ClassVar[str] = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp) and _is_linalg(function):
                _convert(function)


def _is_linalg(function: func.FuncOp) -> bool:
    if not function.body.blocks:
        return False
    types = [*function.function_type.inputs, *function.function_type.outputs]
    words = ("linalg.", "tensor.", "arith.", "math.")
    return any(isinstance(t, TensorType) for t in types) and any(
        op.name.startswith(words) and not isinstance(op, tensor.ExtractOp)
        for op in function.body.walk()
    )


def _convert(function: func.FuncOp) -> None:
    old = function.body.block
    conversion = _Conversion()
    new = conversion.b.block
    for argument in old.args:
        _static(function, argument.type)
        made = new.insert_arg(argument.type, len(new.args))
        made.name_hint = argument.name_hint
        conversion.values[argument] = made
    conversion.run(old)
    last = cast(Operation, old.last_op)
    new.add_op(func.ReturnOp(*(conversion.values[v] for v in last.operands)))
    function.body.detach_block(old)
    function.body.add_block(new)
    old.erase(safe_erase=False)
    erase_dead_ops(function)


def _static(op: Operation, type_: Attribute) -> tuple[Attribute, tuple[int, ...]]:
    """The element type and shape of a scalar or tensor. Raises UnsupportedError."""
    shape: tuple[int, ...] = ()
    if isinstance(type_, TensorType):
        shape = tuple(cast("TensorType[Attribute]", type_).get_shape())
        if DYNAMIC_INDEX in shape:
            raise unsupported(op, f"{type_} has a size that is not known")
    element = element_for(cast(Attribute, type_))
    if element_type(element) is None:
        raise unsupported(op, f"type {type_}")
    return element, shape


class _Conversion:
    """Converts ops; a scalar is a tensor of rank 0, and in a body a tensor over all loops."""

    def __init__(self) -> None:
        self.b = Builder(Block())
        self.values: dict[SSAValue, SSAValue] = {}
        self._index_sizes: tuple[int, ...] = ()

    def run(self, block: Block) -> None:
        """Convert all but the last op."""
        for op in block.ops:
            if op is block.last_op:
                continue
            self.b.location = op.location
            for result in op.results:
                _static(op, result.type)
            for old, new in zip(op.results, self._op(op), strict=True):
                new.name_hint = new.name_hint or old.name_hint
                self.values[old] = new

    def _op(self, op: Operation) -> list[SSAValue]:
        if op.name.startswith("utensor."):
            clone = op.clone({v: self.values[v] for v in op.operands})
            self.b.add(clone)
            return list(clone.results)
        if op.name in _REGIONS:
            return _REGIONS[op.name](self, op)
        x = [self.values[v] for v in op.operands]
        if (rule := _RULES.get(op.name)) is not None:
            return [rule(self.b, op, x)]
        result = scalar_op(self.b, op, x)
        if result is None and op.name.startswith("linalg."):
            result = named(self.b, op, x)
        if result is None:
            raise unsupported(op, "there is no conversion of this op")
        return [result]

    # Ops with a body.

    def generic(self, op: Any) -> list[SSAValue]:
        """linalg.generic."""
        maps = [access_of(op, m) for m in op.indexing_maps.data]
        x = [self.values[v] for v in op.operands]
        iterators = [str(t.data.value) for t in op.iterator_types.data]
        sizes = loop_sizes(op, len(iterators), maps, [shape_of(v) for v in x])
        count = len(x) - len(op.res)
        results: list[SSAValue] = []
        body = op.body.block
        self._index_sizes = sizes
        spread = [over_loops(self.b, op, v, m, sizes) for v, m in zip(x, maps, strict=True)]
        self.values.update(zip(body.args, spread, strict=True))
        self.run(body)
        for k, value in enumerate(cast(Operation, body.last_op).operands):
            access, start = maps[count + k], x[count + k]
            kept = [axis.loops[0][0] for axis in access if len(axis.loops) == 1]
            if len(kept) != len(access) or len(set(kept)) != len(kept):
                raise unsupported(op, "a result's map is no choice of loops")
            missing = [d for d in range(len(sizes)) if d not in kept]
            if any(iterators[d] != "reduction" for d in missing):
                raise unsupported(op, "a parallel loop that its result does not have")
            if not missing:
                results.append(self.b.permute(self._over(self.values[value], sizes), kept))
                continue
            kind, term = self._combined(op, body, count + k, value)
            results.append(reduced(self.b, kind, self._over(term, sizes), start, access))
        return results

    def _over(self, value: SSAValue, sizes: tuple[int, ...]) -> SSAValue:
        """What is the same at all points, at each of them."""
        return value if shape_of(value) else self.b.spread(value, sizes)

    def _combined(
        self, op: Operation, body: Block, position: int, value: SSAValue
    ) -> tuple[str, SSAValue]:
        """How a body combines what a result held with a new term; and that."""
        held = body.args[position]
        owner = value.owner
        cls = SAME.get(owner.name) if isinstance(owner, Operation) else None
        if cls in _KINDS and isinstance(owner, Operation) and len(list(held.uses)) == 1:
            for k in range(2):
                if owner.operands[k] is held:
                    return _KINDS[cls], self.values[owner.operands[1 - k]]
        words = ", ".join(sorted(n.partition(".")[2] for n, c in SAME.items() if c in _KINDS))
        unsigned = " (of unsigned numbers none)" if getattr(owner, "name", "") in UNSIGNED else ""
        raise unsupported(op, f"its body does not reduce by one of {words}{unsigned}")

    def index(self, op: Any) -> list[SSAValue]:
        """linalg.index: the position in a loop."""
        return [self.b.iota(op.dim.value.data, self._index_sizes, i64)]

    def reduce(self, op: Any) -> list[SSAValue]:
        """linalg.reduce: a body over some axes."""
        x, start = self.values[op.input], self.values[op.init]
        axes = int_list(op.dimensions)
        body = op.region.block
        sizes = shape_of(x)
        kept = [k for k in range(len(sizes)) if k not in axes]
        self.values[body.args[0]] = x
        self.values[body.args[1]] = self.b.spread(start, sizes, kept)
        self.run(body)
        (value,) = cast(Operation, body.last_op).operands
        kind, term = self._combined(op, body, 1, value)
        return [reduced(self.b, kind, term, start, tuple(Axis(((k, 1),)) for k in kept))]

    def map(self, op: Any) -> list[SSAValue]:
        """linalg.map: a body over elements; it may have what the result held as an argument."""
        body = op.body.block
        x = [self.values[v] for v in op.operands]
        shapes = {shape_of(v) for v in x}
        if len(body.args) not in (len(x) - 1, len(x)) or len(shapes) != 1:
            raise invalid(op, f"has a body of {len(body.args)} arguments for {len(x)} operands")
        (self._index_sizes,) = shapes
        self.values.update(zip(body.args, x, strict=False))
        self.run(body)
        (value,) = cast(Operation, body.last_op).operands
        return [self._over(self.values[value], self._index_sizes)]

    def pad(self, op: Any) -> list[SSAValue]:
        """tensor.pad by one number."""
        x = self.values[op.source]
        low, high = int_list(op.static_low), int_list(op.static_high)
        if min((*low, *high), default=0) < 0:
            raise unsupported(op, "its amounts are not known, or negative")
        body = op.region.block
        self._index_sizes = ()
        inside = [v for v in body.args if v.first_use is not None]
        if inside:
            raise unsupported(op, "what it adds depends on the place")
        self.run(body)
        (value,) = cast(Operation, body.last_op).operands
        number = number_of(self.values[value])
        if number is None:
            raise unsupported(op, "what it adds is no constant")
        return [self.b.pad(x, low, high, number)]


_REGIONS: dict[str, Callable[[_Conversion, Any], list[SSAValue]]] = {
    "linalg.generic": _Conversion.generic,
    "linalg.index": _Conversion.index,
    "linalg.map": _Conversion.map,
    "linalg.reduce": _Conversion.reduce,
    "tensor.pad": _Conversion.pad,
}

Rule = Callable[[Builder, Any, list[SSAValue]], SSAValue]


def _constant(b: Builder, op: arith.ConstantOp, x: list[SSAValue]) -> SSAValue:
    value = op.value
    if isinstance(value, DenseIntOrFPElementsAttr):
        return b.array(np.array(dense_array(cast(Any, value))))
    assert isinstance(value, FloatAttr | IntegerAttr)
    number = cast(Any, value).value.data
    return b.constant(number, element_for(op.result.type))


def _shape(op: Operation) -> tuple[int, ...]:
    return _static(op, op.results[0].type)[1]


def _empty(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """Contents that nobody may read: zeros."""
    element, shape = _static(op, op.results[0].type)
    return b.constant(0, element, shape)


def _splat(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    return b.spread(x[0], _shape(op))


def _reshape(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    return b.reshape(x[0], _shape(op))


def _copy(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    return b.cast(x[0], element_of(x[1]))


def _transpose(b: Builder, op: Any, x: list[SSAValue]) -> SSAValue:
    return b.permute(x[0], int_list(op.permutation))


def _broadcast(b: Builder, op: Any, x: list[SSAValue]) -> SSAValue:
    """`dimensions` are the new axes."""
    shape, added = shape_of(x[1]), int_list(op.dimensions)
    return b.spread(x[0], shape, [k for k in range(len(shape)) if k not in added])


def _extract(b: Builder, op: tensor.ExtractOp, x: list[SSAValue]) -> SSAValue:
    value = x[0]
    for index in x[1:]:
        at = b.reshape(index, (1,))
        value = b.gather(value, at, 0)
        value = b.reshape(value, shape_of(value)[1:])
    return value


def _elements(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    return b.reshape(b.concatenate([b.reshape(v, (1,)) for v in x], 0), _shape(op))


def _concat(b: Builder, op: Any, x: list[SSAValue]) -> SSAValue:
    return b.concatenate(x, op.dim.value.data)


def _slice_of(op: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    offsets, sizes, strides = (
        int_list(v) for v in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    if min((*offsets, *sizes), default=0) < 0 or min(strides, default=1) < 1:
        raise unsupported(op, "its offsets, sizes or strides are not known numbers")
    return offsets, sizes, strides


def _extract_slice(b: Builder, op: Any, x: list[SSAValue]) -> SSAValue:
    offsets, sizes, strides = _slice_of(op)
    ends = [
        o + (n - 1) * s + 1 if n else o for o, n, s in zip(offsets, sizes, strides, strict=True)
    ]
    return b.reshape(b.shrink(x[0], offsets, ends, strides), _shape(op))


def _insert_slice(b: Builder, op: Any, x: list[SSAValue]) -> SSAValue:
    """Padded to the whole, and chosen where its positions are."""
    offsets, sizes, strides = _slice_of(op)
    if any(s != 1 for s in strides):
        raise unsupported(op, "its strides are not 1")
    whole = shape_of(x[1])
    high = [n - o - k for n, o, k in zip(whole, offsets, sizes, strict=True)]
    source = b.reshape(x[0], sizes)
    inside = b.pad(b.constant(1, i1, sizes), offsets, high)
    return b.where(inside, b.pad(source, offsets, high), x[1])


_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "linalg.broadcast": _broadcast,
    "linalg.copy": _copy,
    "linalg.fill": _splat,
    "linalg.transpose": _transpose,
    "tensor.cast": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.concat": _concat,
    "tensor.empty": _empty,
    "tensor.expand_shape": _reshape,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.from_elements": _elements,
    "tensor.insert_slice": _insert_slice,
    "tensor.reshape": _reshape,
    "tensor.splat": _splat,
}


def converted_ops() -> list[str]:
    """The names of all ops that have a conversion, in order."""
    named = (*structured.CONTRACTIONS, *structured.ELEMENTWISE, *structured.FORMULAS)
    pools = (f"pooling_{layout}_*" for layout in structured.POOLS)
    return sorted(
        {*_RULES, *_REGIONS, *scalars.names(), *(f"linalg.{name}" for name in (*named, *pools))}
    )
