"""dedupe-kernels: equal kernels at every level are one, and others are not."""

import pytest

from uopc.dialects.kernel import KernelOp, LaunchOp
from uopc.passes.dedupe_kernels import KernelKeys


def kernels(module):
    return [op for op in module.body.block.ops if isinstance(op, KernelOp)]


def layers(graph, count):
    x = graph.input("x", (16, 16))
    for k in range(count):
        x = graph.relu(graph.matmul(x, graph.input(f"w{k}", (16, 16))))
    return graph.module(x)


@pytest.mark.parametrize(
    "pipeline", ["kernelize,dedupe-kernels", "kernelize,rangeify,dedupe-kernels"]
)
def test_twelve_layers_are_two_kernels(graph, run_pipeline, pipeline):
    # A product's operand is another layer's relu, which the kernel computes itself.
    module = run_pipeline(layers(graph, 12), pipeline)
    assert [k.display_name for k in kernels(module)] == ["r_16_16", "r_16_16", "e_16_16"]
    launched = [op.kernel.string_value() for op in module.walk() if isinstance(op, LaunchOp)]
    assert len(launched) == 13
    assert len(set(launched)) == 3


def test_bits_of_constants_count(graph, run_pipeline):
    x = graph.input("x", (4,))
    results = [graph.op("add", x, graph.full(v, x)) for v in (0.0, -0.0, float("nan"), 0.0)]
    module = run_pipeline(graph.module(*results), "kernelize,dedupe-kernels")
    assert len(kernels(module)) == 3


def test_operands_and_types_count(graph, run_pipeline):
    x, y = graph.input("x", (4,)), graph.input("y", (4,))
    z = graph.input("z", (4,), "i32")
    results = [graph.op("sub", x, y), graph.op("sub", y, x), graph.op("sub", x, x)]
    module = graph.module(*results, graph.op("sub", z, z))
    run_pipeline(module, "kernelize,dedupe-kernels")
    # y - x is x - y of other buffers.
    assert len(kernels(module)) == 3


def test_keys_are_the_same_for_clones(graph, run_pipeline):
    module = run_pipeline(graph.module(graph.softmax(graph.input("x", (4, 8)))), "kernelize")
    keys = KernelKeys()
    for kernel in kernels(module):
        assert keys.key(kernel) == keys.key(kernel.clone())
    assert len({keys.key(k) for k in kernels(module)}) == 3
