"""describe: a plan op as the plain data that the runtime works from."""

import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import symbol
from uopc.dialects.kernel import PlanOp
from uopc.dialects.locations import parse_text
from uopc.lowering.describe import describe_plan, describe_plans
from uopc.lowering.plan import Buffer, Symbol


def described(module):
    (plan,) = (op for op in module.body.block.ops if isinstance(op, PlanOp))
    return describe_plan(plan, module)


def test_softmax(graph, run_pipeline):
    module = graph.module(graph.softmax(graph.input("x", (4, 8))))
    plan = described(run_pipeline(module, "kernelize,plan-memory"))
    assert plan.name == "main"
    assert plan.symbols == ()
    assert plan.inputs == (Buffer("in0", "x", "f32", (4, 8)),)
    assert plan.temps == (
        Buffer("tmp0", "tmp0", "f32", (4,), 0),
        Buffer("tmp1", "tmp1", "f32", (4,), 64),
    )
    assert plan.outputs == (Buffer("out0", "out0", "f32", (4, 8)),)
    assert plan.workspace_bytes == 128
    assert [(k.name, k.symbol, k.writes) for k in plan.kernels] == [
        ("r_4", "r_4", 1),
        ("r_4", "r_4$1", 1),
        ("e_4_8", "e_4_8", 1),
    ]
    assert plan.kernels[1].doc == "mul, add, mul, exp2, reduce add [1]"


def test_aliases_and_constants(run_pipeline):
    text = """
    func.func @f(%x : tensor<2x3xui8>, %y : tensor<3xf16>)
        -> (tensor<3xf16>, tensor<6xui8>, tensor<3xf16>, tensor<3x1xf16>, tensor<3xf16>) {
      %c = utensor.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf16>
      %0 = utensor.add %y, %c : tensor<3xf16>
      %1 = utensor.reshape %x : tensor<2x3xui8> -> tensor<6xui8>
      %2 = utensor.reshape %0 : tensor<3xf16> -> tensor<3x1xf16>
      func.return %0, %1, %y, %2, %0
          : tensor<3xf16>, tensor<6xui8>, tensor<3xf16>, tensor<3x1xf16>, tensor<3xf16>
    }
    """
    plan = described(run_pipeline(parse_text(text), "kernelize,plan-memory"))
    assert plan.constants == (Buffer("const0", "const0", "f16", (3,)),)
    assert plan.outputs == (
        Buffer("out0", "out0", "f16", (3,)),
        Buffer("out1", "out1", "ui8", (6,), alias="in0"),
        Buffer("out2", "out2", "f16", (3,), alias="in1"),
        Buffer("out3", "out3", "f16", (3, 1), alias="out0"),
        Buffer("out4", "out4", "f16", (3,), alias="out0"),
    )
    assert [k.refs for k in plan.kernels] == [("in1", "const0", "out0")]


def test_symbolic_sizes(graph, run_pipeline):
    n = symbol("n", 1, 64)
    x = graph.input("x", (n + 1, 8))
    module = graph.module(graph.reshape(graph.op("exp", graph.reduce("add", x, 1)), n + 1, 1))
    plan = described(run_pipeline(module, "kernelize,plan-memory"))
    assert plan.symbols == (Symbol("n", 1, 64),)
    assert plan.inputs[0].shape == (n + 1, 8)
    assert plan.outputs[0].shape == (n + 1, 1)
    assert plan.inputs[0].shape[0].evaluate_named({"n": 9}) == 10
    assert [k.symbols for k in plan.kernels] == [("n",), ("n",)]
    assert plan.workspace_bytes == 320  # 65 floats, rounded up


@pytest.mark.parametrize("pipeline", ["", "rangeify,prune-parameters"])
def test_outputs_are_numbered_by_result(graph, run_pipeline, pipeline):
    x = graph.input("x", (4,))
    module = graph.module(x, graph.op("exp", x), x, graph.op("neg", x))
    run_pipeline(module, ",".join(filter(None, ("kernelize", pipeline, "plan-memory"))))
    plan = described(module)
    assert [o.ref for o in plan.outputs] == ["out0", "out1", "out2", "out3"]
    assert [o.alias for o in plan.outputs] == ["in0", "", "in0", ""]
    assert [k.refs for k in plan.kernels] == [("in0", "out1"), ("in0", "out3")]


def test_all_plans_of_a_module(run_pipeline):
    function = (
        "func.func @{0}(%x : tensor<4xf32>) -> tensor<4xf32> {{ func.return %x : tensor<4xf32> }}"
    )
    module = parse_text(function.format("f") + "\n" + function.format("g"))
    plans = describe_plans(run_pipeline(module, "kernelize"))
    assert [p.name for p in plans] == ["f", "g"]
    assert [p.kernels for p in plans] == [(), ()]


def test_a_result_must_be_the_callers():
    body = "%t = ukernel.temp : memref<4xf32>\n  ukernel.return %t : memref<4xf32>"
    text = f"ukernel.plan @f ins() {{\n  {body}\n}}"
    with pytest.raises(UopcError, match=r"result 0 is a 'ukernel.temp'"):
        described(parse_text(text))
