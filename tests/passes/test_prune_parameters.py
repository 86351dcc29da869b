"""prune-parameters on whole programs."""

import pytest

from uopc.dialects.kernel import KernelOp, LaunchOp, PlanOp, TempOp
from uopc.dialects.locations import parse_text

DEAD = """
ukernel.plan @f ins(%x : memref<4xf32>) {
  %o = ukernel.output : memref<4xf32>
  %a = ukernel.temp : memref<4xf32>
  ukernel.launch @copy ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
  %b = ukernel.temp : memref<4xf32>
  ukernel.launch @copy ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  ukernel.launch @ones ins(%b : memref<4xf32>) outs(%o : memref<4xf32>)
  ukernel.return %o : memref<4xf32>
}
ukernel.kernel @copy ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  %0 = ukernel.read %x : memref<4xf32> -> tensor<4xf32>
  ukernel.write %0, %y : tensor<4xf32>, memref<4xf32>
}
ukernel.kernel @ones ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  %unused = ukernel.read %x : memref<4xf32> -> tensor<4xf32>
  %0 = utensor.constant 1.0 : tensor<4xf32>
  ukernel.write %0, %y : tensor<4xf32>, memref<4xf32>
}
"""


@pytest.mark.parametrize(
    "pipeline",
    ["prune-parameters", "rangeify,prune-parameters", "rangeify,linearize,prune-parameters"],
)
def test_a_chain_of_dead_launches_goes(run_pipeline, pipeline):
    module = run_pipeline(parse_text(DEAD), pipeline)
    (launch,) = (op for op in module.walk() if isinstance(op, LaunchOp))
    assert launch.kernel.string_value() == "ones"
    assert len(launch.inputs) == 0
    assert not any(isinstance(op, TempOp) for op in module.walk())
    assert len(list(module.body.block.ops)) == 2


def test_a_plan_keeps_its_inputs(graph, run_pipeline):
    x, t = graph.input("x", (4,)), graph.input("t", (4,))
    module = run_pipeline(graph.module(graph.full(1.0, x)), "kernelize,prune-parameters")
    (plan,) = (op for op in module.walk() if isinstance(op, PlanOp))
    assert [n.data for n in plan.input_names.data] == ["x", "t"]
    assert t.name_hint == "t"


def test_nothing_to_prune_changes_nothing(graph, run_pipeline):
    module = run_pipeline(graph.module(graph.softmax(graph.input("x", (4, 8)))), "kernelize")
    before = str(module)
    assert str(run_pipeline(module, "prune-parameters")) == before
    assert sum(isinstance(op, KernelOp) for op in module.walk()) == 3
