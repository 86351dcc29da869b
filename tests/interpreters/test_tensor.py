"""Movement ops, whole functions, symbolic sizes and the interpreter framework."""

from __future__ import annotations

import math
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import Interpreter
from xdsl.interpreters.func import FuncFunctions
from xdsl.parser import Parser

from uopc.dialects import tensor as t
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ELEMENT_TYPES, element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import symbol
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor import UTensor
from uopc.interpreters.tensor import TENSOR_SEMANTICS, TensorFunctions, run_function


def parse(text: str) -> ModuleOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


def test_every_op_has_a_meaning():
    assert set(TENSOR_SEMANTICS) == set(UTensor.operations)


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_movement(ops, row):
    x = np.arange(12).reshape(3, 4).astype(row.numpy)
    run = lambda make: ops.run(make, x, names=[row.name])  # noqa: E731
    one = row.numpy.type(1)
    assert np.array_equal(run(lambda v: m.ReshapeOp(v, (2, 6))), x.reshape(2, 6))
    assert np.array_equal(run(lambda v: m.PermuteOp(v, (1, 0))), x.T)
    assert np.array_equal(run(lambda v: m.FlipOp(v, (0, 1))), x[::-1, ::-1])
    assert np.array_equal(run(lambda v: m.FlipOp(v, ())), x)
    assert np.array_equal(run(lambda v: m.ShrinkOp(v, (1, 0), (3, 4), (1, 3))), x[1:3, 0:4:3])
    assert run(lambda v: m.ShrinkOp(v, (3, 2), (3, 2))).shape == (0, 0)
    padded = run(lambda v: m.PadOp(v, (1, 0), (0, 2), 1))
    assert np.array_equal(padded[1:, :4], x)
    assert (padded[0] == one).all() and (padded[:, 4:] == one).all()
    column = x[:, :1]
    wide = ops.run(lambda v: m.ExpandOp(v, (3, 5)), column, names=[row.name])
    assert np.array_equal(wide, np.repeat(column, 5, axis=1))
    assert np.array_equal(run(lambda v: t.StageOp(v, "detach")), x)


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_rank_zero_and_size_zero(ops, row):
    # C31, C32
    one = np.ones((), row.numpy)
    run = lambda make, x=one: ops.run(make, x, names=[row.name])  # noqa: E731
    assert run(lambda v: m.ReshapeOp(v, (1, 1))).tolist() == [[one.item()]]
    for make in (
        lambda v: m.PermuteOp(v, ()),
        lambda v: m.FlipOp(v, ()),
        lambda v: m.ExpandOp(v, ()),
        lambda v: m.ShrinkOp(v, (), ()),
        lambda v: m.PadOp(v, (), (), 0),
        lambda v: t.ReduceOp("add", v, ()),
        lambda v: t.ReduceOp("max", v, ()),
    ):
        assert run(make) == one
    empty = np.zeros((0, 4), row.numpy)
    assert run(lambda v: m.ReshapeOp(v, (2, 0, 9)), empty).shape == (2, 0, 9)
    assert run(lambda v: m.PadOp(v, (2, 0), (0, 0), 1), empty).tolist() == [[one.item()] * 4] * 2
    assert run(lambda v: m.ExpandOp(v, (0, 4)), np.zeros((1, 4), row.numpy)).shape == (0, 4)


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_constants_and_iota(ops, row):
    kind = tensor_type(row.attribute, (2, 3))
    got = ops.run(lambda: t.ConstantOp(1, kind), names=[])
    assert got.tolist() == [[row.numpy.type(1).item()] * 3] * 2
    if not row.is_bool:
        got = ops.run(lambda: t.IotaOp(1, kind), names=[])
        assert got.tolist() == [[0, 1, 2]] * 2
    for value in ops.edges(row.name).tolist():
        got = ops.run(lambda v=value: t.ConstantOp(v, kind), names=[]).ravel()[0].item()
        assert got == value or (math.isnan(got) and math.isnan(value))


def test_iota_wraps_and_rounds_as_a_cast_does(ops):
    long = 3000
    for name, at_300, at_2049 in (("i8", 44, 1), ("ui8", 44, 1), ("f16", 300, 2048)):
        kind = tensor_type(ops.row(name).attribute, (long,))
        got = ops.run(lambda k=kind: t.IotaOp(0, k), names=[])
        assert (got[300], got[2049]) == (at_300, at_2049)


SOFTMAX = """
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = utensor.reduce max %x axes [1] : tensor<4x8xf32>
  %m1 = utensor.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %m2 = utensor.expand %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = utensor.sub %x, %m2 : tensor<4x8xf32>
  %e = utensor.exp %d : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [1] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
  %s2 = utensor.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %r = utensor.div %e, %s2 : tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}
"""


def test_softmax():
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (got,) = run_function(parse(SOFTMAX), "softmax", [x])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(got, e / e.sum(axis=1, keepdims=True), rtol=1e-6)


def test_softmax_of_many_equal_halves(ops):
    # C23
    text = (
        SOFTMAX.replace("4x8x", "1x512x").replace("4x1x", "1x1x").replace("tensor<4x", "tensor<1x")
    )
    x = np.full((1, 512), 3.0, ml_dtypes.bfloat16)
    (got,) = run_function(parse(text.replace("f32", "bf16")), "softmax", [x])
    assert (got == 1 / 512).all()


SYMBOLIC = """
func.func @f(%x: tensor<?x3xf32, #utensor.sizes<[2*n + 1, 3], n = 0 to 64>>) ->
    (tensor<?xf32, #utensor.sizes<[6*n + 3], n = 0 to 64>>,
     tensor<?x3xf32, #utensor.sizes<[n, 3], n = 0 to 64>>,
     tensor<?xi32, #utensor.sizes<[n + 4], n = 0 to 64>>) {
  %r = utensor.reshape %x : tensor<?x3xf32, #utensor.sizes<[2*n + 1, 3], n = 0 to 64>>
    -> tensor<?xf32, #utensor.sizes<[6*n + 3], n = 0 to 64>>
  %s = utensor.shrink %x [n, 0], n = 0 to 64 to [2*n, 3], n = 0 to 64
    : tensor<?x3xf32, #utensor.sizes<[2*n + 1, 3], n = 0 to 64>>
  %i = utensor.iota axis 0 : tensor<?xi32, #utensor.sizes<[n], n = 0 to 64>>
  %p = utensor.pad %i low [1] high [3] value 7 : tensor<?xi32, #utensor.sizes<[n], n = 0 to 64>>
  func.return %r, %s, %p : tensor<?xf32, #utensor.sizes<[6*n + 3], n = 0 to 64>>,
    tensor<?x3xf32, #utensor.sizes<[n, 3], n = 0 to 64>>,
    tensor<?xi32, #utensor.sizes<[n + 4], n = 0 to 64>>
}
"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_sizes_are_told_by_shapes(n):
    x = np.arange((2 * n + 1) * 3, dtype=np.float32).reshape(-1, 3)
    flat, part, padded = run_function(parse(SYMBOLIC), "f", [x])
    assert np.array_equal(flat, x.ravel())
    assert np.array_equal(part, x[n : 2 * n])
    assert padded.tolist() == [7, *range(n), 7, 7, 7]


def fails(kind, message, *arguments, **named):
    with pytest.raises(UopcError) as caught:
        run_function(*arguments, **named)
    assert (caught.value.kind, caught.value.message) == (kind, message)
    return caught.value


def test_inputs_that_do_not_fit():
    module = parse(SYMBOLIC)
    x = np.zeros((4, 3), np.float32)
    fails("index-unbound", "no value is given for 'n'", module, "f", [x])
    fails(
        "bad-input",
        "input 0 of @f has shape (5, 4), expected (5, 3) (2*n+1x3 for n = 2)",
        module,
        "f",
        [np.zeros((5, 4), np.float32)],
    )
    fails(
        "bad-input",
        "input 0 of @f has shape (5, 3), expected (3, 3) (2*n+1x3 for n = 1)",
        module,
        "f",
        [np.zeros((5, 3), np.float32)],
        symbols={"n": 1},
    )
    fails(
        "symbol-out-of-bounds",
        "size 'n' is 65, expected 0 to 64",
        module,
        "f",
        [np.zeros((131, 3), np.float32)],
    )
    fails(
        "bad-input",
        "input 0 of @f has shape (3,), expected 2*n+1x3",
        module,
        "f",
        [np.zeros(3, np.float32)],
    )
    fails("bad-input", "@f takes 1 inputs, got 0", module, "f", [])
    fails(
        "bad-input",
        "input 0 of @f has dtype float64, expected float32",
        module,
        "f",
        [np.zeros((5, 3))],
    )
    error = fails("no-function", "there is no function @g with a body", module, "g", [x])
    assert error.hint == "there are @f"


def test_foreign_ops_are_refused():
    module = parse("""
      func.func private @g(tensor<2xf32>) -> tensor<2xf32>
      func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
        %y = func.call @g(%x) : (tensor<2xf32>) -> tensor<2xf32>
        func.return %y : tensor<2xf32>
      }""")
    message = "'func.call' has no meaning at the level of utensor"
    error = fails("not-interpreted", message, module, "f", [np.zeros(2, np.float32)])
    assert "func.call" in error.op_text


def test_results_do_not_share_memory_with_inputs():
    module = parse("""
      func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
        func.return %x, %x : tensor<2xf32>, tensor<2xf32>
      }""")
    x = np.zeros(2, np.float32)
    first, second = run_function(module, "f", [x])
    first += 1
    assert not x.any() and not second.any()


def test_a_long_chain_neither_recurses_nor_keeps_its_values():
    lines = [f"%{k + 1} = utensor.add %{k}, %{k} : tensor<1000xi32>" for k in range(1500)]
    module = parse(
        "func.func @f(%0: tensor<1000xi32>) -> tensor<1000xi32> {"
        + "\n".join(lines)
        + "func.return %1500 : tensor<1000xi32> }"
    )

    x = np.ones(1000, np.int32)
    tracemalloc.start()
    (got,) = run_function(module, "f", [x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not got.any()
    assert peak < 2_000_000  # 1500 values would be 6 MB


def test_on_the_interpreter_framework():
    interpreter = Interpreter(parse(SOFTMAX))
    interpreter.register_implementations(TensorFunctions())
    interpreter.register_implementations(FuncFunctions())
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (got,) = interpreter.call_op("softmax", (x,))
    (expected,) = run_function(parse(SOFTMAX), "softmax", [x])
    assert np.array_equal(got, expected)


def test_the_framework_takes_sizes():
    n = symbol("n", 0, 64)
    op = t.IotaOp(0, tensor_type(element_type(ELEMENT_TYPES[7].attribute).attribute, (n + 1,)))
    functions = TensorFunctions({"n": 2})
    interpreter = Interpreter(ModuleOp([op]))
    interpreter.register_implementations(functions)
    (got,) = interpreter.run_op(op, ())
    assert got.tolist() == [0, 1, 2]


def test_a_matrix_product_with_empty_sides():
    # C31
    text = """
    func.func @f(%a: tensor<MxKxf32>, %b: tensor<KxNxf32>) -> tensor<MxNxf32> {
      %a1 = utensor.reshape %a : tensor<MxKxf32> -> tensor<Mx1xKxf32>
      %a2 = utensor.expand %a1 : tensor<Mx1xKxf32> -> tensor<MxNxKxf32>
      %bt = utensor.permute %b [1, 0] : tensor<KxNxf32>
      %b1 = utensor.reshape %bt : tensor<NxKxf32> -> tensor<1xNxKxf32>
      %b2 = utensor.expand %b1 : tensor<1xNxKxf32> -> tensor<MxNxKxf32>
      %p = utensor.mul %a2, %b2 : tensor<MxNxKxf32>
      %r = utensor.reduce add %p axes [2] : tensor<MxNxKxf32>
      func.return %r : tensor<MxNxf32>
    }"""
    for rows, inner, columns in ((0, 4, 3), (3, 0, 4), (2, 3, 0), (2, 3, 4), (1, 1, 1)):
        sized = text.replace("MxNxK", f"{rows}x{columns}x{inner}")
        sized = sized.replace("Mx1xK", f"{rows}x1x{inner}").replace("1xNxK", f"1x{columns}x{inner}")
        sized = sized.replace("MxK", f"{rows}x{inner}").replace("KxN", f"{inner}x{columns}")
        sized = sized.replace("NxK", f"{columns}x{inner}").replace("MxN", f"{rows}x{columns}")
        a = np.arange(rows * inner, dtype=np.float32).reshape(rows, inner)
        b = np.arange(inner * columns, dtype=np.float32).reshape(inner, columns)
        (got,) = run_function(parse(sized), "f", [a, b])
        assert np.array_equal(got, a @ b)
