"""Which differences --check-values lets a pass make."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.interpreters.programs import programs
from uopc.tools.value_rules import EXACT, JUMP, SUM, Rule, difference, rules_of

TYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]


def differs(expected, got, dtype, rule=None):
    a, b = (np.array(x).astype(dtype) for x in (expected, got))
    return difference(0, a, b, rule or Rule())


@pytest.mark.parametrize("dtype", TYPES)
def test_bits_are_bits(dtype):
    assert differs([np.nan, 1.0], [-np.nan, 1.0], dtype) is None
    found = differs([0.0, 1.0, 2.0], [0.0, -0.0, 2.0], dtype)
    assert (found.index, found.count, found.total) == ((1,), 1, 3)
    assert differs([0.0], [-0.0], dtype).index == (0,)
    assert differs([np.inf], [3.0], dtype) is not None
    up = np.nextafter(np.array(1, dtype), np.array(2, dtype))
    assert differs(np.array([1], dtype), [up], dtype) is not None


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_have_a_tolerance_of_the_largest_number(dtype):
    rule = Rule(SUM, 100)
    eps = float(ml_dtypes.finfo(dtype).eps)
    expected = np.array([1.0, 0.0, -4.0])
    near, far = expected + 4 * eps, expected + 4000 * eps
    assert differs(expected, near, dtype, rule) is None
    assert differs(expected, far, dtype, rule).index == (0,)
    assert differs([0.0, 4.0], [-0.0, 4.0], dtype, rule) is None
    assert differs([np.nan, 4.0], [1.0, 4.0], dtype, rule).index == (0,)
    assert differs([np.inf, 4.0], [1.0, 4.0], dtype, rule).index == (0,)


def test_sums_near_overflow_may_overflow():
    rule = Rule(SUM, 10)
    assert differs([3e38, 1.0], [np.inf, 1.0], np.float32, rule) is None
    assert differs([1e30, 1.0], [np.inf, 1.0], np.float32, rule) is not None


def test_integers_are_exact_unless_they_may_jump():
    expected = np.arange(2000)
    got = expected.copy()
    got[[5, 9]] += 1
    assert differs(expected, got, np.int64, Rule(SUM)).index == (5,)
    assert differs(expected, got, np.int64, Rule(JUMP)) is None
    got[11] += 1
    assert differs(expected, got, np.int64, Rule(JUMP)).count == 3


def test_other_shapes_and_types():
    a = np.zeros((2, 3), np.float32)
    assert difference(0, a, a.reshape(6), Rule()) is None
    assert "shape (5,), expected float32 of shape (2, 3)" in str(
        difference(0, a, np.zeros(5, np.float32), Rule())
    )
    signless = np.array([200], np.uint8).view(np.int8)
    assert difference(0, np.array([200], np.uint8), signless, Rule()) is None


FUNCTION = """
func.func @f(%x: tensor<4x8xf32>, %k: tensor<4x8xi32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi1>, tensor<4x8xf32>) {
  %s = utensor.reduce add %x axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %r = utensor.sqrt %s : tensor<4xf32>
  %m = utensor.reduce max %x axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %i = utensor.reduce add %k axes [1] : tensor<4x8xi32> -> tensor<4xi32>
  %c = utensor.cmplt %r, %m : tensor<4xf32>
  %e = utensor.exp %x : tensor<4x8xf32>
  func.return %r, %m, %i, %c, %e
    : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi1>, tensor<4x8xf32>
}
"""


@pytest.mark.parametrize("pipeline", ["", "kernelize", "kernelize,rangeify"])
def test_what_depends_on_a_float_sum_is_followed(run_pipeline, pipeline):
    module = parse_text(FUNCTION)
    if pipeline:
        run_pipeline(module, pipeline)
    (program,) = programs(module)
    rules = rules_of(module, program, "some-pass", module)
    assert {n: r.kind for n, r in rules.items() if r.kind != EXACT} == {0: SUM, 3: JUMP}
    assert rules[0].terms == 8


def test_from_linearize_on_bits_are_equal(run_pipeline):
    module = parse_text(FUNCTION)
    run_pipeline(module, "kernelize,rangeify,plan-memory")
    (program,) = programs(module)
    assert rules_of(module, program, "linearize", module) == {}
    run_pipeline(module, "linearize")
    (program,) = programs(module)
    assert rules_of(module, program, "some-pass", module) == {}
    run_pipeline(module, "lower-plan")
    (program,) = programs(module)
    assert rules_of(module, program, "uopc-cse", module) == {}
    assert rules_of(module, program, "expand-math", module)[4].kind == SUM


def test_pairs_of_bf16_may_lose_denormals():
    expected, got = np.full(4, 2.0**-130, np.float32), np.zeros(4, np.float32)
    assert difference(0, expected, got, Rule(SUM, 8)) is not None
    assert difference(0, expected, got, Rule(SUM, 8, pairs=True)) is None
    assert difference(0, expected * np.float32(2.0**10), got, Rule(SUM, 8, pairs=True)) is not None
