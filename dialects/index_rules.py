"""The rules by which index expressions simplify, each a row under its equation.

A row has a name, an equation and guards in Python's own notation, and the function that applies
it. The equations are data: tests evaluate every one over small integers, negative ones too, and
prove it with an SMT solver. In an equation b, c and f are numbers or expressions of at least 1,
k is a number, and the other letters are any integers.

`//` and `%` try their rows from the top: the first makes the divisor positive, and the others
count on that. A sum tries its rows until none applies. `min` and `max` have one row each. What no
row simplifies becomes an atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from uopc.dialects.errors import UopcError

from . import index_bounds as forms  # by module: either may be the first that is imported
from .index_expr import (
    HAS_REMAINDER,
    Atom,
    Composite,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    at_least,
    atom_expr,
    constant,
    intern_atom,
    raw_form,
)

Form = dict[Atom, int]
_Row = TypeVar("_Row", bound=Callable[..., Any])
_D = TypeVar("_D", FloorDiv, Mod)


class Rule(NamedTuple):
    """`equation` holds wherever all `guards` do; `apply` gives None where the rule is not for."""

    name: str
    equation: str
    guards: tuple[str, ...]
    apply: Callable[..., Any]


FLOORDIV_RULES: list[Rule] = []
MOD_RULES: list[Rule] = []
SUM_RULES: list[Rule] = []
MIN_RULES: list[Rule] = []
MAX_RULES: list[Rule] = []


def all_rules() -> list[Rule]:
    return FLOORDIV_RULES + MOD_RULES + SUM_RULES + MIN_RULES + MAX_RULES


def _rule(table: list[Rule], name: str, equation: str, *guards: str) -> Callable[[_Row], _Row]:
    def register(apply: _Row) -> _Row:
        table.append(Rule(name, equation, guards, apply))
        return apply

    return register


# Quotients and remainders. d is a non-zero number or an expression with a sign.


@_rule(FLOORDIV_RULES, "div-negative-divisor", "x // (-c) == (-x) // c", "c >= 1")
def _div_negative(x: Expr, d: Expr) -> Expr | None:
    return floor_divide(-x, -d) if d.upper < 0 else None


@_rule(MOD_RULES, "mod-negative-divisor", "x % (-c) == -((-x) % c)", "c >= 1")
def _mod_negative(x: Expr, d: Expr) -> Expr | None:
    return -remainder(-x, -d) if d.upper < 0 else None


@_rule(FLOORDIV_RULES, "div-one", "x // 1 == x")
def _div_one(x: Expr, d: Expr) -> Expr | None:
    return x if d.as_int() == 1 else None


@_rule(MOD_RULES, "mod-one", "x % 1 == 0")
def _mod_one(x: Expr, d: Expr) -> Expr | None:
    return constant(0) if d.as_int() == 1 else None


def _bucket(x: Expr, d: Expr) -> int | None:
    """k if k*d <= x < k*d + d at every point; for a symbolic d only k = 0 and -1 are tried.

    Multiples of a symbolic d come out first, by the next row: proofs about the rest are cheaper.
    """
    if not d.terms:
        low = x.lower // d.const
        return low if x.upper // d.const == low else None
    if forms.split_multiple(x, d)[0] is not constant(0):
        return None
    if x.lower >= 0:
        return 0 if (x - d).upper < 0 else None
    return -1 if x.upper < 0 and (x + d).lower >= 0 else None


@_rule(FLOORDIV_RULES, "div-bucket", "x // c == k", "c >= 1", "k*c <= x", "x < k*c + c")
def _div_bucket(x: Expr, d: Expr) -> Expr | None:
    k = _bucket(x, d)
    return None if k is None else constant(k)


@_rule(MOD_RULES, "mod-bucket", "x % c == x - k*c", "c >= 1", "k*c <= x", "x < k*c + c")
def _mod_bucket(x: Expr, d: Expr) -> Expr | None:
    k = _bucket(x, d)
    return None if k is None else x - d * k


def _multiple(x: Expr, d: Expr) -> tuple[Expr, Expr] | None:
    """(q, r) with x == d*q + r, None if there is nothing to take out."""
    q, r = forms.split_multiple(x, d)
    if not d.terms and any(2 * abs(c) > d.const for _, c in r.terms):
        # The nearest multiples may leave a rest within one bucket: 7*j is 8*j - j.
        near = raw_form({a: (2 * c + d.const) // (2 * d.const) for a, c in x.terms}, 0)
        rest = forms.scaled_sum([(x, 1), (near, -d.const)])
        if _bucket(r, d) is None and _bucket(rest, d) is not None:
            q, r = near, rest
    return (q, r) if q.terms or q.const else None


@_rule(FLOORDIV_RULES, "div-multiple", "(c*q + r) // c == q + r // c", "c >= 1")
def _div_multiple(x: Expr, d: Expr) -> Expr | None:
    parts = _multiple(x, d)
    return None if parts is None else parts[0] + floor_divide(parts[1], d)


@_rule(MOD_RULES, "mod-multiple", "(c*q + r) % c == r % c", "c >= 1")
def _mod_multiple(x: Expr, d: Expr) -> Expr | None:
    parts = _multiple(x, d)
    return None if parts is None else remainder(parts[1], d)


@_rule(
    MOD_RULES,
    "mod-of-mod",
    "(q*(x % f) + y) % c == (q*x + y) % c",
    "f >= 1",
    "c >= 1",
    "(q*f) % c == 0",
)
def _mod_of_mod(x: Expr, d: Expr) -> Expr | None:
    if not x.flags & HAS_REMAINDER:
        return None
    for inner, cofactor, coefficient in _divisions(dict(x.terms), Mod):
        q = forms.scaled_sum([(cofactor, coefficient)])
        left = forms.split_multiple(q * inner.divisor, d)[1]
        if not left.terms and not left.const:
            without = forms.scaled_sum([(x, 1), (forms.raw_product(q, atom_expr(inner)), -1)])
            return remainder(without + q * inner.numerator, d)
    return None


def _common_factor(x: Expr, d: Expr) -> tuple[Expr, Expr, Expr, Expr] | None:
    """(b, c, y, r) with d == b*c, x == b*y + r and 0 <= r < b, for the greatest such b > 1."""
    for b in _factors(x, d):
        if b.terms:
            y, r = forms.split_multiple(x, b)
        else:
            number = b.const
            whole = {atom: n // number for atom, n in x.terms if n % number == 0}
            y = raw_form(whole, x.const // number)
            r = forms.scaled_sum([(x, 1), (y, -number)])
        k = _bucket(r, b)
        if k is not None and y.terms:
            return b, forms.split_multiple(d, b)[0], y + k, r - b * k
    return None


def _factors(x: Expr, d: Expr) -> Iterator[Expr]:
    """Proper factors of d that some terms of x share."""
    content = math.gcd(d.const, *(c for _, c in d.terms))
    shared = {math.gcd(content, c) for _, c in x.terms}
    for number in sorted(shared, reverse=True):
        if number > 1 and (d.terms or number < content):
            yield constant(number)
    if len(d.terms) == 1 and not d.const and (d.terms[0][1] > 1 or len(d.terms[0][0].factors) > 1):
        for factor in dict.fromkeys(d.terms[0][0].factors):
            if factor.lower >= 1:
                yield atom_expr(factor)


_FACTOR_GUARDS = ("b >= 1", "c >= 1", "0 <= r", "r < b")


@_rule(FLOORDIV_RULES, "div-common-factor", "(b*y + r) // (b*c) == y // c", *_FACTOR_GUARDS)
def _div_common_factor(x: Expr, d: Expr) -> Expr | None:
    parts = _common_factor(x, d)
    return None if parts is None else floor_divide(parts[2], parts[1])


@_rule(MOD_RULES, "mod-common-factor", "(b*y + r) % (b*c) == b*(y % c) + r", *_FACTOR_GUARDS)
def _mod_common_factor(x: Expr, d: Expr) -> Expr | None:
    parts = _common_factor(x, d)
    return None if parts is None else parts[0] * remainder(parts[2], parts[1]) + parts[3]


def _single(x: Expr) -> Atom | None:
    """The atom t of t + constant."""
    return x.terms[0][0] if len(x.terms) == 1 and x.terms[0][1] == 1 else None


@_rule(FLOORDIV_RULES, "div-of-div", "(x//b + k) // c == (x + b*k) // (b*c)", "b >= 1", "c >= 1")
def _div_of_div(x: Expr, d: Expr) -> Expr | None:
    inner = _single(x)
    if not isinstance(inner, FloorDiv):
        return None
    return floor_divide(inner.numerator + inner.divisor * x.const, inner.divisor * d)


@_rule(FLOORDIV_RULES, "div-of-mod", "(x % (b*c)) // b == (x // b) % c", "b >= 1", "c >= 1")
def _div_of_mod(x: Expr, d: Expr) -> Expr | None:
    inner = _single(x)
    if not isinstance(inner, Mod) or x.const:
        return None
    c, left = forms.split_multiple(inner.divisor, d)
    if left.terms or left.const or c.lower < 1:
        return None
    return remainder(floor_divide(inner.numerator, d), c)


def floor_divide(x: Expr, d: Expr) -> Expr:
    """x // d, simplified. UopcError `index-divisor` if d may be zero."""
    return _divide(x, d, FLOORDIV_RULES, FloorDiv)


def remainder(x: Expr, d: Expr) -> Expr:
    """x % d, simplified. UopcError `index-divisor` if d may be zero."""
    return _divide(x, d, MOD_RULES, Mod)


def _divide(x: Expr, d: Expr, table: list[Rule], kind: type[Composite]) -> Expr:
    if d.lower <= 0 <= d.upper:
        raise UopcError(
            "index-divisor",
            f"cannot divide '{x}' by '{d}', which may be from {d.lower} to {d.upper}",
            hint="give the divisor bounds that leave out zero",
        )
    for rule in table:
        result = rule.apply(x, d)
        if result is not None:
            return result
    return atom_expr(intern_atom(kind, (x, d)))


# Sums. A row takes a form and gives another, or None. It multiplies without simplifying: what it
# adds is simplified with the rest, by the next row.


def _divisions(form: Form, kind: type[_D]) -> Iterator[tuple[_D, Expr, int]]:
    """(t, w, s) for each term s*w*t with t of this kind."""
    for atom, coefficient in form.items():
        if coefficient:
            for factor in dict.fromkeys(atom.factors):
                if isinstance(factor, kind):
                    yield factor, forms.monomial_over(atom, factor) or constant(0), coefficient


def _present(form: Form, e: Expr, scale: int) -> bool:
    """Whether the form has exactly these terms of scale*e."""
    return bool(e.terms) and all(form.get(atom, 0) == scale * c for atom, c in e.terms)


def _exchange(form: Form, const: int, parts: Sequence[tuple[Expr, int]]) -> tuple[Form, int]:
    """The form plus the sum of s*e for each part (e, s)."""
    new = dict(form)
    for e, scale in parts:
        const += scale * e.const
        for atom, coefficient in e.terms:
            new[atom] = new.get(atom, 0) + scale * coefficient
    return {atom: c for atom, c in new.items() if c}, const


def _exact(x: Expr, d: Expr) -> Expr | None:
    """t with x == t*d and t not zero."""
    t, left = forms.split_multiple(x, d)
    return t if (t.terms or t.const) and not left.terms and not left.const else None


@_rule(SUM_RULES, "quotient-and-remainder", "q*(f*(x // f)) + q*(x % f) == q*x", "f >= 1")
def _quotient_and_remainder(form: Form, const: int) -> tuple[Form, int] | None:
    for part, q, s in _divisions(form, Mod):
        x, f = part.operands
        whole = forms.raw_product(forms.raw_product(q, f), floor_divide(x, f))
        if _present(form, whole, s):
            return _exchange(
                form,
                const,
                [
                    (whole, -s),
                    (forms.raw_product(q, atom_expr(part)), -s),
                    (forms.raw_product(q, x), s),
                ],
            )
    for part, cofactor, s in _divisions(form, FloorDiv):
        x, f = part.operands
        if (q := _exact(cofactor * s, f)) is None:
            continue
        rest = forms.raw_product(q, remainder(x, f))
        if _present(form, rest, 1):
            whole = forms.raw_product(cofactor, atom_expr(part))
            return _exchange(form, const, [(whole, -s), (rest, -1), (forms.raw_product(q, x), 1)])
    return None


@_rule(SUM_RULES, "whole-minus-quotient", "q*x - q*(f*(x // f)) == q*(x % f)", "f >= 1")
def _whole_minus_quotient(form: Form, const: int) -> tuple[Form, int] | None:
    for part, cofactor, s in _divisions(form, FloorDiv):
        x, f = part.operands
        if (minus_q := _exact(cofactor * s, f)) is None:
            continue
        whole = forms.raw_product(minus_q, x)
        if whole.terms and forms.covers(form, const, whole, -1):
            quotient = forms.raw_product(cofactor, atom_expr(part))
            rest = forms.raw_product(minus_q, remainder(x, f))
            return _exchange(form, const, [(quotient, -s), (whole, 1), (rest, -1)])
    return None


@_rule(
    SUM_RULES,
    "joined-digits",
    "q*(b*((x // b) % c)) + q*(x % b) == q*(x % (b*c))",
    "b >= 1",
    "c >= 1",
)
def _joined_digits(form: Form, const: int) -> tuple[Form, int] | None:
    digits = list(_divisions(form, Mod))
    for part, cofactor, s in digits:
        high, c = part.operands
        weight = forms.scaled_sum([(cofactor, s)])
        for x, b, q in _low_digits(high, weight, digits):
            low = forms.raw_product(q, remainder(x, b))
            if _present(form, low, 1) and remainder(floor_divide(x, b), c).atom is part:
                joined = forms.raw_product(q, remainder(x, b * c))
                whole = forms.raw_product(weight, atom_expr(part))
                return _exchange(form, const, [(whole, -1), (low, -1), (joined, 1)])
    return None


def _low_digits(
    high: Expr, weight: Expr, digits: Sequence[tuple[Mod, Expr, int]]
) -> Iterator[tuple[Expr, Expr, Expr]]:
    """(x, b, q) where x // b may be `high` and q*b is its weight."""
    for term, coefficient in high.terms:
        if isinstance(term, FloorDiv) and coefficient == 1:
            y, b = term.operands
            if (q := _exact(weight, b)) is not None:  # y//b + z is (y + b*z)//b
                yield y + b * (high - atom_expr(term)), b, q
    for low, cofactor, s in digits:
        y, b = low.operands
        q = forms.scaled_sum([(cofactor, s)])
        if forms.raw_product(q, b) is weight:
            yield y, b, q


def recombine(form: Form, const: int) -> tuple[Form, int]:
    """The form after every row for sums that applies. Each row leaves fewer divisions."""
    going = True
    while going:
        going = False
        for rule in SUM_RULES:
            result = rule.apply(form, const)
            if result is not None:
                form, const = result
                going = True
                break
    return form, const


# Minima and maxima


@_rule(MIN_RULES, "min-proved", "min(x, y) == x", "x <= y")
def _min_proved(x: Expr, y: Expr) -> Expr | None:
    return x if at_least(y, x) else None


@_rule(MAX_RULES, "max-proved", "max(x, y) == x", "x >= y")
def _max_proved(x: Expr, y: Expr) -> Expr | None:
    return x if at_least(x, y) else None


def extremum(kind: type[Min] | type[Max], parts: Sequence[Expr]) -> Expr:
    """The least or greatest of the parts: nested ones flattened, proved losers left out."""
    table = MIN_RULES if kind is Min else MAX_RULES
    kept: list[Expr] = []
    for part in parts:
        inner = part.atom
        for e in inner.operands if isinstance(inner, kind) else (part,):
            if any(rule.apply(other, e) is not None for rule in table for other in kept):
                continue
            kept = [o for o in kept if all(rule.apply(e, o) is None for rule in table)]
            kept.append(e)
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=lambda e: (tuple((atom.order, c) for atom, c in e.terms), e.const))
    return atom_expr(intern_atom(kind, tuple(kept)))
