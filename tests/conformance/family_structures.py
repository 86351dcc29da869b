"""Cases of StableHLO's ops on windows, indices, products, order, control and random bits."""
# ruff: noqa: E501 -- the text of an op stands on a line

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import semantics
from family_cases import (
    ELEMENTS,
    RNG,
    TOLERANCE,
    Case,
    body_of,
    bound,
    draw,
    ints,
    op,
    pairs,
    t,
)


def windows() -> list[Case]:
    combine: dict[str, Any] = {
        "add": np.add,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "multiply": np.multiply,
    }
    settings = [
        ((5, 6), (2, 3), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
        ((5, 6), (2, 3), (2, 1), (1, 2), (2, 1), ((1, 0), (0, 2))),
        ((4, 5), (3, 1), (1, 3), (2, 1), (1, 1), ((2, 1), (-1, 0))),
        ((7,), (3,), (2,), (3,), (4,), ((2, -1),)),
        ((3, 4, 3), (2, 2, 2), (1, 2, 1), (1, 1, 2), (1, 1, 1), ((0, 1), (1, 0), (0, 0))),
    ]  # fmt: skip
    cases: list[Case] = []
    for shape, window, strides, base, dilations, padding in settings:
        for (kind, function), element in zip(
            combine.items(), ("i32", "f32", "i8", "ui16"), strict=True
        ):
            x, start = draw(element, *shape), bound(element, 1 if kind == "multiply" else 0)
            with np.errstate(over="ignore"):
                wanted = semantics.reduce_window(
                    x, start, function, window, strides, base, dilations, padding
                )
            given = f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, base_dilations = {ints(base)}, window_dilations = {ints(dilations)}, padding = {pairs(padding)}"
            cases.append(
                op("stablehlo.reduce_window", [x, start], [wanted], given, body_of(kind, element))
            )
    ge = "{\n^bb0(%x: tensor<i32>, %y: tensor<i32>):\n%z = stablehlo.compare GE, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %z : tensor<i1>\n}"
    for shape, window, strides, padding in (
        ((6, 4), (2, 2), (2, 2), ((0, 0), (0, 0))), ((5, 5), (3, 2), (1, 2), ((1, 1), (0, 1))),
        ((7,), (3,), (2,), ((1, 1),)),
    ):  # fmt: skip
        x = draw("i32", *shape) // 10
        sizes = [
            semantics.window_count(n + a + b, w, s, 1)
            for n, (a, b), w, s in zip(shape, padding, window, strides, strict=True)
        ]
        source, start = draw("i32", *sizes), bound("i32", 3)
        given = f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, padding = {pairs(padding)}"
        for kind in ("add", "maximum"):
            wanted = semantics.select_and_scatter(
                x, source, start, np.greater_equal, combine[kind], window, strides, padding
            )
            cases.append(
                op(
                    "stablehlo.select_and_scatter",
                    [x, source, start],
                    [wanted],
                    given,
                    f"{ge}, {body_of(kind, 'i32')}",
                )
            )
    return cases


def indexing() -> list[Case]:
    """Settings: operand, indices, offset and collapsed axes, batching axes of both, map, vector axis, sizes."""
    settings = [
        ((5, 4), (3, 1), (1,), (0,), (), (), (0,), 1, (1, 4)),
        ((5, 4), (2, 6), (0,), (1,), (), (), (1, 0), 0, (2, 1)),
        ((5, 4), (7,), (0,), (1,), (), (), (1,), 1, (3, 1)),
        ((3, 5, 4), (2, 2, 3), (1, 3), (2,), (), (), (0, 2), 1, (2, 4, 1)),
        ((3, 5, 4), (3, 2, 2), (2,), (1,), (0,), (0,), (1, 2), 2, (1, 1, 3)),
        ((4, 3, 2), (2, 4, 1), (2,), (), (2, 0), (0, 1), (1,), 2, (1, 2, 1)),
        ((3, 3), (0, 2), (1,), (0,), (), (), (0, 1), 1, (1, 2)),
    ]  # fmt: skip
    cases: list[Case] = []
    combine: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "set": lambda _, y: y,
    }
    for position, setting in enumerate(settings):
        shape, where, offsets, collapsed, batching, index_batching, index_map, vector, sizes = (
            setting
        )
        element, index = ("f32", "i32", "i64", "i8")[position % 4], ("i32", "i64")[position % 2]
        x = draw(element, *shape)
        indices = RNG.integers(-2, 7, where).astype(ELEMENTS[index][1])
        wanted = semantics.gather(
            x, indices, offsets, collapsed, batching, index_batching, index_map, vector, sizes
        )
        numbers = f"offset_dims = {list(offsets)}, collapsed_slice_dims = {list(collapsed)}, operand_batching_dims = {list(batching)}, start_indices_batching_dims = {list(index_batching)}, start_index_map = {list(index_map)}, index_vector_dim = {vector}"
        cases.append(
            op(
                "stablehlo.gather",
                [x, indices],
                [wanted],
                f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {ints(sizes)}",
            )
        )
        numbers = f"update_window_dims = {list(offsets)}, inserted_window_dims = {list(collapsed)}, input_batching_dims = {list(batching)}, scatter_indices_batching_dims = {list(index_batching)}, scatter_dims_to_operand_dims = {list(index_map)}, index_vector_dim = {vector}"
        for kind, function in combine.items():
            updates = draw(element, *wanted.shape)
            with np.errstate(over="ignore"):
                result = semantics.scatter(
                    x,
                    indices,
                    updates,
                    function,
                    offsets,
                    collapsed,
                    batching,
                    index_batching,
                    index_map,
                    vector,
                )
            cases.append(
                op(
                    "stablehlo.scatter",
                    [x, indices, updates],
                    [result],
                    f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
                    body_of(kind, element),
                )
            )
    x, update = draw("f32", 4, 5, 3), draw("f32", 2, 5, 1)
    for starts in ((1, 0, 2), (-7, 3, 9), (2**31 - 1, -(2**31), 0)):
        at = [bound("i32", n) for n in starts]
        places = tuple(
            slice(min(max(s, 0), n - m), min(max(s, 0), n - m) + m)
            for s, n, m in zip(starts, x.shape, update.shape, strict=True)
        )
        cases.append(
            op(
                "stablehlo.dynamic_slice",
                [x, *at],
                [x[places].copy()],
                f"slice_sizes = {ints(update.shape)}",
            )
        )
        changed = x.copy()
        changed[places] = update
        cases.append(op("stablehlo.dynamic_update_slice", [x, update, *at], [changed]))
    return cases


def products() -> list[Case]:
    cases: list[Case] = []
    for element in ("f32", "f64", "i32", "bf16"):
        for left, right, batch, contract, rule in (
            ((3, 4), (4, 5), ((), ()), ((1,), (0,)), "mk,kn->mn"),
            ((2, 3, 4), (5, 2, 4), ((0,), (1,)), ((2,), (2,)), "bmk,nbk->bmn"),
            ((2, 3, 4, 2), (4, 2, 3, 2), ((0, 3), (1, 3)), ((1, 2), (2, 0)), "bijc,jbic->bc"),
            ((3,), (4,), ((), ()), ((), ()), "i,j->ij"),
        ):
            x, y = draw(element, *left), draw(element, *right)
            wide = np.int64 if element == "i32" else np.float64
            wanted = np.einsum(rule, x.astype(wide), y.astype(wide)).astype(x.dtype)
            numbers = f"lhs_batching_dimensions = {list(batch[0])}, rhs_batching_dimensions = {list(batch[1])}, lhs_contracting_dimensions = {list(contract[0])}, rhs_contracting_dimensions = {list(contract[1])}"
            cases.append(
                op(
                    "stablehlo.dot_general",
                    [x, y],
                    [wanted],
                    f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
                    close=10 * TOLERANCE.get(element, 0),
                )
            )
    return cases


def convolutions() -> list[Case]:
    """Settings: image, kernel, strides, padding, dilations of both, reversal, groups of features and batch."""
    settings = [
        ((2, 3, 6), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), (False,), 1, 1),
        ((2, 4, 6), (6, 2, 3), (2,), ((1, 2),), (2,), (2,), (True,), 2, 1),
        ((4, 2, 5), (6, 2, 2), (1,), ((1, -1),), (1,), (1,), (False,), 1, 2),
        ((1, 2, 5, 6), (3, 2, 2, 3), (2, 1), ((1, 0), (-1, 3)), (1, 2), (2, 1), (False, True), 1, 1),
        ((2, 3, 4, 4), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (True, True), 3, 1),
        ((1, 1, 3, 4, 3), (2, 1, 2, 2, 2), (1, 2, 1), ((0, 1), (1, 0), (0, 0)), (1, 1, 2), (1, 1, 1), (False, False, True), 1, 1),
    ]  # fmt: skip
    cases: list[Case] = []
    for position, (
        shape,
        weights,
        strides,
        padding,
        lhs,
        rhs,
        reversal,
        features,
        batches,
    ) in enumerate(settings):
        x, kernel = draw("i32", *shape), draw("i32", *weights)
        wanted = semantics.convolution(
            x, kernel, strides, padding, lhs, rhs, reversal, features, batches
        )
        spatial = list(range(2, x.ndim))
        names = [str(k) for k in range(x.ndim - 2)]
        layout, order = (["b", "f", *names], [0, 1, *spatial])
        kernels, korder = (["o", "i", *names], [0, 1, *spatial])
        if position % 2:  # channels last
            layout, order = ["b", *names, "f"], [0, *spatial, 1]
            kernels, korder = [*names, "i", "o"], [*spatial, 1, 0]
        x, wanted = (np.ascontiguousarray(v.transpose(order)) for v in (x, wanted))
        kernel = np.ascontiguousarray(kernel.transpose(korder))
        numbers = f"[{', '.join(layout)}]x[{', '.join(kernels)}]->[{', '.join(layout)}]"
        turned = ", ".join(str(v).lower() for v in reversal)
        given = f"window_strides = {ints(strides)}, padding = {pairs(padding)}, lhs_dilation = {ints(lhs)}, rhs_dilation = {ints(rhs)}, window_reversal = array<i1: {turned}>, dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {features} : i64, batch_group_count = {batches} : i64"
        cases.append(op("stablehlo.convolution", [x, kernel], [wanted], given))
    return cases


def movement() -> list[Case]:
    cases: list[Case] = []
    for element, shape, low, high, interior in (
        ("f32", (3, 4), (1, 0), (0, 2), (0, 0)), ("i8", (3, 4), (-1, 2), (1, -2), (2, 1)),
        ("ui32", (5,), (-2,), (-1,), (1,)), ("f64", (2, 1, 3), (0, 3, -1), (1, -1, 0), (1, 4, 2)),
        ("i64", (0, 2), (2, 0), (1, 0), (3, 0)), ("i1", (2, 2), (0, -1), (0, 0), (1, 1)),
    ):  # fmt: skip
        x, value = draw(element, *shape), bound(element, 1)
        wanted = semantics.padded(x, value, low, high, interior)
        given = f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
        cases.append(op("stablehlo.pad", [x, value], [wanted], given))
    for element in ("f32", "bf16", "i16", "i1"):
        x, y, none = draw(element, 2, 3, 4), draw(element, 2, 1, 4), draw(element, 2, 0, 4)
        cases += [
            op("stablehlo.concatenate", [x, none, y, x], [np.concatenate([x, none, y, x], 1)], "dimension = 1 : i64"),
            op("stablehlo.reshape", [x], [x.reshape(4, 1, 6)]),
            op("stablehlo.reshape", [none], [none.reshape(0, 3)]),
            op("stablehlo.transpose", [x], [x.transpose(2, 0, 1).copy()], f"permutation = {ints([2, 0, 1])}"),
            op("stablehlo.reverse", [x], [x[::-1, :, ::-1].copy()], f"dimensions = {ints([0, 2])}"),
            op("stablehlo.slice", [x], [x[:, 1:3:2, 1:4].copy()], f"start_indices = {ints([0, 1, 1])}, limit_indices = {ints([2, 3, 4])}, strides = {ints([1, 2, 1])}"),
            op("stablehlo.broadcast_in_dim", [y], [np.broadcast_to(y.transpose(2, 0, 1)[:, :, None], (4, 2, 3, 1)).copy()], f"broadcast_dimensions = {ints([1, 3, 0])}"),
        ]  # fmt: skip
    for element in ("f32", "f16", "i8", "ui64", "i32"):
        for axis in (0, 1):
            wanted = np.arange((3, 5)[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
            wanted = np.broadcast_to(wanted, (3, 5)).astype(ELEMENTS[element][1])
            cases.append(op("stablehlo.iota", [], [wanted], f"iota_dimension = {axis} : i64"))
    return cases


def sorts() -> list[Case]:
    cases: list[Case] = []
    for element, shape, axis in (
        ("f32", (4, 5), 0),
        ("i32", (4, 5), 1),
        ("ui8", (3, 2, 6), 2),
        ("f64", (1,), 0),
        ("i64", (2, 0), 1),
    ):
        x = draw(element, *shape)
        x = x // x.dtype.type(10) if "i" in element else x
        row = np.arange(x.size, dtype=np.int32).reshape(shape)
        kind = "FLOAT" if "f" in element else "UNSIGNED" if element.startswith("u") else "SIGNED"
        for direction in ("LT", "GT"):
            keys = x.astype(np.float64) * (1 if direction == "LT" else -1)
            order = np.argsort(keys, axis, kind="stable")
            wanted = [np.take_along_axis(v, order, axis) for v in (x, row)]
            s = f"tensor<{element}>"
            compare = f"{{\n^bb0(%x: {s}, %y: {s}, %p: tensor<i32>, %q: tensor<i32>):\n%z = stablehlo.compare {direction}, %x, %y, {kind} : ({s}, {s}) -> tensor<i1>\nstablehlo.return %z : tensor<i1>\n}}"
            cases.append(
                op(
                    "stablehlo.sort",
                    [x, row],
                    wanted,
                    f"dimension = {axis} : i64, is_stable = true",
                    compare,
                )
            )
    for element in ("f32", "i16"):
        x = draw(element, 2, 3, 7)
        order = np.argsort(-x.astype(np.float64), 2, kind="stable")[..., :3]
        wanted = [np.take_along_axis(x, order, 2), order.astype(np.int32)]
        cases.append(op("chlo.top_k", [x], wanted, "k = 3 : i64"))
    return cases


def solvers() -> list[Case]:
    cases: list[Case] = []
    base = draw("f64", 2, 4, 4)
    spread = base / 4 + 2 * np.eye(4)
    for left in (True, False):
        right = draw("f64", 2, 4, 3) if left else draw("f64", 2, 3, 4)
        for lower in (True, False):
            for unit in (True, False):
                triangle = np.tril(spread) if lower else np.triu(spread)
                if unit:
                    triangle = triangle * (1 - np.eye(4)) + np.eye(4)
                for transpose in ("NO_TRANSPOSE", "TRANSPOSE"):
                    used = triangle.swapaxes(1, 2) if transpose == "TRANSPOSE" else triangle
                    inverse = np.linalg.inv(used)
                    wanted = inverse @ right if left else right @ inverse
                    given = f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {transpose}>"
                    cases.append(
                        op(
                            "stablehlo.triangular_solve",
                            [spread, right],
                            [wanted],
                            given,
                            close=1e-11,
                        )
                    )
    positive = spread @ spread.swapaxes(1, 2)
    root = np.linalg.cholesky(positive)
    for lower in (True, False):
        body = f'%c = "stablehlo.cholesky"(%a) <{{lower = {str(lower).lower()}}}> : ({t(positive)}) -> {t(positive)}\n'
        # The other triangle is the implementation's: it is masked.
        body += "%r = stablehlo.multiply %c, %b : " + t(positive)
        mask = np.broadcast_to(
            np.tril(np.ones((4, 4))) if lower else np.triu(np.ones((4, 4))), (2, 4, 4)
        ).copy()
        cases.append(
            Case(
                f"cholesky {lower}",
                body,
                (positive, mask),
                (root if lower else root.swapaxes(1, 2).copy(),),
                1e-11,
            )
        )
    return cases


def random_bits() -> list[Case]:
    cases: list[Case] = []
    for key, counter, shape in (
        (0, 0, (3,)),
        (2**63 + 12345, 2**32 - 1, (2, 3)),
        (7, 2**64 - 2, (4,)),
    ):
        count = math.prod(shape)
        bits = semantics.threefry(key, [(counter + k) % 2**64 for k in range(count)])
        state = np.asarray([key, counter], np.uint64)
        after = np.asarray([key, (counter + count) % 2**64], np.uint64)
        results = [after, np.asarray(bits, np.uint64).reshape(shape)]
        cases.append(
            op(
                "stablehlo.rng_bit_generator",
                [state],
                results,
                "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>",
            )
        )
    return cases


BRANCHES = """%r = "stablehlo.case"(%a) ({
  %0 = stablehlo.add %b, %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}, {
  %0 = stablehlo.negate %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}, {
  %0 = stablehlo.multiply %b, %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}) : (tensor<i32>) -> tensor<3xi32>"""
NESTED = """
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%w:2 = stablehlo.while(%i = %zero, %s = %b) : tensor<i32>, tensor<3xi32>
cond {
  %0 = stablehlo.compare LT, %i, %a, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %v:2 = stablehlo.while(%j = %zero, %p = %s) : tensor<i32>, tensor<3xi32>
  cond {
    %0 = stablehlo.compare LE, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  } do {
    %0 = stablehlo.add %j, %one : tensor<i32>
    %1 = stablehlo.add %p, %p : tensor<3xi32>
    stablehlo.return %0, %1 : tensor<i32>, tensor<3xi32>
  }
  %c = stablehlo.compare EQ, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %2 = "stablehlo.if"(%c) ({
    %3 = stablehlo.negate %v#1 : tensor<3xi32>
    stablehlo.return %3 : tensor<3xi32>
  }, {
    stablehlo.return %v#1 : tensor<3xi32>
  }) : (tensor<i1>) -> tensor<3xi32>
  %4 = stablehlo.add %i, %one : tensor<i32>
  stablehlo.return %4, %2 : tensor<i32>, tensor<3xi32>
}
%r = stablehlo.optimization_barrier %w#1 : tensor<3xi32>"""


def control() -> list[Case]:
    x = draw("i32", 3)
    cases = [
        Case(f"case {k}", BRANCHES, (bound("i32", k), x), (wanted,))
        for k, wanted in ((0, x + x), (1, -x), (2, x * x), (3, x * x), (-1, x * x))
    ]
    for count in (0, 1, 4):
        wanted = x.copy()
        for i in range(count):
            wanted = wanted * np.int32(2 ** (i + 1) * (-1 if i == 1 else 1))
        cases.append(Case(f"loops of {count}", NESTED, (bound("i32", count), x), (wanted,)))
    return cases
