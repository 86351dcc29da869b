"""expand-math: which operations it replaces, and what the IR looks like then.

How exact the formulas are is tested in tests/passes/math_expansions.
"""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import ModuleOp, VectorType, f32, f128
from xdsl.ir import Attribute, Block, Region

from uopc.dialects.errors import UopcError
from uopc.passes.expand_math import EXPANSIONS, ExpandMathPass

KINDS = {kind.name.removeprefix("math."): kind for kind in EXPANSIONS}


def expanded(name: str, value_type: Attribute) -> Block:
    """The body of a function that is the expansion of math.<name>."""
    count = 2 if name in ("atan2", "powf") else 1
    block = Block(arg_types=[value_type] * count)
    op = KINDS[name].create(operands=list(block.args), result_types=[value_type])
    block.add_ops([op, func.ReturnOp(op.results[0])])
    function = func.FuncOp(name, ([value_type] * count, [value_type]), Region(block))
    ExpandMathPass().apply(Context(), ModuleOp([function]))
    return block


EXACT_OPS = {
    "absf", "ceil", "copysign", "floor", "fma", "round", "roundeven", "sqrt", "trunc",
    "absi", "ctlz", "cttz", "ctpop", "ipowi", "fpowi",
}  # fmt: skip


def test_every_operation_of_math_is_expanded_or_exact() -> None:
    names = {op.name.removeprefix("math.") for op in math.Math.operations}
    assert names - EXACT_OPS == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_vectors_get_the_same_operations_on_vectors(name: str) -> None:
    scalar, wide = expanded(name, f32), expanded(name, VectorType(f32, [2, 4]))
    assert [op.name for op in scalar.ops] == [op.name for op in wide.ops]
    for op in wide.ops:
        for result in op.results:
            assert isinstance(result.type, VectorType)
            assert result.type.get_shape() == (2, 4)


def test_constants_stand_once_at_the_start_of_each_function() -> None:
    module = two_functions()
    ExpandMathPass().apply(Context(), module)
    for function in module.body.block.ops:
        assert isinstance(function, func.FuncOp)
        ops = list(function.body.block.ops)
        constants = [op for op in ops if isinstance(op, arith.ConstantOp)]
        assert constants == ops[: len(constants)]
        assert len({str(op.value) for op in constants}) == len(constants)
    module.verify()


def two_functions() -> ModuleOp:
    functions = []
    for name in ("first", "second"):
        block = Block(arg_types=[f32])
        once = math.ExpOp(block.args[0])
        block.add_ops([once, twice := math.ExpOp(once.result), func.ReturnOp(twice.result)])
        functions.append(func.FuncOp(name, ([f32], [f32]), Region(block)))
    return ModuleOp(functions)


def test_exact_operations_stay() -> None:
    block = Block(arg_types=[f32])
    value = block.args[0]
    for kind in (math.FloorOp, math.CeilOp, math.TruncOp, math.RoundOp, math.SqrtOp, math.AbsFOp):
        block.add_op(op := kind(value))
        value = op.result
    block.add_op(func.ReturnOp(value))
    module = ModuleOp([func.FuncOp("f", ([f32], [f32]), Region(block))])
    before = str(module)
    ExpandMathPass().apply(Context(), module)
    assert str(module) == before


def test_a_type_without_an_expansion_is_an_error_in_words() -> None:
    with pytest.raises(UopcError, match=r"math\.exp on f128 has no expansion") as caught:
        expanded("exp", f128)
    assert caught.value.kind == "unsupported-type"
    assert caught.value.pass_name == "expand-math"
