"""Pairs of bf16, and the sum of their products: uloop.pair, `reduce dot`, x86vector.avx512.dot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xdsl.ir import Operation

from uopc.dialects import loop
from uopc.dialects.rounding import Array
from uopc.dialects.x86vector import DotOp
from uopc.interpreters.fused import fma
from uopc.interpreters.scalar_integers import Function, Rule
from uopc.interpreters.scalar_types import where

_SMALLEST = np.float32(2.0**-126)
"""The smallest f32 that is no denormal."""
_TINY = 2.0**-126 - 2.0**-151
"""What is below rounds to less than that, were there no smallest exponent."""


def dot(accumulator: Any, a: Any, b: Any) -> Array:
    """accumulator + a[1] * b[1], then + a[0] * b[0], of i32 that are pairs of bf16.

    Each is a fused multiply-add of f32, rounded once to nearest even. Of operands and results what
    is denormal counts as a zero of its sign; a result is denormal if it would be smaller than
    2**-126 rounded with as many bits and any exponent (x86's tininess after rounding).
    """
    x, y = (np.asarray(pair).view(np.uint32) for pair in (a, b))
    above = np.uint32(0xFFFF0000)
    total = _flushed_fma((x & above).view(np.float32), (y & above).view(np.float32), accumulator)
    up = np.uint32(16)
    return _flushed_fma((x << up).view(np.float32), (y << up).view(np.float32), total)


def _flushed_fma(a: Array, b: Array, c: Any) -> Array:
    a, b, c = (_flushed(np.asarray(x)) for x in (a, b, c))
    made = np.asarray(fma(a, b, c))
    size = np.abs(made)
    edge = size == _SMALLEST
    if edge.any():
        # Exact in f64 at the edge: what is that small is a difference of numbers close together.
        sign = np.copysign(1.0, made).astype(np.float64)
        product = sign * a.astype(np.float64) * b.astype(np.float64)
        edge = edge & (product < _TINY - sign * c.astype(np.float64))
    return where((size < _SMALLEST) | edge, np.copysign(np.float32(0), made), made)


def _flushed(x: Array) -> Array:
    return where(np.abs(x) < _SMALLEST, np.copysign(np.float32(0), x), x)


def _pair(op: Operation) -> Function:
    def compute(low: Any, high: Any) -> Any:
        bits = [np.asarray(x).view(np.uint16).astype(np.uint32) for x in (low, high)]
        return np.asarray(bits[0] | (bits[1] << np.uint32(16))).view(np.int32)

    return compute


def _dot_of_vectors(op: Operation) -> Function:
    def compute(accumulator: Any, a: Any, b: Any) -> Any:
        pairs = [np.ascontiguousarray(x).view(np.int32) for x in (a, b)]
        return dot(accumulator, *pairs)

    return compute


PAIR_RULES: Mapping[type[Operation], Rule] = {loop.PairOp: _pair, DotOp: _dot_of_vectors}
