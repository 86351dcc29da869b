"""Index expressions: identity, bounds, relations, values, and 10,000 random ones against Python."""

import copy
import gc
import itertools
import random
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import (
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Product,
    RangeVar,
    SymbolVar,
    ValueVar,
    as_expr,
    at_least,
    closure,
    constant,
    less_than,
    maximum,
    minimum,
    new_range,
    same,
    symbol,
    total,
    value,
)

N = symbol("n", 1, 8)


# Identity


def test_equal_expressions_are_one_object() -> None:
    i, j = new_range("i", 16), new_range("j", 8)
    assert 8 * i + j is j + i * 8
    assert (i + 1) - 1 is i
    assert i - i is constant(0)
    assert (i + j) * (i - j) is i * i - j * j
    assert (i + j * 3) // 5 is (j * 3 + i) // 5
    assert minimum(i, j) is minimum(j, i)
    assert hash(i + j) == hash(j + i)
    assert copy.copy(i) is i
    assert copy.deepcopy([i + j])[0] is i + j


def test_leaves_have_the_identity_their_kind_has() -> None:
    assert new_range("i", 4) is not new_range("i", 4)
    assert symbol("n", 1, 8) is N
    assert symbol("n", 1, 9) is not N
    key, unhashable = object(), ["a list"]
    assert value(key, 0, 3) is value(key, 0, 3)
    assert value(key, 0, 3) is not value(key, 0, 4)
    assert value(object(), 0, 3) is not value(key, 0, 3)
    assert value(1, 0, 3) is not value(1.0, 0, 3)
    assert value(unhashable, 0, 3) is value(unhashable, 0, 3)
    assert value(list(unhashable), 0, 3) is not value(unhashable, 0, 3)


def test_leaves_carry_what_made_them() -> None:
    key = object()
    i, v = new_range("i", N, key), value("v", -1, 1)
    assert isinstance(i.leaf, RangeVar)
    assert (i.leaf.name, i.leaf.end, i.leaf.key) == ("i", N, key)
    assert isinstance(N.leaf, SymbolVar)
    assert (N.leaf.name, N.leaf.lower, N.leaf.upper) == ("n", 1, 8)
    assert isinstance(v.leaf, ValueVar)
    assert v.leaf.key == "v"
    for e in (i + 1, i * 2, i + v, constant(0), i // 4, i * v):
        assert e.leaf is None


def test_atoms_are_of_the_six_kinds() -> None:
    i, v = new_range("i", 40), value("v", -9, 9)
    kinds = {
        FloorDiv: i // 7,
        Mod: i % 7,
        Product: i * v,
        Min: minimum(i, v),
        Max: maximum(i, v),
    }
    for kind, e in kinds.items():
        assert isinstance(e.atom, kind)
    assert (i // 7).atom.numerator is i
    assert int((i % 7).atom.divisor) == 7
    assert (i * v).atom.factors == (i.leaf, v.leaf)


class Owner:
    """Something weakly referable for a leaf to carry."""


def test_nothing_outlives_its_users() -> None:
    gc.collect()
    gc.disable()
    try:
        owner = Owner()
        r = new_range("r", symbol("fleeting", 1, 50), owner)
        v = value(owner, 0, 9)
        e = (r * 8 + v) // 3 + (r + v) % 5 + minimum(r * v, v) + r - r // 4 * 4
        assert e.bounds[0] >= 0
        assert at_least(e, r) in (True, None)
        e.substitute({r.leaf: v})
        watched = [weakref.ref(x) for x in (owner, r, r.leaf, e, e.terms[0][0], v)]
        del owner, r, v, e
        assert [w() for w in watched] == [None] * len(watched)
    finally:
        gc.enable()


def test_threads_make_the_same_objects() -> None:
    i = new_range("i", 100)
    results: list[list[Expr]] = []
    start = threading.Barrier(8)

    def build() -> None:
        start.wait()
        made = [symbol(f"t{k}", 1, 9) * k + (i * k + 3) // (k + 2) for k in range(300)]
        results.append(made)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=build) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(results) == 8
    assert all(a is b for other in results[1:] for a, b in zip(results[0], other, strict=True))


# Integers and operators


def test_integers_of_any_kind_mix_in() -> None:
    i = new_range("i", 10)
    assert i + np.int64(3) is i + 3
    assert np.int64(3) + i is i + 3
    assert np.int64(3) * i is i * 3
    assert 3 - i is -i + 3
    assert 25 // (N + 1) is constant(25) // (N + 1)
    assert 25 % (N + 1) is constant(25) % (N + 1)
    assert as_expr(True) is constant(1)
    assert int(constant(10**30) * 2) == 2 * 10**30
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            _ = i + wrong
        with pytest.raises(TypeError):
            _ = i // wrong


def test_constants() -> None:
    i = new_range("i", 10)
    assert (i * 0 + 7).is_constant
    assert int(i * 0 + 7) == 7 == (i * 0 + 7).as_int()
    assert i.as_int() is None
    with pytest.raises(ValueError, match="'i \\+ 1' is not a constant"):
        int(i + 1)


def test_integer_division_floors() -> None:  # C13
    v = value("a", -7, 7)
    for b in (1, -1, 2, -2, 3, -3, 4, -4):
        for a in range(-7, 8):
            assert int(constant(a) // b) == a // b
            assert int(constant(a) % b) == a % b
            assert (v // b).evaluate({v.leaf: a}) == a // b
            assert (v % b).evaluate({v.leaf: a}) == a % b
            assert ((v * 2 + 1) // b).evaluate({v.leaf: a}) == (2 * a + 1) // b
    for b in (symbol("b", 1, 4), -symbol("b", 1, 4)):
        for a, size in itertools.product(range(-7, 8), range(1, 5)):
            divisor = b.evaluate_named({"b": size})
            point = {v.leaf: a, symbol("b", 1, 4).leaf: size}
            assert (v // b).evaluate(point) == a // divisor
            assert (v % b).evaluate(point) == a % divisor


def test_total_is_the_sum() -> None:
    i, j = new_range("i", 10), new_range("j", 10)
    assert total([i, 3, j, i, -4, i // 4 * 4, i % 4]) is 3 * i + j - 1
    assert total([]) is constant(0)


# Text


def test_text() -> None:
    i, j, v = new_range("i", 100), new_range("j", 100), value("v", -9, 9)
    texts = {
        i * 4 + j // 8: "4*i + j floordiv 8",
        j // 8 * 3 - i: "3*(j floordiv 8) - i",
        388 - i * 48 - j: "388 - 48*i - j",
        -i - 1: "-i - 1",
        -(i // 7): "-(i floordiv 7)",
        (i + 1) % 7: "(i + 1) mod 7",
        i * N + j: "j + i*n",
        (i // 7) * N: "n*(i floordiv 7)",
        minimum(i + 1, j): "min(i + 1, j)",
        i // N: "i floordiv n",
        i % (N + 1): "i mod (n + 1)",
        (i % 7) // 2 * 2 + v: "v + 2*((i mod 7) floordiv 2)",
        constant(-3): "-3",
        constant(0): "0",
    }
    for e, text in texts.items():
        assert str(e) == text


def test_order_of_terms_is_that_of_the_names_made() -> None:
    text = "2*a + b + n + v + m*n"
    for _ in range(3):
        m = symbol("m", 1, 9)
        a, b, v = new_range("a", 10), new_range("b", 10), value("v", 0, 9)
        assert str(m * N + v + N + b + a * 2) == text


def test_text_of_a_value_shared_over_and_over_has_an_end() -> None:
    e = value("v", -(10**9), 10**9)
    for k in range(60):
        e = (e % (997 + k)) * 3 + (e * 5) // (7 + k)
    assert len(str(e)) < 50_000


# Bounds and relations


def test_bounds_of_sums_of_independent_leaves_are_exact() -> None:
    rng = random.Random(5)
    for _ in range(100):
        leaves = [value(object(), low := rng.randrange(-4, 3), low + rng.randrange(4))]
        leaves += [new_range("r", rng.randrange(1, 5)), symbol("q", low, low + 2)]
        e = total([leaf * rng.randrange(-5, 6) for leaf in leaves]) + rng.randrange(-5, 6)
        axes = [range(leaf.lower, leaf.upper + 1) for leaf in leaves]
        values = [
            e.evaluate(dict(zip([leaf.leaf for leaf in leaves], point, strict=True)))
            for point in itertools.product(*axes)
        ]
        assert e.bounds == (min(values), max(values))


def test_bounds_of_other_atoms() -> None:
    i, v = new_range("i", 10), value("v", -5, 3)
    assert (v // 2).bounds == (-3, 1)
    assert (v % 4).bounds == (0, 3)
    assert (i % N).bounds == (0, 7)
    assert (new_range("k", 3) % (N + 1)).bounds == (0, 2)
    assert (v * v).bounds == (0, 25)
    assert (v * v * v).bounds == (-125, 27)
    assert (v * i).bounds == (-45, 27)
    assert minimum(i, v).bounds == (-5, 3)
    assert maximum(i, v).bounds == (0, 9)
    assert (v // N).bounds == (-5, 3)


def test_ranges_of_size_one_and_zero() -> None:
    one, none, maybe = new_range("o", 1), new_range("z", 0), new_range("y", symbol("k", 0, 4))
    assert one.bounds == (0, 0) == none.bounds
    assert maybe.bounds == (0, 3)
    assert one // 4 is constant(0)
    assert one.leaf is not None
    assert less_than(maybe, symbol("k", 0, 4)) is True


def test_facts_of_symbolic_sizes() -> None:  # B5
    n = symbol("n", 1, 8)
    i, j, r = new_range("i", n), new_range("j", 8), new_range("r", n)
    assert (i * 8 + j) // 8 is i
    assert (i * 8 + j) % 8 is j
    assert less_than(r, n) is True
    assert at_least(n - 1 - r, 0) is True
    assert (n - 1 - r).bounds == (0, 7)
    assert less_than(n, 9) is True
    assert less_than(n, 1) is False
    assert less_than(n, 4) is None
    assert (n * 3 + 1).evaluate_named({"n": 8}) == 25
    for outside in (0, 9):
        with pytest.raises(UopcError, match=f"size 'n' is {outside}, expected 1 to 8") as caught:
            (n + 1).evaluate_named({"n": outside})
        assert caught.value.kind == "symbol-out-of-bounds"


def test_relations_of_ranges_and_their_ends() -> None:
    n, m, c = symbol("n", 1, 1000), symbol("m", 0, 1000), symbol("c", 2, 9)
    i, j, k = new_range("i", m), new_range("j", n), new_range("k", c)
    flat = (i * n + j) * c + k
    assert less_than(i * n + j, m * n) is True
    assert less_than(flat, m * n * c) is True
    assert at_least(flat, 0) is True
    assert less_than(m * n * c - 1, flat) is False
    assert less_than(flat, m * n * c - 1) is None
    assert at_least(flat, m * n * c) is False
    triangle = new_range("t", i + 1)
    assert less_than(triangle, m) is True
    assert less_than(i * (m + 1) + triangle, m * (m + 1)) is True
    inner = new_range("q", minimum(n, 8))
    assert less_than(inner, n) is True
    assert less_than(inner, 8) is True
    outer = new_range("o", (n + 7) // 8)
    assert less_than(outer * 8, n + 7) is True
    assert less_than(outer * 8 + 7, n + 7) is True
    whole = new_range("w", n // 8)
    assert less_than(whole * 8 + 7, n) is True
    assert less_than(whole * 8 + 8, n) is None


def test_relations_of_quotients_remainders_and_extrema() -> None:
    n, x, v = symbol("n", 1, 50), new_range("x", 1000), value("v", -99, 99)
    assert less_than(v % n, n) is True
    assert at_least(x, x % n) is True
    assert at_least(v, v // 8 * 8) is True
    assert less_than(v, v // 8 * 8 + 8) is True
    assert at_least(v, v // n * n) is True
    assert less_than(v, v // n * n + n) is True
    assert at_least(v, minimum(v, x)) is True
    assert at_least(maximum(v, x) + maximum(n, v), 2 * v) is True
    assert less_than(minimum(x * 2, n + v), n + v + 1) is True
    assert less_than(maximum(v, n), minimum(v, n)) is False
    assert less_than(v, n) is None
    assert at_least(7 * n - n * new_range("r", 8), 0) is True
    assert at_least(n * symbol("m", 1, 4), n) is True


def test_sameness() -> None:
    n, x, v = symbol("n", 1, 50), new_range("x", 1000), value("v", -99, 99)
    assert same(x + 1, 1 + x) is True
    assert same(v % 8 + v // 8 * 16, v + v // 8 * 8) is True
    assert same(2 * v - 4 * (v // 4), v + v % 4) is True
    assert same((7 * v) % 8, (-v) % 8) is True
    assert same((v % 8 + x) % 8, (v + x) % 8) is True
    assert same((v % 8 + x) // 8, (v + x) // 8 - v // 8) is True
    assert same(v % n - v, -(v // n) * n) is True
    assert same(minimum(x, 4) + 1, minimum(x + 1, 5)) is True
    assert same(x, x + 1) is False
    assert same(x, -1 - n) is False
    assert same(x, n) is None
    assert same(v // 2, v // 3) is None


# Leaves


def test_leaves_and_closure() -> None:
    m = symbol("m", 1, 9)
    i = new_range("i", N)
    t = new_range("t", i + 1)
    e = (t * m) // 3 + minimum(t, 4) % 3
    assert e.leaves == {t.leaf, m.leaf}
    assert e.ranges == {t.leaf}
    assert e.closure == closure(e.leaves) == {t.leaf, m.leaf, i.leaf, N.leaf}
    assert constant(3).leaves == frozenset() == closure([])


def test_a_long_chain_of_range_ends_needs_no_stack() -> None:
    r = new_range("r", 5)
    first = r.leaf
    for _ in range(3000):
        r = new_range("r", r + 1)
    assert first in r.closure
    assert len(r.closure) == 3001


# Substitution and values


def test_substitution_simplifies_anew() -> None:
    length = new_range("l", 128)
    i, j = new_range("i", 16), new_range("j", 8)
    e = (length // 8) * 100 + length % 8
    assert e.substitute({length.leaf: i * 8 + j}) is 100 * i + j
    assert e.substitute({length: i * 8 + j}) is 100 * i + j
    assert e.substitute({length.leaf: 17}) is constant(201)
    assert e.substitute({i.leaf: 0}) is e
    assert (i * 3 + j).substitute({i.leaf: j, j.leaf: i}) is j * 3 + i
    assert (i % N + j).substitute({N.leaf: 3}) is i % 3 + j
    assert minimum(i, N).substitute({N.leaf: 8}) is minimum(i, 8)
    with pytest.raises(TypeError, match="expected a leaf"):
        e.substitute({i + 1: 0})


def test_substitution_is_linear_in_shared_and_deep_expressions() -> None:
    x, y = value("x", -(10**9), 10**9), value("y", -(10**9), 10**9)
    e = x
    for k in range(60):
        e = (e * 5) // (7 + k) + e % (997 + k)
    replaced = e.substitute({x.leaf: y})
    assert replaced.leaves == {y.leaf}
    assert replaced.evaluate({y.leaf: 123456}) == e.evaluate({x.leaf: 123456})
    deep = x
    for k in range(1500):
        deep = maximum((deep * 2 + 1) // 3, -k)
    assert deep.substitute({x.leaf: y}).evaluate({y.leaf: 10**9}) == deep.evaluate({x.leaf: 10**9})
    assert same(deep + 1, deep.substitute({x.leaf: y})) is None
    assert len(repr(deep)) < 50_000


def test_wide_sums() -> None:
    ranges = [new_range(f"r{k}", 4) for k in range(3000)]
    e = total(r * (k + 1) for k, r in enumerate(ranges))
    assert e.bounds == (0, 3 * 3000 * 3001 // 2)
    shifted = e.substitute({r.leaf: r + 0 * k for k, r in enumerate(ranges)})
    assert shifted is e
    assert int(e.substitute({r.leaf: 1 for r in ranges})) == 3000 * 3001 // 2


def test_a_leaf_without_a_value_is_named() -> None:
    i = new_range("row", 4)
    for evaluate in (lambda: (i + N).evaluate({N.leaf: 3}), lambda: i.evaluate_named({"n": 1})):
        with pytest.raises(UopcError, match="no value is given for 'row'") as caught:
            evaluate()
        assert caught.value.kind == "index-unbound"


def test_bounds_upside_down_are_refused() -> None:
    for make in (lambda: symbol("n", 3, 2), lambda: value("v", 3, 2)):
        with pytest.raises(UopcError, match="lower bound 3 above its upper bound 2") as caught:
            make()
        assert caught.value.kind == "index-bounds"


def test_values_at_arrays_of_points() -> None:
    i, v = new_range("i", 10), value("v", -5, 5)
    e = minimum(i, v) * 3 + maximum(v, 0) // 2 - (i * v) % 7
    a, b = np.arange(10)[:, None], np.arange(-5, 6)[None, :]
    expected = np.minimum(a, b) * 3 + np.maximum(b, 0) // 2 - (a * b) % 7
    assert (e.evaluate_array({i.leaf: a, v.leaf: b}) == expected).all()
    assert e.evaluate_array({i.leaf: 3, v.leaf: -2}) == e.evaluate({i.leaf: 3, v.leaf: -2})


# Ten thousand random expressions (C71)


class Space:
    """Leaves of every kind with random bounds, and all their points (at most 500, sampled)."""

    def __init__(self, rng: random.Random) -> None:
        n = symbol("n", *rng.choice(((1, 3), (2, 3), (1, 4), (3, 3))))
        low = rng.randrange(-9, 2)
        self.leaves = [
            n,
            new_range("r", n),
            new_range("i", rng.choice((1, 2, 4, 5, 8))),
            value("v", low, low + rng.randrange(10)),
            symbol("z", -3, rng.randrange(-3, 3)),
        ]
        axes = [range(leaf.lower, leaf.upper + 1) for leaf in self.leaves]
        points = [p for p in itertools.product(*axes) if p[1] < p[0]]
        if len(points) > 500:
            points = rng.sample(points, 500)
        self.columns = np.array(points, dtype=np.int64).T
        self.mapping = {e.leaf: row for e, row in zip(self.leaves, self.columns, strict=True)}


def random_pair(rng: random.Random, space: Space, depth: int) -> tuple[Expr, np.ndarray]:
    """An expression, and its values as numpy computes them without it (numpy floors too)."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            number = rng.randrange(-12, 13)
            return constant(number), np.full(space.columns.shape[1], number)
        which = rng.randrange(len(space.leaves))
        return space.leaves[which], space.columns[which]
    a, x = random_pair(rng, space, depth - 1)
    kind = rng.choice("++-**////%%%%mM")
    if kind == "*" and rng.random() < 0.8:
        number = rng.choice((-8, -3, -1, 2, 3, 4, 6, 8))
        return a * number, x * number
    if kind in "/%":
        if rng.random() < 0.8:
            number = rng.choice((1, 2, 3, 4, 5, 6, 8, 12, 16, -1, -2, -3, -4))
            b, y = constant(number), np.full_like(x, number)
        else:
            b, y = space.leaves[0] * 2 + 1, space.columns[0] * 2 + 1
            if rng.random() < 0.5:
                b, y = space.leaves[0], space.columns[0]
        return (a // b, x // y) if kind == "/" else (a % b, x % y)
    b, y = random_pair(rng, space, depth - 1)
    match kind:
        case "+":
            return a + b, x + y
        case "-":
            return a - b, x - y
        case "*":
            return a * b, x * y
        case "m":
            return minimum(a, b), np.minimum(x, y)
        case _:
            return maximum(a, b), np.maximum(x, y)


@pytest.mark.parametrize("seed", range(10))
def test_random_expressions_are_what_python_computes(seed: int) -> None:
    """1,000 a seed: equal at every point, within their bounds, also after substitution."""
    rng = random.Random(seed)
    constants = 0
    for number in range(1000):
        if number % 50 == 0:
            space = Space(rng)
        e, expected = random_pair(rng, space, rng.randint(1, 4))
        got = e.evaluate_array(space.mapping)
        assert np.array_equal(np.broadcast_to(got, expected.shape), expected), (seed, number, e)
        if number % 4 == 0:
            assert e.lower <= expected.min() <= expected.max() <= e.upper, (seed, number, e)
        if number % 8 == 0:
            which = rng.randrange(1, 5)
            fixed = int(rng.choice(space.columns[which]))
            there = space.columns[which] == fixed
            put = e.substitute({space.leaves[which].leaf: fixed})
            got = np.broadcast_to(put.evaluate_array(space.mapping), expected.shape)
            assert np.array_equal(got[there], expected[there]), (seed, number, e, fixed)
        constants += e.is_constant
    assert constants < 400


def test_random_claims_are_true() -> None:
    """Whatever is proved of two expressions holds at every point."""
    rng = random.Random(77)
    answers = {True: 0, False: 0, None: 0}
    equal = {True: 0, False: 0, None: 0}
    for number in range(1200):
        if number % 50 == 0:
            space = Space(rng)
        (a, x), (b, y) = (random_pair(rng, space, rng.randint(1, 3)) for _ in range(2))
        answer = at_least(a, b)
        answers[answer] += 1
        if answer is not None:
            assert ((x >= y) == answer).all(), (a, b)
        if number % 3 == 0:
            divisor = rng.choice((2, 3, 4))
            b, y = a // divisor * divisor + a % divisor, x
        verdict = same(a, b)
        equal[verdict] += 1
        if verdict is not None:
            assert ((x == y) == verdict).all(), (a, b)
    assert min(answers.values()) > 100
    assert equal[True] > 300
    assert equal[False] > 100


@pytest.mark.parametrize("part", ["atoms", "expr", "bounds", "rules", "walk"])
def test_any_part_may_be_imported_first(part: str) -> None:
    subprocess.run([sys.executable, "-c", f"import uopc.dialects.index_{part}"], check=True)
