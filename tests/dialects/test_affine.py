"""Index expressions to affine maps and back."""

import random

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, Builtin
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineMap
from xdsl.parser import Parser

from uopc.dialects.affine import from_affine_expr, from_affine_map, is_affine, to_affine_map
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import (
    Expr,
    constant,
    maximum,
    minimum,
    new_range,
    symbol,
    total,
    value,
)


def parse(text: str) -> AffineMap:
    context = Context()
    context.load_dialect(Builtin)
    attribute = Parser(context, f"affine_map<{text}>").parse_attribute()
    assert isinstance(attribute, AffineMapAttr)
    return attribute.data


@pytest.fixture
def leaves() -> dict[str, Expr]:
    n = symbol("n", 1, 8)
    return {"i": new_range("i", 30), "j": new_range("j", 30), "v": value("v", -9, 9), "n": n}


def test_text(leaves: dict[str, Expr]) -> None:
    i, j, n = leaves["i"], leaves["j"], leaves["n"]
    exprs = [i * 8 + j // 4, -i + 3, i % 7, constant(0), i * n, i // n, (i + j) % (n + 1)]
    affine_map = to_affine_map(exprs, [i.leaf, j.leaf], [n.leaf])
    assert [str(result) for result in affine_map.results] == [
        "((d0 * 8) + (d1 floordiv 4))",
        "((d0 * -1) + 3)",
        "(d0 mod 7)",
        "0",
        "(d0 * s0)",
        "(d0 floordiv s0)",
        "((d0 + d1) mod (s0 + 1))",
    ]
    assert (affine_map.num_dims, affine_map.num_symbols) == (2, 1)
    assert to_affine_map([j], [j.leaf, i.leaf]).results[0].position == 0
    assert str(to_affine_map([], [])) == "() -> ()"


def random_affine(rng: random.Random, leaves: list[Expr], depth: int) -> Expr:
    if not depth:
        return rng.choice(leaves)
    a, b = (random_affine(rng, leaves, depth - 1) for _ in range(2))
    number = rng.choice((2, 3, 4, 7, -2))
    return rng.choice(
        (a + b * number + 1, a // number, a % number, a * leaves[-1] - b, a // leaves[-1], a - b)
    )


def test_round_trip_of_random_expressions(leaves: dict[str, Expr]) -> None:
    rng = random.Random(11)
    operands = list(leaves.values())
    dims = [e.leaf for e in operands]
    for _ in range(300):
        e = random_affine(rng, operands, rng.randint(0, 3))
        affine_map = to_affine_map([e], dims)
        assert from_affine_map(affine_map, operands) == [e]
        point = [rng.randrange(leaf.lower, leaf.upper + 1) for leaf in dims]
        expected = e.evaluate(dict(zip(dims, point, strict=True)))
        assert affine_map.eval(point, []) == (expected,)


def test_round_trip_through_text(leaves: dict[str, Expr]) -> None:
    i, j, v = leaves["i"], leaves["j"], leaves["v"]
    exprs = [(i * 3 - j) // 8 * 2 + v % 5 - 4, i - j, (v * 2 + 1) // 3 % 4]
    affine_map = to_affine_map(exprs, [i.leaf, j.leaf, v.leaf])
    assert from_affine_map(parse(str(affine_map)), [i, j, v]) == exprs


def test_maps_of_others_are_simplified(leaves: dict[str, Expr]) -> None:
    i, j = new_range("i", 16), new_range("j", 4)
    affine_map = parse("(d0, d1)[s0] -> ((d0 * 4 + d1) floordiv 4, (d0 * 8 + d1) mod 4, s0 + d1)")
    assert from_affine_map(affine_map, [i, j, leaves["n"]]) == [i, j, leaves["n"] + j]
    ceiling = parse("(d0) -> (d0 ceildiv 4)").results[0]
    for a in range(-9, 10):
        assert from_affine_expr(ceiling, [constant(a)]) is constant(-(-a // 4))


def test_wide_sums_need_no_stack() -> None:
    ranges = [new_range(f"r{k}", 9) for k in range(3000)]
    e = total(r * (k + 2) for k, r in enumerate(ranges))
    affine_map = to_affine_map([e], [r.leaf for r in ranges])
    assert affine_map.eval([1] * 3000, []) == (sum(range(2, 3002)),)
    assert len(str(affine_map)) > 3000
    leaning = AffineConstantExpr(0)
    for _ in range(5000):
        leaning = AffineBinaryOpExpr(AffineBinaryOpKind.Add, leaning, AffineConstantExpr(1))
    assert from_affine_expr(leaning, []) is constant(5000)


def test_what_is_not_affine_is_refused(leaves: dict[str, Expr]) -> None:
    i, j = leaves["i"], leaves["j"]
    for e in (minimum(i, j), maximum(i, j + 1) * 2, minimum(i, j) // 3 + i):
        assert not is_affine(e)
        with pytest.raises(UopcError, match="minimum or maximum of 2 expressions") as caught:
            to_affine_map([e], [i.leaf, j.leaf])
        assert caught.value.kind == "not-affine"
    assert is_affine((i * leaves["n"]) // 7 % (leaves["n"] + 1))
    with pytest.raises(UopcError, match="'j' is neither a dimension nor a symbol") as caught:
        to_affine_map([i + j], [i.leaf])
    assert caught.value.kind == "not-affine"


def test_wrong_operands_and_divisors_are_refused(leaves: dict[str, Expr]) -> None:
    i, v = leaves["i"], leaves["v"]
    with pytest.raises(UopcError, match="takes 2 operands, got 1") as caught:
        from_affine_map(parse("(d0)[s0] -> (d0 + s0)"), [i])
    assert caught.value.kind == "affine-operands"
    outside = parse("(d0, d1) -> (d1)").results[0]
    with pytest.raises(UopcError, match="mentions d1") as caught:
        from_affine_expr(outside, [i])
    assert caught.value.kind == "affine-operands"
    by_operand = to_affine_map([i // leaves["n"]], [i.leaf, leaves["n"].leaf])
    for divisor in (v, constant(0)):
        with pytest.raises(UopcError, match="cannot divide 'i'") as caught:
            from_affine_map(by_operand, [i, divisor])
        assert caught.value.kind == "index-divisor"
