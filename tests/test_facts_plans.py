"""What plans the textbook's programs become: counts, names, buffers and costs."""

import pytest

from uopc.dialects.kernel import KernelOp, PlanOp
from uopc.dialects.tensor import StageOp
from uopc.lowering.describe import describe_plan

STAGED = "stage-broadcast-compute,kernelize,plan-memory"


@pytest.fixture
def planned(run_pipeline):
    """Kernelizes a module; the description of its one plan."""

    def make(module, pipeline="kernelize,plan-memory"):
        run_pipeline(module, pipeline)
        (plan,) = (op for op in module.body.block.ops if isinstance(op, PlanOp))
        return describe_plan(plan, module)

    return make


def names(plan):
    return [kernel.name for kernel in plan.kernels]


def refs(plan):
    return [
        f"{','.join(k.refs[: -k.writes])}→{','.join(k.refs[-k.writes :])}" for k in plan.kernels
    ]


def stages(module):
    return [op for op in module.walk() if isinstance(op, StageOp)]


def test_p1_elementwise_chains_are_one_kernel(graph, planned):
    a = graph.input("a", (2, 4))
    y = graph.op("add", graph.scaled(a, 2.0), graph.full(1.0, a))
    plan = planned(graph.module(graph.scaled(graph.relu(y), 3.0)))
    assert names(plan) == ["e_2_4"]
    assert refs(plan) == ["in0→out0"]
    assert plan.kernels[0].bytes == 2 * 8 * 4


def test_p2_softmax_is_three_kernels(graph, planned):
    plan = planned(graph.module(graph.softmax(graph.input("x", (4, 8)))))
    assert names(plan) == ["r_4", "r_4", "e_4_8"]
    assert refs(plan) == ["in0→tmp0", "in0,tmp0→tmp1", "in0,tmp0,tmp1→out0"]
    assert [k.flops for k in plan.kernels] == [32, 132, 136]
    assert [t.shape for t in plan.temps] == [(4,), (4,)]
    assert [o.shape for o in plan.outputs] == [(4, 8)]


@pytest.mark.parametrize("fuse", ["all", "auto"])
def test_p3_b2_fused_softmax_is_one_kernel(graph, planned, fuse):
    module = graph.module(graph.softmax(graph.input("x", (4, 8))))
    plan = planned(module, f"kernelize{{fuse-reduce={fuse}}},plan-memory")
    assert names(plan) == ["r_4_8"]
    assert refs(plan) == ["in0→out0"]
    assert plan.temps == ()
    assert plan.workspace_bytes == 0


@pytest.mark.parametrize(
    ("fuse", "expected"),
    [("none", ["r_128_128"] * 2), ("auto", ["r_128_128"] * 2), ("all", ["r_128_128"])],
)
def test_p4_b2_a_product_of_products_stays_two_kernels(graph, planned, fuse, expected):
    a, b, c = (graph.input(n, (128, 128)) for n in "abc")
    module = graph.module(graph.matmul(graph.matmul(a, b), c))
    assert names(planned(module, f"kernelize{{fuse-reduce={fuse}}},plan-memory")) == expected


def layer_norm_into_linear(graph):
    x, w = graph.input("x", (128, 256)), graph.input("w", (256, 256))
    return graph.module(graph.matmul(graph.layer_norm(x), w))


def test_p5_layer_norm_into_linear_is_staged(graph, planned, run_pipeline):
    module = layer_norm_into_linear(graph)
    run_pipeline(module, "stage-broadcast-compute")
    assert [op.result.type.get_shape() for op in stages(module)] == [(128, 256)]
    plan = planned(module)
    assert names(plan) == ["r_128", "r_128", "e_128_256", "r_128_256"]
    # The work that staging saves: 8 operations an element.
    assert plan.kernels[2].flops == 4 * 128 * 256 - 2 * 128 * 256 + 6 * 128


def test_p5_layer_norm_into_linear_unstaged(graph, planned):
    assert names(planned(layer_norm_into_linear(graph))) == ["r_128", "r_128", "r_128_256"]


def test_p6_a_sum_and_its_operands_are_one_kernel(graph, planned):
    a, b = graph.input("a", (64, 64)), graph.input("b", (64, 64))
    assert names(planned(graph.module(graph.op("add", a, b)))) == ["e_64_64"]


def test_p6_elementwise_work_goes_into_the_reduction(graph, planned):
    a, b = graph.input("a", (64, 64)), graph.input("b", (64, 64))
    plan = planned(graph.module(graph.reduce("add", graph.op("add", a, b), 0, 1)))
    assert names(plan) == ["r_1"]


def test_p6_a_variance_is_three_kernels(graph, planned):
    x = graph.input("x", (64, 64))
    minus = graph.expand(graph.scaled(graph.mean(x, 1), -1.0), 64, 64)
    centred = graph.op("add", x, minus)
    square = graph.reduce("add", graph.op("mul", centred, centred), 1)
    assert names(planned(graph.module(graph.scaled(square, 1 / 63)))) == ["r_64", "r_64", "e_64"]


def test_p6_relu_between_products_is_staged(graph, planned):
    a, b, c = (graph.input(n, (64, 64)) for n in "abc")
    module = graph.module(graph.matmul(graph.relu(graph.matmul(a, b)), c))
    assert names(planned(module, STAGED)) == ["r_64_64", "e_64_64", "r_64_64"]


def test_p7_softmax_stages_nothing(graph, planned, run_pipeline):
    module = graph.module(graph.softmax(graph.input("x", (64, 64))))
    run_pipeline(module, "stage-broadcast-compute")
    assert stages(module) == []
    assert names(planned(module)) == ["r_64", "r_64", "e_64_64"]


def test_p8_stages_nest(graph, planned, run_pipeline):
    x = graph.input("x", (64, 64))
    inner = graph.op("add", graph.scaled(x, 2.0), graph.full(1.0, x))
    wide = graph.expand(graph.reshape(inner, 64, 64, 1), 64, 64, 8)
    outer = graph.op("mul", graph.op("exp2", wide), wide)
    wider = graph.expand(graph.reshape(outer, 64, 64, 8, 1), 64, 64, 8, 4)
    module = graph.module(graph.reduce("add", wider, 1))
    run_pipeline(module, "stage-broadcast-compute")
    assert len(stages(module)) == 2
    plan = planned(module)
    assert names(plan) == ["e_64_64", "e_64_64_8", "r_64_8_4"]
    assert refs(plan) == ["in0→tmp0", "tmp0→tmp1", "tmp1→out0"]


def loss_and_gradient(graph):
    """mean(relu(X @ W)^2) and its gradient in W."""
    x, w = graph.input("x", (32, 64)), graph.input("w", (64, 10))
    h = graph.matmul(x, w)
    r = graph.relu(h)
    loss = graph.scaled(graph.reduce("add", graph.op("mul", r, r), 0, 1), 1 / 320)
    zero = graph.full(0.0, h)
    slope = graph.op("where", graph.op("cmplt", zero, h), graph.scaled(r, 2 / 320), zero)
    wide_x = graph.expand(graph.reshape(x, 32, 1, 64), 32, 10, 64)
    wide_slope = graph.expand(graph.reshape(slope, 32, 10, 1), 32, 10, 64)
    gradient = graph.reduce("add", graph.op("mul", wide_x, wide_slope), 0)
    return graph.module(loss, graph.permute(gradient, 1, 0))


def test_p9_the_forward_product_serves_loss_and_gradient(graph, planned):
    plan = planned(loss_and_gradient(graph))
    assert names(plan) == ["r_32_10", "r_1", "e_1", "r_10_64", "e_64_10"]
    assert refs(plan) == ["in0,in1→tmp0", "tmp0→tmp1", "tmp1→out0", "in0,tmp0→tmp2", "tmp2→out1"]


def test_p10_equal_kernels_are_one(graph, planned):
    a, b = graph.input("a", (16, 16)), graph.input("b", (16, 16))
    module = graph.module(graph.reduce("add", a, 1), graph.reduce("add", b, 1))
    plan = planned(module, "kernelize,dedupe-kernels")
    assert names(plan) == ["r_16", "r_16"]
    assert refs(plan) == ["in0→out0", "in1→out1"]
    assert len({k.symbol for k in plan.kernels}) == 1
    assert sum(isinstance(op, KernelOp) for op in module.body.block.ops) == 1


def test_p11_a_deleted_read_is_no_parameter(graph, planned):
    t = graph.input("t", (3,), "i32")
    module = graph.module(graph.op("mul", t, graph.full(0, t)))
    plan = planned(module, "uopc-canonicalize,kernelize,prune-parameters")
    assert names(plan) == ["e_3"]
    assert refs(plan) == ["→out0"]
    assert [b.name for b in plan.inputs] == ["t"]


@pytest.mark.parametrize(("explicit", "expected"), [(True, ["e_8_8", "r_8"]), (False, ["r_8"])])
def test_p12_contiguous_asks_for_a_buffer(graph, planned, explicit, expected):
    y = graph.scaled(graph.exp(graph.input("a", (8, 8))), 2.0)
    y = graph.stage(y) if explicit else y
    assert names(planned(graph.module(graph.reduce("add", y, 1)))) == expected


def test_p13_movement_alone_is_a_kernel_only_as_a_result(graph, planned):
    x = graph.input("x", (4, 8))
    turned = graph.permute(x, 1, 0)
    total = graph.reduce("add", turned, 1)
    plan = planned(graph.module(turned, total, x, graph.reshape(x, 32)))
    assert names(plan) == ["e_8_4", "r_8"]
    assert [(o.alias, o.shape) for o in plan.outputs] == [
        ("", (8, 4)),
        ("", (8,)),
        ("in0", (4, 8)),
        ("in0", (32,)),
    ]


def test_p14_detach_is_no_kernel(graph, planned):
    x = graph.input("x", (4, 8))
    y = graph.stage(graph.exp(x), "detach")
    assert names(planned(graph.module(graph.op("mul", y, x)))) == ["e_4_8"]


@pytest.mark.parametrize(
    ("shape", "copies", "kind", "options", "staged"),
    [
        ((64, 64), 4, "exp2", "", True),
        ((64, 64), 3, "exp2", "", False),
        ((63, 65), 4, "exp2", "", False),  # 4095 elements
        ((64, 64), 64, "cast", "", False),
        ((), 8192, "exp2", "{min-work=1}", False),
        ((64, 64), 3, "exp2", "{factor=3}", True),
        ((8, 8), 4, "exp2", "{min-work=64}", True),
    ],
)
def test_p15_thresholds(graph, planned, shape, copies, kind, options, staged):
    x = graph.input("x", shape, "f16" if kind == "cast" else "f32")
    if kind == "cast":
        from xdsl.dialects.builtin import f32

        from uopc.dialects.tensor_elementwise import CastOp

        y = graph.add_op(CastOp(x, f32))
    else:
        y = graph.op(kind, x)
    wide = graph.expand(graph.reshape(y, *shape, 1), *shape, copies)
    plan = planned(
        graph.module(graph.reduce("add", wide, 0)), f"stage-broadcast-compute{options},kernelize"
    )
    assert len(plan.kernels) == 1 + staged


def sharing(planned, module):
    """Workspace bytes with and without sharing."""
    shared = planned(module).workspace_bytes
    return shared, planned(module, "plan-memory{reuse=false}").workspace_bytes


def test_b1_softmax_needs_both_temps_at_once(graph, planned):
    assert sharing(planned, graph.module(graph.softmax(graph.input("x", (64, 64))))) == (512, 512)


def test_b1_loss_and_gradient_share(graph, planned):
    assert sharing(planned, loss_and_gradient(graph)) == (1280 + 2560, 1280 + 64 + 2560)


def test_b1_a_chain_of_products_needs_two_buffers(graph, planned):
    x = graph.input("x", (64, 64))
    for k in range(9):
        x = graph.matmul(x, graph.input(f"w{k}", (64, 64)))
    assert sharing(planned, graph.module(x)) == (2 * 16384, 8 * 16384)
