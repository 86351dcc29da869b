"""stage-broadcast-compute stages what the rule names, once, and nothing else."""

from __future__ import annotations

import time

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import symbol
from uopc.dialects.locations import location_of, parse_text
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import sizes_of, tensor_type
from uopc.dialects.tensor import ConstantOp, ReduceOp, StageOp
from uopc.dialects.tensor_elementwise import (
    AddOp,
    CastOp,
    CmpltOp,
    Exp2Op,
    ExpOp,
    MulOp,
    RecipOp,
    SqrtOp,
    WhereOp,
)
from uopc.dialects.tensor_movement import ExpandOp, PadOp, PermuteOp, ReshapeOp
from uopc.interpreters.tensor import run_function
from uopc.passes.canonicalize import simplify
from uopc.passes.manager import run_passes
from uopc.passes.registry import pass_factories
from uopc.passes.resolve import resolve_pipeline
from uopc.passes.stage_broadcast_compute import (
    fused_work,
    stage_values,
    values_to_stage,
)


class Graph:
    """Builds a function of f32 tensors from the primitives of the textbook."""

    def __init__(self, *shapes, element=f32) -> None:
        self.block = Block(arg_types=[tensor_type(element, shape) for shape in shapes])
        self.inputs = self.block.args

    def add(self, op) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: float, like: SSAValue) -> SSAValue:
        return self.add(ConstantOp(value, like.type))

    def times(self, x: SSAValue, value: float) -> SSAValue:
        return self.add(MulOp(x, self.number(value, x)))

    def minus(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.add(AddOp(x, self.times(y, -1.0)))

    def reduce(self, kind: str, x: SSAValue, axis: int) -> SSAValue:
        """Reduced, and broadcast to x's shape again."""
        sizes = sizes_of(x.type)
        reduced = self.add(ReduceOp(kind, x, (axis,)))
        return self.add(ReshapeOp(reduced, (*sizes[:axis], 1, *sizes[axis + 1 :])))

    def expand(self, x: SSAValue, like: SSAValue) -> SSAValue:
        return self.add(ExpandOp(x, sizes_of(like.type)))

    def mean(self, x: SSAValue) -> SSAValue:
        return self.times(self.reduce("add", x, 1), 1 / sizes_of(x.type)[1])

    def relu(self, x: SSAValue) -> SSAValue:
        zero = self.number(0.0, x)
        return self.add(WhereOp(self.add(CmpltOp(zero, x)), x, zero))

    def exp(self, x: SSAValue) -> SSAValue:
        return self.add(Exp2Op(self.times(x, 1.4426950408889634)))

    def matmul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """sum over k of a[i, k] * b[k, j], as movement ops, a product and a reduction."""
        (m, k), (_, n) = sizes_of(a.type), sizes_of(b.type)
        left = self.add(ExpandOp(self.add(ReshapeOp(a, (m, 1, k))), (m, n, k)))
        turned = self.add(PermuteOp(b, (1, 0)))
        right = self.add(ExpandOp(self.add(ReshapeOp(turned, (1, n, k))), (m, n, k)))
        return self.add(ReduceOp("add", self.add(MulOp(left, right)), (2,)))

    def softmax(self, x: SSAValue) -> SSAValue:
        shifted = self.minus(x, self.expand(self.reduce("max", x, 1), x))
        e = self.exp(shifted)
        inverse = self.add(RecipOp(self.reduce("add", e, 1)))
        return self.add(MulOp(e, self.expand(inverse, e)))

    def layer_norm(self, x: SSAValue) -> SSAValue:
        """(x - mean) * (1 / sqrt(variance + 1e-5)), the root for all elements as in the book."""
        centred = self.minus(x, self.expand_mean(x))
        variance = self.expand_mean(self.add(MulOp(centred, centred)))
        root = self.add(SqrtOp(self.add(AddOp(variance, self.number(1e-5, variance)))))
        return self.add(MulOp(centred, self.add(RecipOp(root))))

    def expand_mean(self, x: SSAValue) -> SSAValue:
        return self.times(self.expand(self.reduce("add", x, 1), x), 1 / sizes_of(x.type)[1])

    def module(self, *results: SSAValue) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        types = (self.block.arg_types, [r.type for r in results])
        module = ModuleOp([FuncOp("f", types, Region(self.block))])
        module.verify()
        return module


def staged(module: ModuleOp, factor: int = 4, min_work: int = 4096):
    """The shapes staged and their fused work; the module is rewritten and verified."""
    values = values_to_stage(module, factor, min_work)
    found = [(sizes_of(v.type), fused_work(v)) for v in values]
    stages = stage_values(values)
    assert len(stages) == len(values)
    module.verify()
    assert values_to_stage(module, factor, min_work) == []
    return found


def test_layer_norm_before_a_matrix_product():
    g = Graph((128, 256), (256, 256))
    module = g.module(g.matmul(g.layer_norm(g.inputs[0]), g.inputs[1]))
    assert staged(module) == [((128, 256), 262144)]


def test_layer_norm_staged_again_after_canonicalize():
    g = Graph((128, 256), (256, 256))
    module = g.module(g.matmul(g.layer_norm(g.inputs[0]), g.inputs[1]))
    simplify(module)
    assert staged(module) == [((128, 256), 262144)]


def test_relu_between_two_matrix_products():
    g = Graph((64, 64), (64, 64), (64, 64))
    a, b, c = g.inputs
    module = g.module(g.matmul(g.relu(g.matmul(a, b)), c))
    assert staged(module) == [((64, 64), 8192)]


@pytest.mark.parametrize("shape", [(4, 8), (64, 64)])
def test_softmax_alone_stages_nothing(shape):
    g = Graph(shape)
    assert staged(g.module(g.softmax(g.inputs[0]))) == []


def test_sums_sums_of_sums_and_variance_stage_nothing():
    g = Graph((64, 64), (64, 64))
    total = g.add(AddOp(*g.inputs))
    x = g.inputs[0]
    centred = g.minus(x, g.expand(g.mean(x), x))
    variance = g.mean(g.add(MulOp(centred, centred)))
    assert staged(g.module(total, g.reduce("add", total, 1), variance)) == []


def broadcast(g: Graph, x: SSAValue, copies: int) -> SSAValue:
    m, n = sizes_of(x.type)
    return g.add(ExpandOp(g.add(ReshapeOp(x, (m, 1, n))), (m, copies, n)))


def test_a_staged_value_inside_a_staged_value():
    g = Graph((64, 64))
    inner = g.add(ExpOp(g.inputs[0]))
    outer = g.add(ExpOp(g.add(ReshapeOp(broadcast(g, inner, 4), (256, 64)))))
    module = g.module(broadcast(g, outer, 4))
    # What computing the outer one takes is counted down to the input: two ops an element.
    assert sorted(staged(module)) == [((64, 64), 4096), ((256, 64), 32768)]
    stages = [op for op in module.walk() if isinstance(op, StageOp)]
    assert len(stages) == 2
    x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    expected = np.broadcast_to(np.exp(np.exp(x))[:, None, None], (64, 4, 4, 64))
    (got,) = run_function(module, "f", [x])
    assert np.allclose(got.reshape(64, 4, 4, 64), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("factor", "min_work", "count"),
    [(4, 4096, 1), (5, 4096, 0), (4, 4097, 0), (2, 1, 1), (1, 1, 1), (1, 10**12, 0)],
)
def test_thresholds(factor: int, min_work: int, count: int):
    g = Graph((64, 64))
    module = g.module(broadcast(g, g.add(ExpOp(g.inputs[0])), 4))
    assert len(staged(module, factor, min_work)) == count


def test_bare_casts_and_scalars_and_inputs_never_stage():
    g = Graph((64, 64), element=f16)
    wide = g.add(CastOp(g.inputs[0], f32))
    scalar = g.add(ExpOp(g.add(ReduceOp("add", g.inputs[0], (0, 1)))))
    many = g.add(ExpandOp(g.add(ReshapeOp(scalar, (1, 1))), (128, 128)))
    results = broadcast(g, wide, 8), broadcast(g, g.inputs[0], 8), many
    assert staged(g.module(*results), 1, 1) == []


def test_reductions_and_stages_are_buffers_already():
    g = Graph((64, 64, 8))
    total = g.add(ReduceOp("add", g.inputs[0], (2,)))
    kept = g.add(StageOp(g.add(ExpOp(total))))
    assert staged(g.module(broadcast(g, total, 8), broadcast(g, kept, 8)), 1, 1) == []


def test_work_stops_at_reductions_and_stages_and_counts_shared_ops_once():
    g = Graph((8, 8))
    a = g.add(ExpOp(g.inputs[0]))
    b = g.add(AddOp(a, a))
    assert fused_work(b) == 2 * 64
    assert fused_work(g.add(ExpOp(g.add(StageOp(b))))) == 64
    assert fused_work(g.add(ExpOp(g.add(ReduceOp("add", b, (0,)))))) == 8
    assert fused_work(g.add(PadOp(g.add(ExpOp(b)), (1, 0), (0, 0), 0.0))) == 3 * 72


def test_all_users_read_the_stage_and_an_old_stage_gives_way():
    g = Graph((64, 64))
    value = g.add(ExpOp(g.inputs[0]))
    old = g.add(StageOp(value))
    both = g.add(AddOp(value, old))
    module = g.module(broadcast(g, value, 4), both, value)
    assert len(staged(module)) == 1
    stages = [op for op in module.walk() if isinstance(op, StageOp)]
    assert len(stages) == 1
    assert [use.operation for use in value.uses] == stages
    assert list(both.owner.operands) == [stages[0].result, stages[0].result]


def test_symbolic_sizes_count_at_their_upper_bounds():
    for upper, count in ((63, 0), (64, 1)):
        n = symbol("n", 1, upper)
        g = Graph((n, 64))
        value = g.add(ExpOp(g.inputs[0]))
        shaped = g.add(ReshapeOp(value, (n, 1, 64)))
        module = g.module(g.add(ExpandOp(shaped, (n, 8, 64))))
        assert len(staged(module)) == count
        n = symbol("n", 0, upper)  # how often it is broadcast may be symbolic too
        g = Graph((64, 1, 64))
        module = g.module(g.add(ExpandOp(g.add(ExpOp(g.inputs[0])), (64, n, 64))))
        assert len(staged(module)) == 1


def test_nothing_of_size_zero_is_staged():
    g = Graph((0, 64))
    assert staged(g.module(broadcast(g, g.add(ExpOp(g.inputs[0])), 4)), 1, 1) == []


def test_sixty_doublings_broadcast_at_every_step():
    g = Graph((8, 8))
    value, results = g.inputs[0], []
    for _ in range(60):
        value = g.add(AddOp(g.times(value, 0.5), g.times(value, 0.5)))
        results.append(broadcast(g, value, 4))
    module = g.module(*results)
    start = time.process_time()
    # Each step is three operations for each of 64 elements: the first over 4096 is the 22nd.
    assert len(staged(module)) == 60 - 21
    assert time.process_time() - start < 1


def test_stage_keeps_place_and_name_and_options_are_told():
    text = """func.func @f(%x: tensor<64x64xf32>) -> tensor<64x8x64xf32> {
  %hidden = utensor.exp %x : tensor<64x64xf32>
  %0 = utensor.reshape %hidden : tensor<64x64xf32> -> tensor<64x1x64xf32>
  %1 = utensor.expand %0 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
  func.return %1 : tensor<64x8x64xf32>
}"""
    module = parse_text(text, "a.mlir")
    pipeline = "stage_broadcast_compute{factor=8 min_work=100}"
    run_passes(make_context(), module, resolve_pipeline(pipeline, pass_factories()))
    (stage,) = (op for op in module.walk() if isinstance(op, StageOp))
    assert str(location_of(stage)).startswith("a.mlir:2:")
    assert stage.result.name_hint == "hidden"
    with pytest.raises(UopcError, match="factor must be at least 1, got 0"):
        resolve_pipeline("stage-broadcast-compute{factor=0}", pass_factories())
