"""rng_bit_generator: Threefry, a block cipher of 2 x 32 bits in 20 rounds over a counter.

J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011. Word 0 of
the state is the key, word 1 the counter. Block k, of counter + k, is element k of a result of
64 bits; of narrower results two elements, cut to their width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import ui32, ui64
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    invalid,
    result_type,
    row,
    unsupported,
    word,
)
from uopc.passes.stablehlo_conversion.elementwise import unsigned_of_width

Values = Sequence[SSAValue]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(b: Builder, key: Sequence[SSAValue], counter: Sequence[SSAValue]) -> list[SSAValue]:
    """Two words of 32 bits from two words of key and of counter, all of one shape."""
    parity = b.op(e.XorOp, b.op(e.XorOp, *key), b.like(key[0], _PARITY))
    keys = [*key, parity]
    x, y = (b.op(e.AddOp, c, k) for c, k in zip(counter, key, strict=True))
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = b.op(e.AddOp, x, y)
            left = b.op(e.ShlOp, y, b.like(y, turn))
            right = b.op(e.ShrOp, y, b.like(y, 32 - turn))
            y = b.op(e.XorOp, b.op(e.OrOp, left, right), x)
        x = b.op(e.AddOp, x, keys[(group + 1) % 3])
        y = b.op(e.AddOp, y, b.op(e.AddOp, keys[(group + 2) % 3], b.like(y, group + 1)))
    return [x, y]


def _halves(b: Builder, x: SSAValue) -> list[SSAValue]:
    """The lower and the upper 32 bits."""
    return [b.cast(x, ui32), b.cast(b.op(e.ShrOp, x, b.like(x, 32)), ui32)]


def _rng_bit_generator(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b = c.build
    if word(op, "rng_algorithm", "DEFAULT") == "PHILOX":
        raise unsupported(op, "by PHILOX; THREE_FRY and DEFAULT are there")
    if shape_of(x[0]) != (2,) or element_of(x[0]) != ui64:
        raise unsupported(op, f"with state {x[0].type}, expected tensor<2xui64>")
    element, shape = result_type(op, 1)
    target = row(element)
    if target.is_bool:
        raise invalid(op, "gives truth values")
    per_block = 1 if target.bits == 64 else 2
    count = math.prod(shape)
    blocks = -(-count // per_block)
    key_word, start = (b.reshape(b.slice_axis(x[0], 0, k, k + 1), ()) for k in (0, 1))
    after = b.op(e.AddOp, start, b.constant(blocks, ui64))
    state = b.concatenate([b.reshape(key_word, (1,)), b.reshape(after, (1,))], 0)
    if not count:
        return [state, b.constant(0, element, shape)]
    position = b.op(e.AddOp, b.spread(start, (blocks,)), b.iota(0, (blocks,), ui64))
    key = [b.spread(k, (blocks,)) for k in _halves(b, key_word)]
    words = threefry(b, key, _halves(b, position))
    if per_block == 1:
        low, high = (b.cast(w, ui64) for w in words)
        bits = b.op(e.OrOp, low, b.op(e.ShlOp, high, b.like(high, 32)))
    else:
        pairs = [b.reshape(w, (blocks, 1)) for w in words]
        bits = b.reshape(b.concatenate(pairs, 1), (2 * blocks,))
        bits = b.cast(b.slice_axis(bits, 0, 0, count), unsigned_of_width(target.bits))
    bits = b.reshape(bits, shape)
    return [state, bits if element_of(bits) == element else b.bitcast(bits, element)]


RANDOM_RULES: dict[str, Rule] = {"stablehlo.rng_bit_generator": _rng_bit_generator}
