"""Bounds of index expressions, and the relations that tighten them.

Intervals are exact for sums of independent leaves. Where terms depend on each other (`n - 1 - r`
with r below n), atoms are eliminated one by one, deepest first, each by a fact about it. To find a
lower bound of e = a*t + b (t not in a, t once in no product):

    atom t             fact                              if a >= 0            if a <= 0
    range r            0 <= r <= end - 1                 b                    b + a*(end - 1)
    symbol, value      lower <= t <= upper               b + a*lower          b + a*upper
    x mod d            0 <= t <= d - 1                   b                    b + a*(d - 1)
                       t <= x where x >= 0                                    or b + a*x
    x floordiv d       x - d + 1 <= d*t <= x             b + a'*(x - d + 1)   b + a'*x    a = a'*d
    min(x, y)          t <= x, t <= y, t is x or y       the lesser of        the greater of
                                                         b + a*x, b + a*y     b + a*x, b + a*y
    max(x, y)          x <= t, y <= t, t is x or y       the greater          the lesser

Each step leaves an expression that is nowhere above e, so the interval of any of them bounds e.
An upper bound of e is minus the lower bound of -e.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .index_expr import (
    HAS_DIVISION,
    HAS_REMAINDER,
    Atom,
    Composite,
    Expr,
    FloorDiv,
    Leaf,
    Max,
    Min,
    Mod,
    RangeVar,
    atom_expr,
    constant,
    intern_atom,
    monomial,
    raw_form,
)

# Steps of elimination that one bound may cost, over all the choices at min, max and mod.
MAX_STEPS = 40


class _Search:
    """What a search for one bound may still cost; whether floordiv is eliminated, or was met."""

    __slots__ = ("divisions", "met_division", "steps")

    def __init__(self, divisions: bool) -> None:
        self.steps = MAX_STEPS
        self.divisions = divisions
        self.met_division = False


def lower_bound(e: Expr) -> int:
    if len(e.terms) < 2 or not _coupled(e):
        return _interval_lower(e)
    # A quotient is first kept as it is, with its interval: that is exact where it stands alone.
    search = _Search(divisions=False)
    best = _lower_by_elimination(e, 1, search)
    if search.met_division:
        best = max(best, _lower_by_elimination(e, 1, _Search(divisions=True)))
    return best


def upper_bound(e: Expr) -> int:
    return -lower_bound(-e)


def _interval_lower(e: Expr) -> int:
    low = e.const
    for atom, coefficient in e.terms:
        low += coefficient * (atom.lower if coefficient > 0 else atom.upper)
    return low


def _coupled(e: Expr) -> bool:
    """Whether some leaf has a say in two terms, directly or through the end of a range."""
    seen: set[Leaf] = set()
    for atom, _ in e.terms:
        mentioned = atom.closure
        if not seen.isdisjoint(mentioned):
            return True
        seen |= mentioned
    return False


def _lower_by_elimination(e: Expr, scale: int, search: _Search) -> int:
    """A lower bound of e/scale."""
    best = -(-_interval_lower(e) // scale)
    skip: set[Atom] = set()
    while search.steps > 0 and (atom := _next_atom(e, skip, search)) is not None:
        search.steps -= 1
        split = _coefficient(e, atom)
        sign = _sign(split[0]) if split else 0
        if split is None or not sign:
            skip.add(atom)
            continue
        factor, rest = split
        if isinstance(atom, FloorDiv):
            step = _without_quotient(atom, factor, rest, sign)
            if step is None:
                skip.add(atom)
                continue
            e, scale = step[0], scale * step[1]
        else:
            choices, need_all = _replacements(atom, sign)
            if len(choices) > 1:
                found = [
                    _lower_by_elimination(raw_sum(rest, raw_product(factor, choice)), scale, search)
                    for choice in choices
                ]
                return max(best, min(found) if need_all else max(found))
            e = raw_sum(rest, raw_product(factor, choices[0]))
        best = max(best, -(-_interval_lower(e) // scale))
    return best


def _next_atom(e: Expr, skip: set[Atom], search: _Search) -> Atom | None:
    """The deepest atom that shares a leaf with another term."""
    terms_of: dict[Leaf, int] = {}
    for atom, _ in e.terms:
        for leaf in atom.closure:
            terms_of[leaf] = terms_of.get(leaf, 0) + 1
    best: Atom | None = None
    best_rank = (-1, False)
    for term, coefficient in e.terms:
        for atom in term.factors:
            # Where every choice must do, choose first: the others may depend on it.
            every = isinstance(atom, Min | Max) and isinstance(atom, Min) == (coefficient > 0)
            rank = (atom.depth, every)
            if rank <= best_rank or atom in skip:
                continue
            if all(terms_of[leaf] < 2 for leaf in atom.closure):
                continue
            if isinstance(atom, FloorDiv) and not search.divisions:
                search.met_division = True
                continue
            best, best_rank = atom, rank
    return best


def _coefficient(e: Expr, atom: Atom) -> tuple[Expr, Expr] | None:
    """(a, b) with e = a*atom + b and no product of atom left; None for powers of it."""
    inside: dict[Atom, int] = {}
    outside: dict[Atom, int] = {}
    const = 0
    for term, coefficient in e.terms:
        factors = term.factors
        times = factors.count(atom)
        if times > 1:
            return None
        if not times:
            outside[term] = coefficient
        elif len(factors) == 1:
            const = coefficient
        else:
            inside[monomial(f for f in factors if f is not atom)] = coefficient
    return raw_form(inside, const), raw_form(outside, e.const)


def _sign(e: Expr) -> int:
    return 1 if e.lower >= 0 else -1 if e.upper <= 0 else 0


def _replacements(atom: Atom, sign: int) -> tuple[list[Expr], bool]:
    """What to put for `atom`, and whether the result is the least (True) or greatest of them."""
    if isinstance(atom, RangeVar):
        return [constant(0) if sign > 0 else atom.end - 1], True
    if isinstance(atom, Mod):
        if sign > 0:
            return [constant(0)], True
        ends = [atom.divisor - 1]
        return ([*ends, atom.numerator] if atom.numerator.lower >= 0 else ends), False
    if isinstance(atom, Min | Max):
        return list(atom.operands), isinstance(atom, Min) == (sign > 0)
    return [constant(atom.lower if sign > 0 else atom.upper)], True


def _without_quotient(
    atom: FloorDiv, factor: Expr, rest: Expr, sign: int
) -> tuple[Expr, int] | None:
    """(f, s) with f <= s*(factor*atom + rest) and no `atom` in f."""
    numerator, divisor = atom.numerator, atom.divisor
    scale = 1
    if (number := divisor.as_int()) is not None:
        scale = number // math.gcd(number, factor.const, *(c for _, c in factor.terms))
    per_divisor, left = split_multiple(scaled_sum([(factor, scale)]), divisor)
    if left.terms or left.const:
        return None
    end = numerator - divisor + 1 if sign > 0 else numerator
    return scaled_sum([(rest, scale), (raw_product(per_divisor, end), 1)]), scale


def raw_sum(a: Expr, b: Expr) -> Expr:
    form = dict(a.terms)
    for atom, coefficient in b.terms:
        form[atom] = form.get(atom, 0) + coefficient
    return raw_form(form, a.const + b.const)


def raw_product(a: Expr, b: Expr) -> Expr:
    """a * b without simplification."""
    if not a.terms or not b.terms:
        return scaled_sum([(a, b.const)] if a.terms else [(b, a.const)])
    form: dict[Atom, int] = {}
    for left, m in a.terms:
        for right, n in b.terms:
            atom = monomial(left.factors + right.factors)
            form[atom] = form.get(atom, 0) + m * n
    for atom, m in a.terms:
        form[atom] = form.get(atom, 0) + m * b.const
    for atom, n in b.terms:
        form[atom] = form.get(atom, 0) + n * a.const
    return raw_form(form, a.const * b.const)


def scaled_sum(parts: Iterable[tuple[Expr, int]]) -> Expr:
    """The sum of s*e for each (e, s), without simplification."""
    form: dict[Atom, int] = {}
    const = 0
    for e, scale in parts:
        const += scale * e.const
        for atom, coefficient in e.terms:
            form[atom] = form.get(atom, 0) + scale * coefficient
    return raw_form(form, const)


# Exact division of forms


def monomial_over(atom: Atom, divisor: Atom) -> Expr | None:
    """atom / divisor if the factors of the one are among those of the other."""
    if atom is divisor:
        return constant(1)
    left = list(atom.factors)
    for factor in divisor.factors:
        if factor not in left:
            return None
        left.remove(factor)
    return atom_expr(monomial(left))


def truncated(a: int, b: int) -> int:
    """a / b rounded to zero, so that the rest keeps the sign of a."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def split_multiple(x: Expr, d: Expr) -> tuple[Expr, Expr]:
    """(q, r) with x = d*q + r, and the terms of q those whose multiples of d stand in x.

    No term of r has the sign other than that of x, so r is no wider than x. If d is a number, the
    constant of r is from 0 to d - 1.
    """
    if not d.terms:
        number = d.const
        quotient: dict[Atom, int] = {}
        rest: dict[Atom, int] = {}
        for atom, coefficient in x.terms:
            times = quotient[atom] = truncated(coefficient, number)
            rest[atom] = coefficient - times * number
        return raw_form(quotient, x.const // number), raw_form(rest, x.const % number)
    lead, lead_coefficient = max(d.terms, key=lambda term: len(term[0].factors))
    parts: list[tuple[Expr, int]] = []
    rest_form = dict(x.terms)
    const = x.const
    for atom, coefficient in x.terms:
        cofactor = monomial_over(atom, lead)
        if cofactor is None:
            continue
        times = truncated(coefficient, lead_coefficient)
        multiple = cofactor * d if len(d.terms) > 1 or d.const else None
        if not times or (multiple and not covers(rest_form, const, multiple, times)):
            continue
        parts.append((cofactor, times))
        if multiple is None:
            rest_form[atom] = rest_form[atom] - times * lead_coefficient
            continue
        const -= times * multiple.const
        for inner, c in multiple.terms:
            rest_form[inner] = rest_form[inner] - times * c
    return scaled_sum(parts), raw_form(rest_form, const)


def covers(form: dict[Atom, int], const: int, e: Expr, scale: int) -> bool:
    """Whether each term of scale*e stands in the form, with the same sign and at least as large.

    The constant need not, unless e is one.
    """
    for atom, coefficient in e.terms:
        wanted, present = scale * coefficient, form.get(atom, 0)
        if (wanted > 0) != (present > 0) or abs(present) < abs(wanted):
            return False
    return bool(e.terms) or scale * e.const == const


# Equality


def same(a: Expr, b: Expr) -> bool | None:
    """Decides by the difference, its bounds, and a form in which only quotients stand."""
    difference = a - b
    if not difference.terms:
        return difference.const == 0
    if difference.lower > 0 or difference.upper < 0:
        return False
    if difference.lower == 0 == difference.upper:
        return True
    if difference.flags & (HAS_DIVISION | HAS_REMAINDER):
        plain = quotient_form(difference)
        if not plain.terms:
            return plain.const == 0
    return None


def quotient_form(e: Expr) -> Expr:
    """Equal to e, with every `x mod d` as x - d*(x floordiv d), and each numerator reduced.

    Not the form to compute with: it forgets bounds. Equal functions are more often identical.
    """
    values: dict[Atom, Expr] = {}
    stack = [atom for atom, _ in e.terms]
    while stack:
        atom = stack[-1]
        if atom in values:
            stack.pop()
            continue
        inner = [f for f in atom.factors if f is not atom]
        if isinstance(atom, Composite):
            inner += [child for operand in atom.operands for child, _ in operand.terms]
        missing = [child for child in inner if child not in values]
        if missing:
            stack += missing
        else:
            values[atom] = _quotient_atom(atom, values)
    return _plain(e, values)


def _plain(e: Expr, values: dict[Atom, Expr]) -> Expr:
    return scaled_sum([*((values[atom], c) for atom, c in e.terms), (constant(1), e.const)])


def _quotient_atom(atom: Atom, values: dict[Atom, Expr]) -> Expr:
    if isinstance(atom, FloorDiv):
        return _reduced_quotient(_plain(atom.numerator, values), _plain(atom.divisor, values))
    if isinstance(atom, Mod):
        numerator, divisor = (_plain(operand, values) for operand in atom.operands)
        return raw_sum(numerator, -raw_product(divisor, _reduced_quotient(numerator, divisor)))
    if isinstance(atom, Min | Max):
        operands = tuple(_plain(operand, values) for operand in atom.operands)
        return atom_expr(intern_atom(type(atom), operands))
    factors = atom.factors
    if len(factors) == 1:
        return atom_expr(atom)
    result = values[factors[0]]
    for factor in factors[1:]:
        result = raw_product(result, values[factor])
    return result


def _reduced_quotient(x: Expr, d: Expr) -> Expr:
    """x floordiv d, with multiples of d out and every coefficient from 0 to d - 1."""
    if not d.terms:
        quotient = raw_form({atom: c // d.const for atom, c in x.terms}, x.const // d.const)
        rest = raw_form({atom: c % d.const for atom, c in x.terms}, x.const % d.const)
    else:
        quotient, rest = split_multiple(x, d)
    inner = rest.terms[0][0] if len(rest.terms) == 1 and rest.terms[0][1] == 1 else None
    if isinstance(inner, FloorDiv):  # (y//b + k)//d == (y + b*k)//(b*d)
        numerator = raw_sum(inner.numerator, raw_product(inner.divisor, constant(rest.const)))
        return raw_sum(quotient, _reduced_quotient(numerator, raw_product(inner.divisor, d)))
    if not rest.terms and not d.terms:
        return quotient
    return raw_sum(quotient, atom_expr(intern_atom(FloorDiv, (rest, d))))
