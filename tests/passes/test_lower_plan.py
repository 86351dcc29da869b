"""lower-plan: what it refuses, and whole programs down to the linear form."""

import pytest
from xdsl.dialects import func

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import maximum, minimum, symbol
from uopc.dialects.locations import parse_text
from uopc.passes.index_arith import IndexArith
from uopc.passes.scalar_builder import INDEX, ScalarBuilder

LINEAR = "kernelize,dedupe-kernels,plan-memory,rangeify,prune-parameters,linearize,lower-plan"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            "%o = ukernel.output : memref<4xf32>\n%t = ukernel.temp : memref<4xf32>\n"
            "ukernel.return %o : memref<4xf32>",
            "temp-not-placed",
            "a temporary of @f has no place in the workspace",
        ),
        (
            "%o = ukernel.output : memref<4xf32>\n%t = ukernel.temp at 56 : memref<4xf32>\n"
            "ukernel.return %o : memref<4xf32>",
            "temp-not-placed",
            "lies at byte 56 and has 16 bytes",
        ),
        (
            "%o = ukernel.output : memref<4xf32>\n%t = ukernel.temp at 2 : memref<4xf32>\n"
            "ukernel.return %o : memref<4xf32>",
            "temp-not-placed",
            "expected a multiple of its element's size",
        ),
        (
            "%t = ukernel.temp at 0 : memref<4xf32>\nukernel.return %t : memref<4xf32>",
            "bad-result",
            "plan @f: result 0 is a 'ukernel.temp'",
        ),
        (
            "%o = ukernel.output : memref<4xf32>\nukernel.return",
            "bad-result",
            "plan @f: an output is not returned",
        ),
    ],
)
def test_refuses_in_words(run_pipeline, body, kind, message):
    text = f"ukernel.plan @f ins() attributes {{workspace = 64 : i64}} {{\n{body}\n}}"
    with pytest.raises(UopcError) as caught:
        run_pipeline(parse_text(text, "bad.mlir"), "lower-plan")
    assert caught.value.kind == kind
    assert message in caught.value.message
    assert caught.value.location.file == "bad.mlir"
    assert caught.value.pass_name == "lower-plan"


def test_kernels_must_be_linear(graph, run_pipeline):
    module = graph.module(graph.op("neg", graph.input("x", (4,))))
    with pytest.raises(UopcError, match="kernel @e_4 is not lowered to loops") as caught:
        run_pipeline(module, "kernelize,plan-memory,lower-plan")
    assert "linearize" in caught.value.hint


@pytest.mark.parametrize("fuse", ["none", "auto"])
def test_softmax_becomes_one_public_function(graph, run_pipeline, fuse):
    module = graph.module(graph.softmax(graph.input("x", (4, 8))))
    run_pipeline(module, LINEAR.replace("kernelize", f"kernelize{{fuse-reduce={fuse}}}"))
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    public = [f for f in functions if f.sym_visibility is None]
    assert [f.sym_name.data for f in public] == ["main"]
    assert len(functions) == (4 if fuse == "none" else 2)
    assert len(public[0].args) == (3 if fuse == "none" else 2)


def test_equal_constants_of_several_plans_are_one_global(run_pipeline):
    function = (
        "func.func @{0}(%x : tensor<2xf32>) -> tensor<2xf32> {{\n"
        "  %c = utensor.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
        "  %0 = utensor.{1} %x, %c : tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}}\n"
    )
    text = function.format("f", "add") + function.format("g", "mul")
    module = run_pipeline(parse_text(text), LINEAR)
    assert sum(op.name == "memref.global" for op in module.body.block.ops) == 1


MEANINGS = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": lambda a, b: a // b if min(a, b) >= 0 else None,
    "arith.remui": lambda a, b: a % b if min(a, b) >= 0 else None,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.minsi": min,
    "arith.maxsi": max,
}


def evaluated(block, arguments):
    """What a block of index arithmetic returns; unsigned ops must not see a negative number."""
    values = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values[o] for o in op.operands]
        if op.name == "func.return":
            return operands
        if op.name == "arith.constant":
            values[op.results[0]] = op.value.value.data
        else:
            values[op.results[0]] = MEANINGS[op.name](*operands)
    raise AssertionError("no return")


def test_index_arithmetic_is_that_of_the_expression():
    n, m = symbol("n", 0, 20), symbol("m", 1, 7)
    expressions = [
        n * 3 + m * 2 - 7,
        n * m * m,
        (n + 5) // m,
        (n - 9) // 4,
        (n * 5 - 30) % 8,
        (n + 1) % m,
        minimum(n, m * 2) + maximum(n - m, 0) * 3,
        n - n + 4,
    ]
    sizes = (n.leaf, m.leaf)
    function = func.FuncOp("f", ([INDEX, INDEX], [INDEX] * len(expressions)))
    block = function.body.block
    arithmetic = IndexArith(ScalarBuilder(block), dict(zip(sizes, block.args, strict=True)))
    block.add_op(func.ReturnOp(*(arithmetic.index(e) for e in expressions)))
    function.verify()
    for a in range(21):
        for b in range(1, 8):
            expected = [e.evaluate({n: a, m: b}) for e in expressions]
            assert evaluated(block, (a, b)) == expected
