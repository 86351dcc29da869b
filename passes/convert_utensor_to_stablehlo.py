"""convert-utensor-to-stablehlo: tensor programs for XLA, IREE and whatever else takes StableHLO.

    func.func @f(%x : tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = utensor.exp %x : tensor<4x8xf32>
      %1 = utensor.reduce max %0 axes [1] : tensor<4x8xf32>
      func.return %1 : tensor<4xf32>
    }

becomes

    func.func @f(%x : tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = stablehlo.exponential %x : tensor<4x8xf32>
      %1 = stablehlo.constant dense<0xff800000> : tensor<f32>
      %2 = stablehlo.reduce(%0 init: %1) across dimensions = [1] : … { stablehlo.maximum … }
      func.return %2 : tensor<4xf32>
    }

Every op of utensor on every element type has a form, docs/numerics.md's edges included; inverse and
hyperbolic functions and erf are chlo's. scf.while and scf.if become stablehlo's. Sizes must be
numbers. `uopc-opt --print-op-generic` prints what other tools read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import stablehlo_attributes as a
from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import accumulator
from uopc.dialects.errors import UnsupportedError
from uopc.dialects.locations import nearest_location
from uopc.dialects.numbers import dense_array, scalar_value
from uopc.dialects.op_text import op_text
from uopc.dialects.tensor_movement import int_values
from uopc.passes.kernel_cut.control import CONTROL_OPS, flag_tensor, is_flag, tested, yielded
from uopc.passes.kernel_cut.graph import is_tensor_function
from uopc.passes.reductions import identity
from uopc.passes.stablehlo_export.builder import (
    I64,
    HloBuilder,
    axes_attr,
    flag,
    row_of,
    shape_of,
    struct,
)
from uopc.passes.stablehlo_export.elementwise import ELEMENTWISE, elementwise
from uopc.passes.stablehlo_export.elementwise import cast as cast_numbers


@dataclass(frozen=True)
class ConvertUtensorToStablehloPass(ModulePass):
    """Convert tensor functions to StableHLO and CHLO.

    Raises UopcError [unsupported-op] for sizes that are symbols, and for ops that are none of
    utensor's.
    """

    name = "convert-utensor-to-stablehlo"
    level_after: ClassVar[str] = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp) and is_tensor_function(function):
                _convert(function)


def _unsupported(op: Operation, reason: str) -> UnsupportedError:
    return UnsupportedError(
        "unsupported-op",
        f"'{op.name}' has no form in StableHLO here: {reason}",
        location=nearest_location(op),
        op_text=op_text(op),
        hint="give sizes as numbers, and write the rest in ops of utensor",
    )


def _convert(function: func.FuncOp) -> None:
    for value in function.body.block.args:
        _check_static(function, value)
    old = function.body.block
    new = Block(arg_types=[v.type for v in old.args])
    export = _Export(new)
    export.take(old, new)
    last = cast(Operation, old.last_op)
    export.run(old)
    new.add_op(func.ReturnOp(*(export.values[v] for v in last.operands)))
    region = function.body
    region.detach_block(old)
    region.add_block(new)
    old.erase(safe_erase=False)


def _check_static(op: Operation, value: SSAValue) -> None:
    type_ = value.type
    if isinstance(type_, TensorType) and DYNAMIC_INDEX in type_.get_shape():
        raise _unsupported(op, f"a size of {type_} is a symbol")


class _Export:
    """Converts blocks; `values` has what each value became."""

    def __init__(self, block: Block) -> None:
        self.b = HloBuilder(block)
        self.values: dict[SSAValue, SSAValue] = {}

    def take(self, old: Block, new: Block) -> None:
        """The arguments of a block are those of another."""
        for before, after in zip(old.args, new.args, strict=True):
            after.name_hint = before.name_hint
            self.values[before] = after

    def run(self, block: Block) -> None:
        """Convert all but the last op."""
        for op in block.ops:
            if op is block.last_op or is_flag(op):
                continue
            for value in op.results:
                _check_static(op, value)
            self.b.location = cast(Any, op.location)
            results = self._op(op)
            for old, new in zip(op.results, results, strict=True):
                new.name_hint = new.name_hint or old.name_hint
                self.values[old] = new

    def _op(self, op: Operation) -> list[SSAValue]:
        if isinstance(op, CONTROL_OPS):
            return self._while(op) if isinstance(op, scf.WhileOp) else self._if(op)
        x = [self.values[v] for v in op.operands]
        if type(op) in ELEMENTWISE:
            return [elementwise(self.b, op, x)]
        rule = _RULES.get(type(op))
        if rule is None:
            raise _unsupported(op, "it is no op of utensor")
        return [rule(self.b, op, x)]

    def _region(self, old: Block, result: list[SSAValue]) -> Region:
        """A region of arguments like a block's, that returns what `result` became."""
        new = Block(arg_types=[v.type for v in old.args])
        self.take(old, new)
        outer, self.b = self.b, HloBuilder(new)
        self.run(old)
        self.b.many("stablehlo.return", [self.values[v] for v in result], [])
        self.b = outer
        return Region(new)

    def _while(self, op: scf.WhileOp) -> list[SSAValue]:
        before, after = op.before_region.block, op.after_region.block
        if yielded(before) != tuple(before.args):
            raise _unsupported(op, "its condition hands on something else than it carries")
        regions = [
            self._region(before, [tested(op)]),
            self._region(after, list(yielded(after))),
        ]
        starts = [self.values[v] for v in op.arguments]
        return list(
            self.b.many("stablehlo.while", starts, list(op.result_types), {}, regions).results
        )

    def _if(self, op: Operation) -> list[SSAValue]:
        assert isinstance(op, scf.IfOp)
        if not op.results:
            return []
        regions = [self._region(r.block, list(yielded(r.block))) for r in op.regions]
        condition = self.values[flag_tensor(op, op.cond)]
        made = self.b.many("stablehlo.if", [condition], list(op.result_types), {}, regions)
        return list(made.results)


Rule = Callable[[HloBuilder, Any, list[SSAValue]], SSAValue]


def _constant(b: HloBuilder, op: t.ConstantOp, x: list[SSAValue]) -> SSAValue:
    if op.dense is not None:
        return b.array(np.array(dense_array(op.dense)))
    assert op.splat is not None
    return b.number(scalar_value(op.splat), row_of(op.result), shape_of(op.result))


def _iota(b: HloBuilder, op: t.IotaOp, x: list[SSAValue]) -> SSAValue:
    row = row_of(op.result)
    number = b.iota(op.axis.value.data, shape_of(op.result), I64)
    if row.is_bool:
        return b.compare("NE", number, b.like(number, 0))
    return b.convert(number, row.attribute)


def _where(b: HloBuilder, op: e.WhereOp, x: list[SSAValue]) -> SSAValue:
    return b.select(*x)


def _cast(b: HloBuilder, op: e.CastOp, x: list[SSAValue]) -> SSAValue:
    return cast_numbers(b, op, x[0])


def _bitcast(b: HloBuilder, op: e.BitcastOp, x: list[SSAValue]) -> SSAValue:
    if x[0].type == op.result.type:
        return x[0]
    return b.op("bitcast_convert", x, op.result.type)


def _stage(b: HloBuilder, op: t.StageOp, x: list[SSAValue]) -> SSAValue:
    return x[0]


def _reshape(b: HloBuilder, op: m.ReshapeOp, x: list[SSAValue]) -> SSAValue:
    return b.reshape(x[0], shape_of(op.result))


def _permute(b: HloBuilder, op: m.PermuteOp, x: list[SSAValue]) -> SSAValue:
    return b.op("transpose", x, op.result.type, {"permutation": axes_attr(int_values(op.order))})


def _expand(b: HloBuilder, op: m.ExpandOp, x: list[SSAValue]) -> SSAValue:
    shape = shape_of(op.result)
    return b.broadcast(x[0], shape, range(len(shape)))


def _flip(b: HloBuilder, op: m.FlipOp, x: list[SSAValue]) -> SSAValue:
    return b.op("reverse", x, None, {"dimensions": axes_attr(int_values(op.axes))})


def _shrink(b: HloBuilder, op: m.ShrinkOp, x: list[SSAValue]) -> SSAValue:
    begins, ends, steps = map(_numbers, (op.begins.data, op.ends.data, int_values(op.steps)))
    properties = {
        "start_indices": axes_attr(begins),
        "limit_indices": axes_attr(ends),
        "strides": axes_attr(steps),
    }
    return b.op("slice", x, op.result.type, properties)


def _pad(b: HloBuilder, op: m.PadOp, x: list[SSAValue]) -> SSAValue:
    low, high = _numbers(op.low.data), _numbers(op.high.data)
    fill = b.number(scalar_value(op.value), row_of(op.result))
    properties = {
        "edge_padding_low": axes_attr(low),
        "edge_padding_high": axes_attr(high),
        "interior_padding": axes_attr([0] * len(low)),
    }
    return b.op("pad", [x[0], fill], op.result.type, properties)


def _numbers(values: Any) -> list[int]:
    return [int(v) for v in values]


_COMBINERS = {
    "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum", "and": "and",
    "or": "or", "xor": "xor", "set": "second",
}  # fmt: skip
_COMBINERS_OF_BOOL = {"add": "xor", "mul": "and", "max": "or", "min": "and"}


def _combiner(kind: str, is_bool: bool) -> str:
    return _COMBINERS_OF_BOOL.get(kind, _COMBINERS[kind]) if is_bool else _COMBINERS[kind]


def _reduce(b: HloBuilder, op: t.ReduceOp, x: list[SSAValue]) -> SSAValue:
    """Sums and products of halves are taken in f32."""
    row, kind = row_of(x[0]), op.kind.data
    wide = accumulator(row)
    name = _combiner(kind, row.is_bool)
    value = b.convert(x[0], wide.attribute)
    result = b.reduce(name, value, identity(kind, wide), int_values(op.axes))
    return b.convert(result, row.attribute)


def _argreduce(b: HloBuilder, op: t.ArgreduceOp, x: list[SSAValue]) -> SSAValue:
    """The first position of the extreme, or of a NaN."""
    row, axis = row_of(x[0]), op.axis.value.data
    target, shape = row_of(op.result), shape_of(x[0])
    kind = op.kind.data
    best = b.reduce(_combiner(kind, row.is_bool), x[0], identity(kind, row), (axis,))
    others = [k for k in range(len(shape)) if k != axis]
    best = b.broadcast(best, shape, others)
    hit = b.compare("EQ", x[0], best)
    if row.is_float:
        hit = b.op("or", [hit, b.is_nan(x[0])])
        # Where there is a NaN the best is one, and equal to nothing.
    position = b.iota(axis, shape, target)
    found = b.select(hit, position, b.like(position, target.limits[1]))
    return b.reduce("minimum", found, target.limits[1], (axis,))


def _gather(b: HloBuilder, op: t.GatherOp, x: list[SSAValue]) -> SSAValue:
    axis, shape = op.axis.value.data, shape_of(x[0])
    rank = len(shape_of(x[1]))
    result = len(shape) - 1 + rank
    names = struct(
        a.GatherAttr,
        offset_dims=[k for k in range(result) if not axis <= k < axis + rank],
        collapsed_slice_dims=[axis],
        start_index_map=[axis],
        index_vector_dim=rank,
    )
    sizes = [1 if k == axis else n for k, n in enumerate(shape)]
    properties: dict[str, Attribute] = {
        "dimension_numbers": names,
        "slice_sizes": axes_attr(sizes),
        "indices_are_sorted": flag(False),
    }
    return b.op("gather", x, op.result.type, properties)


def _scatter(b: HloBuilder, op: t.ScatterOp, x: list[SSAValue]) -> SSAValue:
    row, axis = row_of(x[0]), op.axis.value.data
    rank, updates = len(shape_of(x[1])), len(shape_of(x[2]))
    names = struct(
        a.ScatterAttr,
        update_window_dims=[k for k in range(updates) if not axis <= k < axis + rank],
        inserted_window_dims=[axis],
        scatter_dims_to_operand_dims=[axis],
        index_vector_dim=rank,
    )
    properties: dict[str, Attribute] = {
        "scatter_dimension_numbers": names,
        "indices_are_sorted": flag(False),
        "unique_indices": flag(False),
    }
    body = b.combiner(_combiner(op.kind.data, row.is_bool), row)
    return b.op("scatter", x, op.result.type, properties, [body])


_RULES: dict[type[Operation], Rule] = {
    t.ArgreduceOp: _argreduce,
    t.ConstantOp: _constant,
    t.GatherOp: _gather,
    t.IotaOp: _iota,
    t.ReduceOp: _reduce,
    t.ScatterOp: _scatter,
    t.StageOp: _stage,
    e.BitcastOp: _bitcast,
    e.CastOp: _cast,
    e.WhereOp: _where,
    m.ExpandOp: _expand,
    m.FlipOp: _flip,
    m.PadOp: _pad,
    m.PermuteOp: _permute,
    m.ReshapeOp: _reshape,
    m.ShrinkOp: _shrink,
}
