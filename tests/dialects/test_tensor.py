"""The ops of utensor: result types, text in both forms, and every message word for word."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnrankedTensorType,
    f32,
    f80,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ELEMENT_TYPES, element_type_named
from uopc.dialects.index_expr import symbol
from uopc.dialects.numbers import dense_of_array
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import SizesAttr, tensor_type

N = symbol("n", 1, 64)
SHAPES = [(), (0,), (1, 0), (2, 3), (N, 3), (2 * N - 1,)]
F32 = element_type_named("f32").attribute


def tensor(element, *shape):
    attribute = element_type_named(element).attribute if isinstance(element, str) else element
    return tensor_type(attribute, shape)


def value(element, *shape):
    return Block(arg_types=[tensor(element, *shape)]).args[0]


def printed(module, *, generic: bool) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def result_of(make, *types):
    """Build an op by `make(*values)`, check that both text forms read back, and its type."""
    block = Block(arg_types=list(types))
    op = make(*block.args)
    block.add_ops([op, ReturnOp(op.results[0])])
    kind = FunctionType.from_lists(list(types), [op.results[0].type])
    module = ModuleOp([FuncOp("f", kind, Region(block))])
    module.verify()
    for generic in (False, True):
        text = printed(module, generic=generic)
        again = parse(text)
        again.verify()
        assert module.is_structurally_equivalent(again), text
        assert printed(again, generic=generic) == text
    return op.results[0].type


def refused(message, make, *arguments):
    with pytest.raises(VerifyException) as caught:
        make(*arguments).verify()
    assert str(caught.value) == message


ROWS = [
    pytest.param(op, row, id=f"{op.name}-{row.name}")
    for op in (*e.UNARY_OPS, *e.BINARY_OPS)
    for row in ELEMENT_TYPES
    if row.kind in op.KINDS
]


@pytest.mark.parametrize(("op_type", "row"), ROWS)
def test_elementwise(op_type, row):
    for shape in SHAPES:
        kind = tensor(row.attribute, *shape)
        count = 1 if op_type in e.UNARY_OPS else 2
        expected = tensor(i1, *shape) if op_type in e.COMPARE_OPS else kind
        assert result_of(op_type, *[kind] * count) == expected


@pytest.mark.parametrize("op_type", [*e.UNARY_OPS, *e.BINARY_OPS], ids=lambda op: op.name)
def test_elementwise_refuses_other_kinds(op_type):
    words = {"float": "float", "signed": "signed", "unsigned": "unsigned", "bool": "i1"}
    expected = [words[kind] for kind in op_type.KINDS]
    listed = expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"
    arity = 1 if op_type in e.UNARY_OPS else 2
    for row in ELEMENT_TYPES:
        if row.kind not in op_type.KINDS:
            refused(
                f"{op_type.name}: expected {listed} elements, got tensor<2x{row.name}>",
                op_type,
                *[value(row.name, 2)] * arity,
            )


def test_elementwise_operands_are_of_one_type():
    a, b = value("f32", 2), value("f32", 3)
    refused("operand 1 of utensor.add: expected tensor<2xf32>, got tensor<3xf32>", e.AddOp, a, b)
    refused(
        "operand 1 of utensor.cmplt: expected tensor<2xf32>, got tensor<2xf64>",
        e.CmpltOp,
        a,
        value("f64", 2),
    )
    refused(
        "result of utensor.neg: expected tensor<2xf32>, got tensor<3xf32>",
        lambda: e.NegOp.create(operands=[a], result_types=[b.type]),
    )
    refused(
        "result of utensor.cmpeq: expected tensor<2xi1>, got tensor<2xf32>",
        lambda: e.CmpeqOp.create(operands=[a, a], result_types=[a.type]),
    )


def test_types_that_utensor_does_not_have():
    names = "f64, f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 or ui64"
    refused(
        f"element type f80 of tensor<2xf80> is not supported: expected {names}",
        lambda: e.AddOp(*[Block(arg_types=[TensorType(f80, [2])]).args[0]] * 2),
    )
    with pytest.raises(VerifyException, match=r"^expected a ranked tensor, got f32$"):
        e.NegOp(Block(arg_types=[f32]).args[0])
    with pytest.raises(VerifyException, match=r"^expected a ranked tensor, got tensor<\*xf32>$"):
        e.NegOp(Block(arg_types=[UnrankedTensorType(f32)]).args[0])
    refused(
        "tensor<?xf32> has a dynamic size without bounds: expected an encoding such as "
        "#utensor.sizes<[n], n = 1 to 64>",
        lambda: e.NegOp(Block(arg_types=[TensorType(f32, [DYNAMIC_INDEX])]).args[0]),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_where(shape):
    for row in ELEMENT_TYPES:
        kind = tensor(row.attribute, *shape)
        assert result_of(e.WhereOp, tensor(i1, *shape), kind, kind) == kind


def test_where_refuses():
    c, a, b = value("i1", 2), value("f32", 2), value("f32", 3)
    refused(
        "operand 2 of utensor.where: expected tensor<2xf32>, got tensor<3xf32>", e.WhereOp, c, a, b
    )
    refused("the condition: expected tensor<2xi1>, got tensor<2xf32>", e.WhereOp, a, a, a)
    refused("the condition: expected tensor<3xi1>, got tensor<2xi1>", e.WhereOp, c, b, b)


@pytest.mark.parametrize("source", ELEMENT_TYPES, ids=lambda row: row.name)
def test_cast_and_bitcast(source):
    for target in ELEMENT_TYPES:
        for shape in ((), (2, 0), (N, 3)):
            kind = tensor(source.attribute, *shape)
            expected = tensor(target.attribute, *shape)
            assert result_of(lambda x, to=target: e.CastOp(x, to.attribute), kind) == expected
            if source.bits == target.bits:
                got = result_of(lambda x, to=target: e.BitcastOp(x, to.attribute), kind)
                assert got == expected
            else:
                refused(
                    f"bitcast keeps the width: expected {source.bits} bits, got {target.name}",
                    e.BitcastOp,
                    value(source.name, 2),
                    target.attribute,
                )
    refused(
        "result of utensor.cast: expected tensor<2xi32>, got tensor<3xi32>",
        lambda: e.CastOp.create(operands=[value("f32", 2)], result_types=[TensorType(i32, [3])]),
    )


def test_movement():
    x = tensor("f32", 4, 6)
    assert result_of(lambda v: m.ReshapeOp(v, (2, 12)), x) == tensor("f32", 2, 12)
    assert result_of(lambda v: m.ReshapeOp(v, (24,)), x) == tensor("f32", 24)
    assert result_of(lambda v: m.ReshapeOp(v, ()), tensor("f32", 1)) == tensor("f32")
    assert result_of(lambda v: m.PermuteOp(v, (1, 0)), x) == tensor("f32", 6, 4)
    assert result_of(lambda v: m.PermuteOp(v, ()), tensor("f32")) == tensor("f32")
    assert result_of(lambda v: m.ExpandOp(v, (3, 6)), tensor("f32", 1, 6)) == tensor("f32", 3, 6)
    assert result_of(lambda v: m.ExpandOp(v, (0, 6)), tensor("f32", 1, 6)) == tensor("f32", 0, 6)
    assert result_of(lambda v: m.FlipOp(v, (1,)), x) == x
    assert result_of(lambda v: m.ShrinkOp(v, (1, 0), (4, 5)), x) == tensor("f32", 3, 5)
    assert result_of(lambda v: m.ShrinkOp(v, (0, 0), (4, 6), (3, 7)), x) == tensor("f32", 2, 1)
    assert result_of(lambda v: m.ShrinkOp(v, (4, 2), (4, 2)), x) == tensor("f32", 0, 0)
    assert result_of(lambda v: m.PadOp(v, (1, 0), (0, 2), 1.5), x) == tensor("f32", 5, 8)
    for kind in t.STAGE_KINDS:
        assert result_of(lambda v, k=kind: t.StageOp(v, k), x) == x


def test_movement_with_symbols():
    x = tensor("i32", N, 6)
    assert result_of(lambda v: m.ReshapeOp(v, (6 * N,)), x) == tensor("i32", 6 * N)
    assert result_of(lambda v: m.ReshapeOp(v, (3, N, 2)), x) == tensor("i32", 3, N, 2)
    assert result_of(lambda v: m.PermuteOp(v, (1, 0)), x) == tensor("i32", 6, N)
    one = tensor("i32", 1, 6)
    assert result_of(lambda v: m.ExpandOp(v, (N + 2, 6)), one) == tensor("i32", N + 2, 6)
    assert result_of(lambda v: m.ShrinkOp(v, (1, 0), (N, 6)), x) == tensor("i32", N - 1, 6)
    stepped = result_of(lambda v: m.ShrinkOp(v, (0, 0), (N, 6), (2, 1)), x)
    assert stepped == tensor("i32", (N + 1) // 2, 6)
    assert result_of(lambda v: m.PadOp(v, (N, 0), (1, 0), 7), x) == tensor("i32", 2 * N + 1, 6)
    assert result_of(lambda v: t.ReduceOp("add", v, (1,)), x) == tensor("i32", N)
    assert result_of(lambda v: t.ArgreduceOp("max", v, 0), x) == tensor("i32", 6)
    assert result_of(lambda: t.IotaOp(0, x)) == x
    assert result_of(lambda: t.ConstantOp(3, x)) == x


def test_movement_refuses():
    x, s = value("f32", 4, 6), value("f32")
    refused(
        "reshape keeps the number of elements: expected 24, got 25 in 5x5", m.ReshapeOp, x, (5, 5)
    )
    refused(
        "reshape keeps the number of elements: expected n, got 64 in 64",
        m.ReshapeOp,
        value("f32", N),
        (64,),
    )
    refused("permute needs each axis once: expected 2 axes, got [0]", m.PermuteOp, x, (0,))
    refused("permute: expected distinct axes, got [0, 0]", m.PermuteOp, x, (0, 0))
    refused("permute: axis 2 is out of range, expected 0 to 1 for rank 2", m.PermuteOp, x, (0, 2))
    refused("expand keeps the rank: expected 2, got 1; reshape first", m.ExpandOp, x, (24,))
    refused("expand repeats axes of size 1: axis 0 has size 4, got 8", m.ExpandOp, x, (8, 6))
    refused("flip: axis -1 is out of range, expected 0 to 1 for rank 2", m.FlipOp, x, (-1,))
    refused("flip: axis 0 is out of range, a tensor of rank 0 has no axes", m.FlipOp, s, (0,))
    refused(
        "shrink needs a begin, an end and a step an axis: expected 2 of each, got 1, 2 and 1",
        m.ShrinkOp,
        x,
        (0,),
        (4, 6),
    )
    refused("shrink: step 0 of axis 0: expected at least 1", m.ShrinkOp, x, (0, 0), (4, 6), (0, 1))
    for begin, end in ((-1, 4), (3, 2), (0, 5)):
        refused(
            f"shrink: axis 0 of size 4 has no elements {begin} to {end}: expected "
            "0 <= begin <= end <= size",
            m.ShrinkOp,
            x,
            (begin, 0),
            (end, 6),
        )
    refused(
        "shrink: axis 0 of size n has no elements 0 to 2: expected 0 <= begin <= end <= size",
        m.ShrinkOp,
        value("f32", N),
        (0,),
        (2,),
    )
    refused(
        "pad needs a low and a high an axis: expected 2 of each, got 1 and 2",
        m.PadOp,
        x,
        (1,),
        (0, 0),
    )
    refused(
        "pad: axis 1 is padded by -1: expected at least 0; shrink removes",
        m.PadOp,
        x,
        (0, -1),
        (0, 0),
    )
    refused(
        "the value of utensor.pad: expected f32, got i32",
        m.PadOp,
        x,
        (0, 0),
        (0, 0),
        IntegerAttr(1, i32),
    )
    refused("unknown kind 'copy': expected contiguous or detach", t.StageOp, x, "copy")
    refused(
        "result of utensor.flip: expected tensor<4x6xf32>, got tensor<4xf32>",
        lambda: m.FlipOp.create(
            operands=[x],
            result_types=[TensorType(f32, [4])],
            properties={"axes": m.ints([])},
        ),
    )


def test_axes_are_an_array_of_i64():
    op = m.FlipOp(value("f32", 4, 6), (0,))
    op.properties["axes"] = DenseArrayBase.from_list(i32, [0])
    with pytest.raises(VerifyException):
        op.verify()


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_reduce(row):
    for shape, axes, left in (
        ((4, 6), (1,), (4,)),
        ((4, 6), (1, 0), ()),
        ((4, 0), (1,), (4,)),
        ((), (), ()),
        ((N, 2, 3), (0, 2), (2,)),
    ):
        kind = tensor(row.attribute, *shape)
        for how in t.REDUCE_KINDS:
            if how in t.BIT_KINDS and row.is_float:
                refused(
                    f"kind {how}: expected signed, unsigned or i1 elements, got {kind}",
                    lambda k=kind, h=how, a=axes: t.ReduceOp(h, Block(arg_types=[k]).args[0], a),
                )
            else:
                got = result_of(lambda x, h=how, a=axes: t.ReduceOp(h, x, a), kind)
                assert got == tensor(row.attribute, *left)
    for how in ("max", "min"):
        kind = tensor(row.attribute, 4, 6)
        got = result_of(lambda x, h=how: t.ArgreduceOp(h, x, 0), kind)
        assert got == tensor("i32", 6)
        got = result_of(lambda x, h=how: t.ArgreduceOp(h, x, 1, i64), kind)
        assert got == tensor("i64", 4)


def test_reduce_refuses():
    x = value("f32", 4, 6)
    refused(
        "unknown kind 'mean': expected one of add, mul, max, min, and, or, xor",
        t.ReduceOp,
        "mean",
        x,
        (0,),
    )
    refused("reduce: expected distinct axes, got [0, 0]", t.ReduceOp, "add", x, (0, 0))
    refused(
        "reduce: axis 2 is out of range, expected 0 to 1 for rank 2", t.ReduceOp, "add", x, (2,)
    )
    refused("unknown kind 'add': expected max or min", t.ArgreduceOp, "add", x, 0)
    refused("positions are i32 or i64, got f32", t.ArgreduceOp, "max", x, 0, f32)
    refused(
        "argreduce needs at least one element along axis 1, got size 0",
        t.ArgreduceOp,
        "max",
        value("f32", 4, 0),
        1,
    )
    refused(
        "argreduce needs at least one element along axis 0, got size n - 1",
        t.ArgreduceOp,
        "min",
        value("f32", N - 1),
        0,
    )
    refused(
        "reduce: axis 0 is out of range, a tensor of rank 0 has no axes",
        t.ArgreduceOp,
        "max",
        value("f32"),
        0,
    )


def test_gather_and_scatter():
    for shape, index, axis, expected in (
        ((4, 6), (3,), 0, (3, 6)),
        ((4, 6), (), 1, (4,)),
        ((4, 6), (2, 0), 1, (4, 2, 0)),
        ((4,), (N, 2), 0, (N, 2)),
        ((N, 6), (5,), 0, (5, 6)),
    ):
        for name in ("i32", "i64", "ui8"):
            x, i = tensor("f32", *shape), tensor(name, *index)
            result = tensor("f32", *expected)
            assert result_of(lambda x, i, a=axis: t.GatherOp(x, i, a), x, i) == result
            for kind in ("set", "add", "mul", "max", "min"):
                make = lambda x, i, u, a=axis, k=kind: t.ScatterOp(k, x, i, u, a)  # noqa: E731
                assert result_of(make, x, i, result) == x


def test_gather_and_scatter_refuse():
    x, i, u = value("f32", 4, 6), value("i32", 3), value("f32", 3, 6)
    message = "the indices: expected signed or unsigned elements, got tensor<3xf32>"
    refused(message, t.GatherOp, x, value("f32", 3), 0)
    refused(message, t.ScatterOp, "add", x, value("f32", 3), u, 0)
    refused("gather: axis 2 is out of range, expected 0 to 1 for rank 2", t.GatherOp, x, i, 2)
    refused("gather needs elements along axis 0, got size 0", t.GatherOp, value("f32", 0, 6), i, 0)
    refused(
        "scatter: axis 2 is out of range, expected 0 to 1 for rank 2",
        t.ScatterOp,
        "add",
        x,
        i,
        u,
        2,
    )
    refused(
        "the updates of utensor.scatter: expected tensor<4x3xf32>, got tensor<3x6xf32>",
        t.ScatterOp,
        "add",
        x,
        i,
        u,
        1,
    )
    refused(
        "unknown kind 'sub': expected one of set, add, mul, max, min, and, or, xor",
        t.ScatterOp,
        "sub",
        x,
        i,
        u,
        0,
    )
    refused(
        "kind or: expected signed, unsigned or i1 elements, got tensor<4x6xf32>",
        t.ScatterOp,
        "or",
        x,
        i,
        u,
        0,
    )


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_constants(row):
    for shape in SHAPES:
        kind = tensor(row.attribute, *shape)
        assert result_of(lambda k=kind: t.ConstantOp(1, k)) == kind
    if row.is_float:
        for number in (float("inf"), float("-inf"), float("nan"), -0.0, 0.1):
            result_of(lambda v=number: t.ConstantOp(v, tensor(row.attribute, 2)))
    for shape in ((), (3,), (2, 0), (5, 20)):
        array = np.arange(np.prod(shape)).reshape(shape).astype(row.numpy)
        dense = dense_of_array(array)
        make = lambda d=dense: t.ConstantOp(d, d.type)  # noqa: E731
        assert result_of(make) == tensor(row.attribute, *shape)


def test_constants_refuse():
    kind = tensor("f32", 2)
    number = IntegerAttr(1, i32)
    refused(
        "the value of utensor.constant: expected f32, got i32",
        lambda: t.ConstantOp.create(result_types=[kind], properties={"value": number}),
    )
    dense = dense_of_array(np.zeros(3, np.float32))
    refused(
        "the value of utensor.constant: expected tensor<2xf32>, got tensor<3xf32>",
        t.ConstantOp,
        dense,
        kind,
    )
    refused(
        'expected a number or a dense attribute, got "x"; dense_resource blobs are not supported, '
        "write the elements as dense<…>",
        lambda: t.ConstantOp.create(result_types=[kind], properties={"value": StringAttr("x")}),
    )
    refused("iota: expected float, signed or unsigned elements, got tensor<2xi1>",
            t.IotaOp, 0, tensor("i1", 2))  # fmt: skip
    refused("iota: axis 1 is out of range, expected 0 to 0 for rank 1", t.IotaOp, 1, kind)
    refused("iota: axis 0 is out of range, a tensor of rank 0 has no axes",
            t.IotaOp, 0, tensor("f32"))  # fmt: skip
    assert t.ConstantOp(1.5, kind).splat == FloatAttr(1.5, f32)
    assert t.ConstantOp(1.5, kind).dense is None
    assert t.ConstantOp(dense, dense.type).splat is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("utensor.add %x : tensor<4x6xf32>", "utensor.add expects 2 operands, got 1"),
        ("utensor.neg %x, %x : tensor<4x6xf32>", "utensor.neg expects 1 operands, got 2"),
        ("utensor.neg %x : f32", "expected a tensor type, got f32"),
        ("utensor.neg %x : tensor<?xf32>", "tensor<?xf32> has a dynamic size without bounds"),
        ("utensor.cmplt %x, %x : tensor<2xf80>", "element type f80 of tensor<2xf80>"),
        ("utensor.where %x, %x : tensor<4x6xf32>", "utensor.where expects 3 operands, got 2"),
        ("utensor.where %x, %x, %x : i32", "expected a tensor type, got i32"),
        ("utensor.reduce mean %x axes [0] : tensor<4x6xf32>", "unknown kind 'mean'"),
        ("utensor.reduce add %x axes [7] : tensor<4x6xf32>", "axis 7 is out of range"),
        ("utensor.permute %x [0] : tensor<4x6xf32>", "permute needs each axis once"),
        ("utensor.gather %x, %x : tensor<4x6xf32>, tensor<4x6xf32>", "Expected 'axis'"),
        (
            "utensor.gather %x axis 0 : tensor<4x6xf32>",
            "expected 2 operands and as many types, got 1 and 1",
        ),
        ("utensor.gather %x, %x axis 7 : tensor<4x6xf32>, tensor<4x6xf32>", "axis 7 is out"),
        ("utensor.constant 300 : tensor<2xui8>", "expected a number from 0 to 255 for ui8"),
        ("utensor.constant 1.5 : tensor<2xi8>", "expected an integer for i8, got 1.5"),
        ("utensor.constant 1.5 : f32", "expected a tensor type, got f32"),
        ("utensor.constant big : tensor<2xi8>", "expected a number, inf, nan, true or false"),
        (
            "utensor.pad %x low [0, 0] high [0, 0] value 2.0 : f32",
            "operand is used with type f32",
        ),
        ("utensor.pad %i low [0] high [0] value 1.5 : tensor<3xi8>", "expected an integer for i8"),
        ("utensor.shrink %x [0, 0] to [n, 6] : tensor<4x6xf32>", "the size 'n' has no bounds"),
    ],
)
def test_mistakes_in_text(line, message):
    text = f"""func.func @f(%x: tensor<4x6xf32>, %i: tensor<3xi8>) {{
      %r = {line}
      func.return
    }}"""
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_types_that_text_may_leave_out():
    module = parse("""
      %x = "test.op"() : () -> tensor<4x6xf32>
      %i = "test.op"() : () -> tensor<3xi64>
      %u = "test.op"() : () -> tensor<3x6xf32>
      %0 = utensor.reduce add %x axes [0] : tensor<4x6xf32>
      %1 = utensor.argreduce max %x axis 1 : tensor<4x6xf32>
      %2 = utensor.permute %x [1, 0] : tensor<4x6xf32>
      %3 = utensor.shrink %x [0, 1] to [4, 6] step [2, 1] : tensor<4x6xf32>
      %4 = utensor.pad %x low [0, 1] high [0, 1] value 0 : tensor<4x6xf32>
      %5 = utensor.gather %x, %i axis 1 : tensor<4x6xf32>, tensor<3xi64>
      %6 = utensor.scatter set %x, %i, %u axis 0 : tensor<4x6xf32>, tensor<3xi64>, tensor<3x6xf32>
      %7 = utensor.stage %x : tensor<4x6xf32>
    """)
    module.verify()
    ops = [op for op in module.body.block.ops if op.name.startswith("utensor")]
    types = [str(op.results[0].type) for op in ops]
    assert types == [
        "tensor<6xf32>", "tensor<4xi32>", "tensor<6x4xf32>", "tensor<2x5xf32>",
        "tensor<4x8xf32>", "tensor<4x3xf32>", "tensor<4x6xf32>", "tensor<4x6xf32>",
    ]  # fmt: skip
    assert ops[-1].kind.data == "contiguous"


def test_attributes_survive():
    for line in (
        "utensor.add %x, %x {note = 1 : i64} : tensor<4xf32>",
        "utensor.cast %x {note = 1 : i64} : tensor<4xf32> -> tensor<4xi32>",
        "utensor.flip %x [0] {note = 1 : i64} : tensor<4xf32> -> tensor<4xf32>",
        "utensor.stage detach %x {note = 1 : i64} : tensor<4xf32>",
        "utensor.iota axis 0 {note = 1 : i64} : tensor<4xf32>",
        "utensor.constant {note = 1 : i64} 1.0 : tensor<4xf32>",
        "utensor.where %c, %x, %x {note = 1 : i64} : tensor<4xf32>",
    ):
        module = parse(f"""
          %x = "test.op"() : () -> tensor<4xf32>
          %c = "test.op"() : () -> tensor<4xi1>
          %r = {line}""")
        assert module.body.block.last_op.attributes["note"] == IntegerAttr(1, i64)
        assert f"%r = {line}" in printed(module, generic=False)


def test_sizes_attribute_is_the_dialects():
    assert SizesAttr in t.UTensor.attributes
    assert len({op.name for op in t.UTensor.operations}) == len(list(t.UTensor.operations))
