"""kernelize: what it refuses, where `auto` cuts, and that its cost is linear."""

import time

import pytest
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import as_expr, symbol
from uopc.dialects.kernel import KernelOp, LaunchOp, PlanOp, TempOp
from uopc.dialects.locations import location_of, parse_text
from uopc.passes.kernel_cut.accesses import Loops, ranges_of, reshaped
from uopc.passes.kernel_cut.body import size_name
from uopc.passes.kernelize import KernelizePass

NONE, ALL, AUTO = (f"kernelize{{fuse-reduce={f}}}" for f in ("none", "all", "auto"))


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.body.block.ops if isinstance(op, KernelOp)]


def names(module: ModuleOp) -> list[str]:
    """Display names of the launched kernels, in order."""
    table = {k.sym_name.data: k.display_name for k in kernels(module)}
    return [table[op.kernel.string_value()] for op in module.walk() if isinstance(op, LaunchOp)]


def refusal(text: str) -> UopcError:
    module = parse_text(text, "bad.mlir")
    with pytest.raises(UopcError) as caught:
        KernelizePass().apply(None, module)  # pyright: ignore[reportArgumentType]
    return caught.value


# What it refuses.


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint", "line"),
    [
        (
            "func.func @f(%x : tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = arith.addf %x, %x : tensor<4xf32>\n"
            "  func.return %0 : tensor<4xf32>\n}",
            "unsupported-op",
            "'arith.addf' cannot be part of a kernel: it is no tensor op of uopc",
            "nearest supported form: utensor.add",
            2,
        ),
        (
            "func.func @f(%x : tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  func.return %0 : tensor<4xf32>\n}",
            "unsupported-op",
            "'func.call' cannot be part of a kernel",
            "inline the callee",
            2,
        ),
        (
            "func.func @f(%x : tensor<4xf32>, %c : tensor<i1>) -> tensor<4xf32> {\n"
            "  %t = arith.constant true\n"
            "  %0 = scf.if %t -> (tensor<4xf32>) {\n    scf.yield %x : tensor<4xf32>\n"
            "  } else {\n    scf.yield %x : tensor<4xf32>\n  }\n"
            "  func.return %0 : tensor<4xf32>\n}",
            "unsupported-op",
            "'scf.if' cannot be part of a plan: its flag is no element of a tensor",
            "tensor.extract %more[] : tensor<i1>",
            3,
        ),
        (
            "func.func @f(%x : tensor<4xf32>, %k : f32) -> tensor<4xf32> {\n"
            "  func.return %x : tensor<4xf32>\n}",
            "not-a-tensor-function",
            "@f has argument 1 of type f32: expected a tensor",
            "tensor of rank 0",
            1,
        ),
        (
            "func.func @f(%x : tensor<4xf32>, %k : memref<4xf32>) {\n  func.return\n}",
            "not-a-tensor-function",
            "@f has argument 1 of type memref<4xf32>: expected a tensor",
            "take and return tensors",
            1,
        ),
        (
            "func.func @f(%x : tensor<4xf80>) {\n  func.return\n}",
            "not-a-tensor-function",
            "element type f80 of tensor<4xf80> is not supported",
            "change its type",
            1,
        ),
        (
            "func.func @f(%x : tensor<?xf32>) {\n  func.return\n}",
            "not-a-tensor-function",
            "has a dynamic size without bounds",
            "change its type",
            1,
        ),
        (
            "func.func private @f(%x : tensor<4xf32>) -> tensor<4xf32>",
            "not-a-tensor-function",
            "@f is declared, not defined",
            "give it a body",
            1,
        ),
        (
            "func.func @f(%x : tensor<4xf32>) -> tensor<4xf32> {\n"
            "  cf.br ^end\n^end:\n  func.return %x : tensor<4xf32>\n}",
            "not-a-tensor-function",
            "@f has control flow (2 blocks)",
            "write it as one block",
            1,
        ),
        (
            "func.func @f(%x : tensor<?xf32, #utensor.sizes<[n], n = 1 to 4>>,\n"
            "  %y : tensor<?xf32, #utensor.sizes<[n], n = 1 to 5>>) {\n  func.return\n}",
            "size-bounds-differ",
            "size 'n' of %y is 1 to 5, and 1 to 4 before",
            "rename one of them",
            1,
        ),
        (
            "func.func @f(%x : tensor<4xf32> {uopc.name = 3 : i64}) {\n  func.return\n}",
            "bad-input-name",
            "uopc.name of argument 0 of @f: expected a string",
            'write {uopc.name = "x"}',
            1,
        ),
    ],
)
def test_refuses_in_words(text, kind, message, hint, line):
    error = refusal(text)
    assert error.kind == kind
    assert message in error.message
    assert hint in error.hint
    assert error.location is not None
    assert (error.location.file, error.location.line) == ("bad.mlir", line)


def test_leaves_other_functions_alone(run_pipeline):
    text = "func.func @g(%x : f32) -> f32 {\n  func.return %x : f32\n}"
    module = parse_text(text)
    before = str(module)
    assert str(run_pipeline(module, "kernelize")) == before


# Plans.


def test_running_it_again_changes_nothing(graph, run_pipeline):
    module = run_pipeline(graph.module(graph.softmax(graph.input("x", (4, 8)))), "kernelize")
    before = str(module)
    assert str(run_pipeline(module, "kernelize")) == before


def test_no_symbol_is_taken_twice(run_pipeline):
    function = (
        "func.func @{0}(%x : tensor<4xf32>) -> tensor<4xf32> {{\n"
        "  %0 = utensor.{1} %x : tensor<4xf32>\n  func.return %0 : tensor<4xf32>\n}}\n"
    )
    text = function.format("e_4", "neg") + function.format('"a b"', "exp")
    module = run_pipeline(parse_text(text), "kernelize")
    assert [k.sym_name.data for k in kernels(module)] == ["e_4$1", "e_4$2"]
    assert names(module) == ["e_4", "e_4"]


def test_a_function_without_results_is_an_empty_plan(graph, run_pipeline):
    graph.exp(graph.input("x", (4,)))
    module = run_pipeline(graph.module(), "kernelize")
    assert names(module) == []
    (plan,) = (op for op in module.walk() if isinstance(op, PlanOp))
    assert len(plan.buffers) == 1


def test_dead_reductions_are_not_launched(graph, run_pipeline):
    x = graph.input("x", (4, 8))
    graph.reduce("add", x, 1)
    assert names(run_pipeline(graph.module(graph.op("neg", x)), NONE)) == ["e_4_8"]


def test_equal_results_share_one_output(graph, run_pipeline):
    y = graph.op("neg", graph.input("x", (2, 3)))
    module = run_pipeline(graph.module(y, y, graph.reshape(y, 6), graph.stage(y)), "kernelize")
    assert names(module) == ["e_2_3"]


def test_a_result_under_another_shape_is_read_from_its_buffer(graph, run_pipeline):
    y = graph.op("exp", graph.input("x", (2, 3)))
    total = graph.reduce("add", y, 0, 1)
    module = run_pipeline(graph.module(graph.reshape(y, 6), total), "kernelize")
    assert names(module) == ["e_2_3", "r_1"]
    reduction = kernels(module)[1]
    assert reduction.doc.data == "reduce add [0, 1]"


def test_stages_of_what_has_a_buffer_cost_nothing(graph, run_pipeline):
    x = graph.input("x", (4, 8))
    total = graph.stage(graph.stage(graph.reduce("add", graph.stage(x), 1)))
    module = run_pipeline(graph.module(graph.op("neg", total)), ALL)
    assert names(module) == ["r_4", "e_4"]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1, 1)])
def test_any_shape(graph, run_pipeline, shape):
    x = graph.input("x", shape)
    negated = graph.op("neg", x)
    total = graph.reduce("add", graph.op("exp", x), *range(len(shape)))
    module = run_pipeline(graph.module(negated, total), "kernelize,plan-memory")
    assert names(module) == ["e_" + ("_".join(map(str, shape)) or "1"), "r_1"]


def test_every_element_type(graph, run_pipeline):
    types = [
        "f64",
        "f32",
        "f16",
        "bf16",
        "i1",
        "i8",
        "i16",
        "i32",
        "i64",
        "ui8",
        "ui16",
        "ui32",
        "ui64",
    ]
    results = [graph.op("max", x, x) for x in (graph.input(t, (2, 3), t) for t in types)]
    module = run_pipeline(graph.module(*results), "kernelize,plan-memory")
    sizes = [8, 4, 2, 2, 1, 1, 2, 4, 8, 1, 2, 4, 8]
    assert [k.bytes.value.data for k in kernels(module)] == [2 * 6 * n for n in sizes]


def test_ops_keep_their_places(run_pipeline):
    text = (
        "func.func @f(%x : tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = utensor.exp %x : tensor<4xf32>\n"
        "  %1 = utensor.stage contiguous %0 : tensor<4xf32>\n"
        "  %2 = utensor.neg %1 : tensor<4xf32>\n"
        "  func.return %2 : tensor<4xf32>\n}"
    )
    module = run_pipeline(parse_text(text, "f.mlir"), "kernelize")
    lines = [location_of(k).line for k in kernels(module)]
    assert lines == [2, 4]
    ops = [op for op in module.walk() if op.name in ("utensor.exp", "ukernel.temp")]
    assert [location_of(op).line for op in ops] == [2, 2]


def test_names_of_sizes():
    n, m = symbol("n", 1, 8), symbol("m", 1, 8)
    assert size_name(3) == "3"
    assert size_name(n) == "n"
    assert size_name(n + 1) == "n_plus_1"
    assert size_name((n - m) // 2).isidentifier()


def test_a_name_is_never_longer_than_readable(graph, run_pipeline):
    n = symbol("n", 1, 8)
    shape = tuple((n + k) * (n + 1) for k in range(8))
    module = run_pipeline(graph.module(graph.op("neg", graph.input("x", shape[:4]))), "kernelize")
    (kernel,) = kernels(module)
    assert len(kernel.display_name) <= 64


# Reductions, decided one by one.


def test_auto_fuses_an_epilogue(graph, run_pipeline):
    a, b = graph.input("a", (8, 8)), graph.input("b", (8, 8))
    module = graph.module(graph.relu(graph.matmul(a, b)))
    assert names(run_pipeline(module, AUTO)) == ["r_8_8"]


def test_auto_does_not_put_a_column_sum_into_the_row_loop(graph, run_pipeline):
    module = graph.module(graph.softmax(graph.input("x", (4, 8)), axis=0))
    assert names(run_pipeline(module, AUTO)) == ["r_8", "r_8", "e_4_8"]


def test_auto_keeps_a_sum_out_of_another_sums_loop(graph, run_pipeline):
    # out[i] = sum_j (sum_k x[i,j,k])^2: each inner sum is needed once, but there it could have
    # neither threads nor lanes of its own.
    s = graph.reduce("add", graph.input("x", (3, 4, 5)), 2)
    module = graph.module(graph.reduce("add", graph.op("mul", s, s), 1))
    assert names(run_pipeline(module, AUTO)) == ["r_3_4", "r_3"]


@pytest.mark.parametrize(
    ("shape", "kernels"),
    [
        ((16, 1 << 16), ["r_16_65536"]),  # as many rows as threads could want
        ((2, 1 << 16), ["r_2", "e_2_65536"]),  # two long rows: each step has threads of its own
        ((2, 1 << 14), ["r_2_16384"]),  # two short ones
    ],
)
def test_auto_leaves_rows_for_threads(graph, run_pipeline, shape, kernels):
    x = graph.input("x", shape)
    s = graph.expand(graph.reshape(graph.reduce("add", x, 1), shape[0], 1), *shape)
    assert names(run_pipeline(graph.module(graph.op("div", x, s)), AUTO)) == kernels


def test_auto_cuts_what_several_kernels_read(graph, run_pipeline):
    s = graph.reduce("add", graph.input("x", (4, 8)), 1)
    module = graph.module(graph.op("neg", s), graph.op("exp", s))
    assert names(run_pipeline(module, AUTO)) == ["r_4", "e_4", "e_4"]


def test_auto_cuts_what_is_read_at_several_places(graph, run_pipeline):
    # The scores of an attention are read by a max, a sum and the result: three loops.
    a, b = graph.input("a", (8, 8)), graph.input("b", (8, 8))
    module = graph.module(graph.softmax(graph.matmul(a, b)))
    assert names(run_pipeline(module, AUTO)) == ["r_8_8", "r_8_8"]


def test_auto_cuts_below_a_shift(graph, run_pipeline):
    from uopc.dialects.tensor_movement import ShrinkOp

    s = graph.reduce("add", graph.input("x", (5, 8)), 1)
    left = graph.add_op(ShrinkOp(s, [0], [4]))
    right = graph.add_op(ShrinkOp(s, [1], [5]))
    assert names(run_pipeline(graph.module(graph.op("add", left, right)), AUTO)) == ["r_5", "e_4"]


def test_auto_cuts_below_a_repetition(graph, run_pipeline):
    # Seen through the reshape, one loop of 32 would compute each of 4 sums 8 times.
    s = graph.reduce("add", graph.input("x", (4, 8)), 1)
    wide = graph.reshape(graph.expand(graph.reshape(s, 4, 1), 4, 8), 32)
    y = graph.op("mul", wide, graph.input("y", (32,)))
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_4", "e_32"]


def test_auto_fuses_through_a_reshape(graph, run_pipeline):
    s = graph.reduce("add", graph.input("x", (4, 8, 3)), 2)
    y = graph.op("mul", graph.reshape(s, 32), graph.input("y", (32,)))
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_32"]


def test_auto_cuts_below_data_dependent_and_padded_reads(graph, run_pipeline):
    from uopc.dialects.tensor import GatherOp
    from uopc.dialects.tensor_movement import PadOp

    s = graph.reduce("add", graph.input("x", (4, 8)), 1)
    gathered = graph.add_op(GatherOp(s, graph.input("i", (6,), "i32"), 0))
    t = graph.reduce("max", graph.input("y", (4, 8)), 1)
    padded = graph.op("neg", graph.add_op(PadOp(t, [1], [1], 0.0)))
    module = graph.module(graph.op("mul", gathered, padded))
    assert names(run_pipeline(module, AUTO)) == ["r_4", "r_4", "e_6"]


def test_auto_fuses_the_positions_of_a_gather(graph, run_pipeline):
    from uopc.dialects.tensor import ArgreduceOp, GatherOp

    i = graph.add_op(ArgreduceOp("max", graph.input("x", (6, 8)), 1))
    rows = graph.add_op(GatherOp(graph.input("table", (8, 4)), i, 0))
    assert names(run_pipeline(graph.module(rows), AUTO)) == ["r_6_4"]


def over_rows(graph, sums, *shape: int):
    """A value for each column, repeated along the first axis, divides an input."""
    return graph.op("div", graph.input("y", shape), graph.expand(sums, *shape))


def column_sums(graph, x):
    return graph.reshape(graph.reduce("add", x, 0), 1, 64)


@pytest.mark.parametrize("wrap", ["exp", "erf"])
def test_auto_repeats_a_short_sum_along_the_lanes(graph, run_pipeline, wrap):
    sums = column_sums(graph, graph.op(wrap, graph.input("x", (2, 64))))
    y = over_rows(graph, graph.op("neg", sums), 2, 64)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_2_64"]


def test_auto_does_not_repeat_a_sum_that_is_read_across_the_lanes(graph, run_pipeline):
    sums = graph.reduce("add", graph.input("x", (64, 2)), 1)
    y = over_rows(graph, graph.reshape(sums, 1, 64), 2, 64)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "e_2_64"]


def test_auto_does_not_repeat_a_sum_of_every_second_element(graph, run_pipeline):
    from uopc.dialects.tensor_movement import ShrinkOp

    even = graph.add_op(ShrinkOp(graph.input("x", (2, 128)), [0, 0], [2, 128], [1, 2]))
    y = over_rows(graph, column_sums(graph, even), 2, 64)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "e_2_64"]


def test_auto_does_not_repeat_a_sum_outside_of_the_lanes(graph, run_pipeline):
    sums = graph.reshape(graph.reduce("add", graph.input("x", (2, 64)), 0), 1, 64, 1)
    y = over_rows(graph, sums, 2, 64, 16)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "e_2_64_16"]


def test_auto_does_not_repeat_a_sum_beside_another(graph, run_pipeline):
    product = graph.matmul(graph.input("a", (2, 8)), graph.input("b", (8, 64)))
    sums = column_sums(graph, graph.input("x", (2, 64)))
    y = graph.op("mul", product, graph.expand(sums, 2, 64))
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "r_2_64"]


def test_auto_does_not_repeat_a_sum_of_sums(graph, run_pipeline):
    rows = graph.reduce("add", graph.input("x", (2, 64, 3)), 2)
    y = over_rows(graph, column_sums(graph, rows), 2, 64)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_2_64", "r_64", "e_2_64"]


def test_auto_does_not_repeat_positions(graph, run_pipeline):
    from uopc.dialects.tensor import ArgreduceOp

    first = graph.add_op(ArgreduceOp("max", graph.input("x", (2, 64)), 0))
    wide = graph.expand(graph.reshape(first, 1, 64), 2, 64)
    y = graph.op("add", graph.input("y", (2, 64), "i32"), wide)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "e_2_64"]


def test_auto_does_not_look_through_many_ops(graph, run_pipeline):
    x = graph.input("x", (2, 64))
    for _ in range(70):
        x = graph.op("neg", x)
    y = over_rows(graph, column_sums(graph, x), 2, 64)
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_64", "e_2_64"]


# 2 * 1024 elements once more, against 8 * 1024 + 8192 bytes.
@pytest.mark.parametrize(
    ("ops", "inputs", "balance", "fused"),
    [
        (["neg"], 1, 2, True),  # 1 + 8 + 1 operations an element; 8 a byte saved
        (["neg"], 1, 1, False),
        (["neg"] * 7, 1, 2, True),
        (["neg"] * 8, 1, 2, False),
        (["add"], 2, 3, True),  # 1 + 8 + 8 + 1
        (["add"], 2, 2, False),
        (["exp"], 1, 4, True),  # 1 + 8 + 16
        (["exp"], 1, 3, False),
    ],
)
def test_auto_counts_what_is_done_again(graph, run_pipeline, ops, inputs, balance, fused):
    x = graph.input("x", (2, 1024))
    others = [graph.input("z", (2, 1024))] if inputs == 2 else []
    for op in ops:
        x = graph.op(op, x, *others)
    y = over_rows(graph, graph.reshape(graph.reduce("add", x, 0), 1, 1024), 2, 1024)
    pipeline = f"kernelize{{fuse-reduce=auto balance={balance}}}"
    expected = ["r_2_1024"] if fused else ["r_1024", "e_2_1024"]
    assert names(run_pipeline(graph.module(y), pipeline)) == expected


def test_auto_with_symbolic_sizes(graph, run_pipeline):
    n = symbol("n", 1, 64)
    s = graph.reduce("add", graph.input("x", (n, 8)), 1)
    wide = graph.expand(graph.reshape(s, n, 1), n, 8)
    y = graph.op("mul", wide, graph.input("y", (n, 8)))
    assert names(run_pipeline(graph.module(y), AUTO)) == ["r_n_8"]


def test_accesses_follow_reshapes():
    loops = Loops()
    access = loops.nest((4, 8))
    i, j = access
    assert reshaped(access, (4, 8), (32,)) == (i * 8 + j,)
    assert reshaped((i * 8 + j,), (32,), (4, 8)) == (i, j)
    assert reshaped(access, (4, 8), (4, 1, 8)) == (i, as_expr(0), j)
    assert reshaped(access, (4, 0), (0,)) is None
    inner = loops.nest((5,), loops.opened((j,)))
    assert loops.opened(inner) == ranges_of((i, j, *inner))


# Cost.


def seconds(run_pipeline, module: ModuleOp, pipeline: str) -> float:
    start = time.perf_counter()
    run_pipeline(module, pipeline)
    return time.perf_counter() - start


@pytest.mark.parametrize("pipeline", [NONE, AUTO])
def test_five_thousand_chained_ops(graph, run_pipeline, pipeline):
    x = graph.input("x", (4,))
    for _ in range(5000):
        x = graph.op("exp", x)
    module = graph.module(x)
    assert seconds(run_pipeline, module, pipeline) < 5
    assert names(module) == ["e_4"]


@pytest.mark.parametrize("pipeline", [NONE, ALL, AUTO])
def test_sixty_doublings_are_sixty_ops(graph, run_pipeline, pipeline):
    # Followed path by path, these would be 2 to the power 60 accesses.
    x = graph.input("x", (8, 8))
    total = graph.expand(graph.reshape(graph.reduce("add", x, 1), 8, 1), 8, 8)
    for _ in range(60):
        x = graph.op("add", graph.op("mul", x, total), graph.permute(x, 1, 0))
    module = graph.module(graph.reduce("add", x, 1))
    assert seconds(run_pipeline, module, pipeline) < 5
    assert len(kernels(module)) == (1 if pipeline == ALL else 2)
    assert sum(1 for _ in kernels(module)[-1].block.ops) <= 60 * 3 + 8


def test_many_kernels(graph, run_pipeline):
    x = graph.input("x", (8,))
    for _ in range(400):
        x = graph.stage(graph.op("exp", x))
    module = graph.module(x)
    assert seconds(run_pipeline, module, "kernelize,dedupe-kernels,plan-memory") < 5
    assert len(kernels(module)) == 1
    assert sum(isinstance(op, TempOp) for op in module.walk()) == 399
