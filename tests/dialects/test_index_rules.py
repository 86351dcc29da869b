"""Every row of the rules: its equation by brute force and by a solver, its code by brute force."""

import ast
import itertools
import random

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import (
    Expr,
    constant,
    intern,
    maximum,
    minimum,
    new_range,
    raw_form,
    symbol,
    value,
)
from uopc.dialects.index_rules import (
    FLOORDIV_RULES,
    MAX_RULES,
    MIN_RULES,
    MOD_RULES,
    SUM_RULES,
    Rule,
    all_rules,
)

RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)


def variables(rule: Rule) -> list[str]:
    names: set[str] = set()
    for text in (rule.equation, *rule.guards):
        names |= {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return sorted(names - {"min", "max"})


def test_names_are_unique() -> None:
    names = [rule.name for rule in all_rules()]
    assert len(names) == len(set(names)) >= 15


@RULES
def test_equation_by_brute_force(rule: Rule) -> None:
    names = variables(rule)
    guard = " and ".join(rule.guards) or "True"
    holds = eval(f"lambda {', '.join(names)}: (not ({guard})) or ({rule.equation})")
    applies = eval(f"lambda {', '.join(names)}: {guard}")
    width = {1: 40, 2: 20, 3: 10, 4: 6, 5: 5}[len(names)]
    points = list(itertools.product(range(-width, width + 1), repeat=len(names)))
    assert all(holds(*point) for point in points)
    assert sum(bool(applies(*point)) for point in points) >= 50


class Symbolic:
    """A z3 integer with Python's operators; `//` and `%` are by numbers, so they stay linear."""

    def __init__(self, term):
        self.term = term

    def __add__(self, other):
        return Symbolic(self.term + getattr(other, "term", other))

    def __sub__(self, other):
        return Symbolic(self.term - getattr(other, "term", other))

    def __mul__(self, other):
        return Symbolic(self.term * getattr(other, "term", other))

    def __neg__(self):
        return Symbolic(-self.term)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, number: int):
        # z3 rounds so that the remainder is not negative: for a positive divisor, the floor.
        return Symbolic(self.term / number if number > 0 else (-self.term) / -number)

    def __mod__(self, number: int):
        return self - (self // number) * number

    def __eq__(self, other):
        return self.term == getattr(other, "term", other)

    def __le__(self, other):
        return self.term <= getattr(other, "term", other)

    def __lt__(self, other):
        return self.term < getattr(other, "term", other)

    def __ge__(self, other):
        return self.term >= getattr(other, "term", other)


@RULES
def test_equation_by_a_solver(rule: Rule) -> None:
    """For divisors and factors up to 6, and every integer whatever for the rest."""
    z3 = pytest.importorskip("z3", reason="needs the z3-solver package (extra 'solver')")
    names = variables(rule)
    numbers = [n for n in names if n in "bcf" or (n == "q" and rule.name != "div-multiple")]
    solver = z3.Solver()
    solver.set("timeout", 10_000)
    functions = {
        "min": lambda a, b: Symbolic(z3.If(a.term <= b.term, a.term, b.term)),
        "max": lambda a, b: Symbolic(z3.If(a.term >= b.term, a.term, b.term)),
    }
    proved = 0
    for chosen in itertools.product((1, 2, 3, 6, -2), repeat=len(numbers)):
        scope = {n: Symbolic(z3.Int(n)) for n in names} | dict(zip(numbers, chosen, strict=True))
        guards = [eval(guard, functions, scope) for guard in rule.guards]
        if False in guards:
            continue
        equation = eval(rule.equation, functions, scope)
        solver.push()
        solver.add(*(g for g in guards if g is not True), z3.Not(equation))
        assert solver.check() == z3.unsat, (rule.equation, chosen)
        solver.pop()
        proved += 1
    assert proved


# The code of the rows: wherever a row applies, what it gives is equal at every point.


class World:
    """Leaves with small bounds, and every point of them as arrays."""

    def __init__(self, rng: random.Random):
        ends = [rng.choice((1, 2, 3, 4, 8)) for _ in range(2)]
        low, most = rng.choice(((1, 3), (2, 4), (1, 1), (3, 5))), rng.choice((1, 2, 3))
        i, j = (new_range(name, end) for name, end in zip("ij", ends, strict=True))
        n, m = symbol("n", *low), symbol("m", 1, most)
        r, s = new_range("r", n), new_range("s", m)
        v = value("v", -rng.randrange(6), rng.randrange(6))
        self.leaves = [i, j, n, m, r, s, v]
        self.factors = [n, m]
        axes = [range(leaf.lower, leaf.upper + 1) for leaf in self.leaves]
        grid = np.array(list(itertools.product(*axes)), dtype=np.int64).T
        grid = grid[:, (grid[4] < grid[2]) & (grid[5] < grid[3])]
        if grid.shape[1] > 400:
            grid = grid[:, rng.sample(range(grid.shape[1]), 400)]
        self.points = {e.leaf: row for e, row in zip(self.leaves, grid, strict=True)}
        self.count = grid.shape[1]

    def values(self, e: Expr) -> np.ndarray:
        return np.broadcast_to(e.evaluate_array(self.points), (self.count,))


def random_linear(rng: random.Random, world: World, atoms: list[Expr]) -> Expr:
    result = constant(rng.choice((0, 0, 1, 2, 7, -1, -4)))
    for _ in range(rng.randint(1, 3)):
        term = rng.choice(atoms) * rng.choice((1, 1, 2, 3, 4, 6, 8, 12, -1, -4, 7))
        result += term * rng.choice(world.factors) if rng.random() < 0.25 else term
    return result


def random_divisor(rng: random.Random, world: World) -> Expr:
    d = constant(rng.choice((1, 2, 3, 4, 6, 8, 12, 16, 24)))
    if rng.random() < 0.4:
        d = d * rng.choice(world.factors) if rng.random() < 0.5 else rng.choice(world.factors)
    if rng.random() < 0.2:
        d = d * rng.choice(world.factors)
    return -d if rng.random() < 0.1 else d


def random_atoms(rng: random.Random, world: World) -> list[Expr]:
    atoms = list(world.leaves)
    for _ in range(4):
        x, d = random_linear(rng, world, atoms), random_divisor(rng, world)
        atoms += [x // d, x % d]
    return atoms


def worlds(seed: int, count: int):
    rng = random.Random(seed)
    for _ in range(count):
        world = World(rng)
        yield rng, world, random_atoms(rng, world)


@pytest.mark.parametrize("table", ["div", "mod"])
def test_division_rows_are_what_python_computes(table: str) -> None:
    rules = FLOORDIV_RULES if table == "div" else MOD_RULES
    fired = dict.fromkeys((rule.name for rule in rules), 0)
    for rng, world, atoms in worlds(1, 140):
        for _ in range(8):
            x, d = random_linear(rng, world, atoms), random_divisor(rng, world)
            x = rng.choice(atoms) if rng.random() < 0.3 else x
            a, b = world.values(x), world.values(d)
            expected = a // b if table == "div" else a % b
            for rule in rules if d.lower >= 1 else rules[:1]:
                result = rule.apply(x, d)
                if result is not None:
                    fired[rule.name] += 1
                    assert (world.values(result) == expected).all(), (rule.name, x, d, result)
    assert min(fired.values()) >= 5, fired


def test_sum_rows_keep_the_value() -> None:
    fired = dict.fromkeys((rule.name for rule in SUM_RULES), 0)
    for rng, world, atoms in worlds(2, 80):
        for _ in range(4):
            x, d = random_linear(rng, world, atoms), random_divisor(rng, world)
            if d.upper < 0:
                d = -d
            e = constant(rng.choice((1, 2, -3)))
            q, r, c = x // d, x % d, rng.choice((2, 3, 4))
            parts = rng.choice(
                (
                    [q * d * e, r * e],
                    [x * e, -(q * d * e)],
                    [(q % c) * d * e, r * e],
                    [x, -(q * d), rng.choice(atoms)],
                )
            )
            form: dict = {}
            const = 0
            for part in (*parts, random_linear(rng, world, atoms) * rng.choice((0, 1))):
                const += part.const
                for atom, coefficient in part.terms:
                    form[atom] = form.get(atom, 0) + coefficient
            before = world.values(raw_form(form, const))
            for rule in SUM_RULES:
                result = rule.apply(form, const)
                if result is not None:
                    fired[rule.name] += 1
                    after = world.values(raw_form(*result))
                    assert (after == before).all(), (rule.name, raw_form(form, const))
    assert min(fired.values()) >= 5, fired


def test_minimum_and_maximum_rows_keep_the_value() -> None:
    fired = {"min-proved": 0, "max-proved": 0}
    for rng, world, atoms in worlds(3, 40):
        parts = [random_linear(rng, world, atoms) for _ in range(3)]
        parts.append(parts[0] + rng.choice((0, 1, -2)))
        for rules, fold in ((MIN_RULES, np.minimum), (MAX_RULES, np.maximum)):
            for x, y in itertools.product(parts, repeat=2):
                for rule in rules:
                    result = rule.apply(x, y)
                    if result is not None:
                        fired[rule.name] += 1
                        expected = fold(world.values(x), world.values(y))
                        assert (world.values(result) == expected).all()
        arrays = [world.values(part) for part in parts]
        assert (world.values(minimum(*parts)) == np.min(arrays, axis=0)).all()
        assert (world.values(maximum(*parts)) == np.max(arrays, axis=0)).all()
    assert min(fired.values()) >= 100, fired


# Single examples: what a person expects to read


@pytest.fixture
def named() -> dict[str, Expr]:
    n, m = symbol("n", 1, 8), symbol("m", 1, 100)
    return {
        "i": new_range("i", 16),
        "j": new_range("j", 8),
        "l": new_range("l", 1000),
        "n": n,
        "m": m,
        "r": new_range("r", n),
        "s": new_range("s", m),
        "v": value("v", -20, 20),
        "min": minimum,
        "max": maximum,
    }


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("(i*8 + j) // 8", "i"),
        ("(i*8 + j) % 8", "j"),
        ("(s*n + r) // n", "s"),
        ("(s*n + r) % n", "r"),
        ("r // n", "0"),
        ("r % n", "r"),
        ("(n - 1 - r) // n", "0"),
        ("(n - 1 - r) % n", "n - r - 1"),
        ("((i*m + s)*n + r) // (m*n)", "i"),
        ("((i*m + s)*n + r) // n % m", "s"),
        ("(v*m + s)*n // n // m", "v"),
        ("l // 8 * 8 + l % 8", "l"),
        ("l % 8 + i - 5 + l // 8 * 8", "i + l - 5"),
        ("3*(l % 8) + 24*(l // 8)", "3*l"),
        ("l // n * n + l % n", "l"),
        ("l // n * n * m + l % n * m", "l*m"),
        ("l // (n + 1) * (n + 1) + l % (n + 1)", "l"),
        ("l // 32 * 32 + l // 4 % 8 * 4 + l % 4", "l"),
        ("l // 4 % 8 * 4 + l % 4", "l mod 32"),
        ("(l + 11) % 16 // 2 * 2 + (l + 11) % 16 % 2", "(l + 11) mod 16"),
        ("(3*v) % 8 // 2 * 2 + (3*v) % 8 % 2", "(3*v) mod 8"),
        ("l // 16 % 8 // 4 * 4 + l // 16 % 8 % 4", "(l floordiv 16) mod 8"),
        ("l - l // 4 * 4", "l mod 4"),
        ("l // 4 // 5", "l floordiv 20"),
        ("(l // 4 + 3) // 5", "(l + 12) floordiv 20"),
        ("l // n // m", "l floordiv (m*n)"),
        ("l % 24 % 4", "l mod 4"),
        ("(2*(l % 12) + i) % 8", "(i + 2*l) mod 8"),
        ("l % 24 // 4", "(l floordiv 4) mod 6"),
        ("(4*i + 2*j) // 8", "(2*i + j) floordiv 4"),
        ("(4*i + 2*j) % 8", "2*((2*i + j) mod 4)"),
        ("(6*v + 1) // 4", "v + v floordiv 2"),
        ("(9*v + 4) // 4", "2*v + v floordiv 4 + 1"),
        ("(15*i + 15) % 16", "15 - i"),
        ("v % -4", "-((-v) mod 4)"),
        ("7 // -2", "-4"),
        ("7 % -2", "-1"),
        ("min(i, 20)", "i"),
        ("min(i, 4, max(j, 8))", "min(4, i)"),
        ("max(i, min(j, -1))", "i"),
        ("min(r, n)", "r"),
        ("min(i, min(j, v))", "min(i, j, v)"),
        ("0 * v + 3", "3"),
        ("(n + 1)*(n - 1)", "n*n - 1"),
    ],
)
def test_examples(named: dict[str, Expr], source: str, text: str) -> None:
    assert str(eval(source, {}, named)) == text


def test_what_may_not_be_simplified_is_not(named: dict[str, Expr]) -> None:
    for source in ("(i*8 + v) // 8 - i", "(s*n + v) % n", "r // m", "(s*n + r) // m", "l // 7 % 3"):
        assert not eval(source, {}, named).is_constant
    i, v = named["i"], named["v"]
    assert (i * 8 + v) // 8 is not i
    assert (4 * i + v) // 8 is not i // 2


@pytest.mark.parametrize("divisor", [0, constant(0), symbol("z", 0, 4), symbol("w", -3, 3)])
def test_a_divisor_that_may_be_zero_is_refused(named: dict[str, Expr], divisor) -> None:
    for divide in (lambda: named["i"] // divisor, lambda: named["i"] % divisor):
        with pytest.raises(UopcError, match="cannot divide 'i' by") as caught:
            divide()
        assert caught.value.kind == "index-divisor"


def test_a_form_is_interned_as_it_stands(named: dict[str, Expr]) -> None:
    i = named["i"]
    assert intern(i.terms, 3) is i + 3
