"""Walks over index expressions: values, substitution, text.

All are one post-order walk that visits each atom once, without recursion, over some kind of
value: integers, int64 arrays, expressions, or text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from uopc.dialects.errors import UopcError

from .index_expr import (
    Atom,
    Composite,
    Expr,
    FloorDiv,
    Leaf,
    Min,
    Mod,
    Product,
    SymbolVar,
    as_expr,
    atom_expr,
    from_form,
    maximum,
    minimum,
)

if TYPE_CHECKING:
    from .index_expr import Array, Terms

_V = TypeVar("_V")

MAX_ATOM_TEXT = 10_000


class Algebra(NamedTuple, Generic[_V]):
    """What a kind of value needs so that expressions can be computed with it."""

    linear: Callable[[Terms, int, Mapping[Atom, _V]], _V]
    product: Callable[[Sequence[_V]], _V]
    floor_divide: Callable[[_V, _V], _V]
    remainder: Callable[[_V, _V], _V]
    least: Callable[[Sequence[_V]], _V]
    greatest: Callable[[Sequence[_V]], _V]

    def apply(self, atom: Composite, values: Mapping[Atom, _V]) -> _V:
        if isinstance(atom, Product):
            return self.product([values[factor] for factor in atom.factors])
        operands = [self.linear(e.terms, e.const, values) for e in atom.operands]
        if isinstance(atom, FloorDiv):
            return self.floor_divide(*operands)
        if isinstance(atom, Mod):
            return self.remainder(*operands)
        return self.least(operands) if isinstance(atom, Min) else self.greatest(operands)


def compute(
    e: Expr, values: dict[Atom, _V], algebra: Algebra[_V], missing: Callable[[Leaf], _V]
) -> _V:
    """The value of `e`, given those of leaves (and of any composites known beforehand).

    `values` receives what is computed on the way, so that it can serve several expressions.
    """
    stack: list[Atom] = [atom for atom, _ in e.terms if atom not in values]
    while stack:
        atom = stack[-1]
        if atom in values:
            stack.pop()
        elif isinstance(atom, Leaf):
            values[atom] = missing(atom)
        else:
            assert isinstance(atom, Composite)
            wanted = [child for child in children(atom) if child not in values]
            if wanted:
                stack += wanted
            else:
                values[atom] = algebra.apply(atom, values)
    return algebra.linear(e.terms, e.const, values)


def children(atom: Composite) -> list[Atom]:
    """The atoms that `atom` is directly made of."""
    if isinstance(atom, Product):
        return list(atom.factors)
    return [child for e in atom.operands for child, _ in e.terms]


def _by_leaf(mapping: Mapping[Any, _V]) -> dict[Atom, _V]:
    """Keys may be leaves or expressions that are a leaf."""
    values: dict[Atom, _V] = {}
    for key, value in mapping.items():
        leaf = key.leaf if isinstance(key, Expr) else key
        if not isinstance(leaf, Leaf):
            raise TypeError(f"expected a leaf of an index expression, got '{key}'")
        values[leaf] = value
    return values


# Substitution


def _linear_expr(terms: Terms, const: int, values: Mapping[Atom, Expr]) -> Expr:
    form: dict[Atom, int] = {}
    for atom, coefficient in terms:
        replacement = values[atom]
        const += coefficient * replacement.const
        for inner, inner_coefficient in replacement.terms:
            form[inner] = form.get(inner, 0) + coefficient * inner_coefficient
    return from_form(form, const)


def _least_expr(parts: Sequence[Expr]) -> Expr:
    return minimum(*parts)


def _greatest_expr(parts: Sequence[Expr]) -> Expr:
    return maximum(*parts)


def _expr_product(parts: Sequence[Expr]) -> Expr:
    result = parts[0]
    for part in parts[1:]:
        result = result * part
    return result


def _quotient(a: Any, b: Any) -> Any:
    return a // b


def _remainder(a: Any, b: Any) -> Any:
    return a % b


_EXPRESSIONS = Algebra[Expr](
    _linear_expr, _expr_product, _quotient, _remainder, _least_expr, _greatest_expr
)


def substitute(e: Expr, mapping: Mapping[Any, Expr | int]) -> Expr:
    values = {leaf: as_expr(new) for leaf, new in _by_leaf(mapping).items()}
    changed = frozenset(values)
    if e.leaves.isdisjoint(changed):
        return e
    # What mentions no replaced leaf stays the node it is.
    stack: list[Atom] = [atom for atom, _ in e.terms]
    seen: set[Atom] = set()
    while stack:
        atom = stack.pop()
        if atom in seen or atom in values:
            continue
        seen.add(atom)
        if atom.leaves.isdisjoint(changed):
            values[atom] = atom_expr(atom)
        elif isinstance(atom, Composite):
            stack += children(atom)
    return compute(e, values, _EXPRESSIONS, atom_expr)


# Values


def _unbound(leaf: Leaf) -> NoReturn:
    raise UopcError(
        "index-unbound",
        f"no value is given for '{leaf.name}'",
        hint="give every leaf of the expression a value",
    )


def _linear_int(terms: Terms, const: int, values: Mapping[Atom, int]) -> int:
    for atom, coefficient in terms:
        const += coefficient * values[atom]
    return const


_INTEGERS = Algebra[int](_linear_int, math.prod, _quotient, _remainder, min, max)


def evaluate(e: Expr, mapping: Mapping[Any, int]) -> int:
    return compute(e, _by_leaf(mapping), _INTEGERS, _unbound)


def evaluate_named(e: Expr, sizes: Mapping[str, int]) -> int:
    values: dict[Atom, int] = {}
    for leaf in e.leaves:
        if not isinstance(leaf, SymbolVar) or leaf.name not in sizes:
            continue
        size = values[leaf] = sizes[leaf.name]
        if not leaf.lower <= size <= leaf.upper:
            raise UopcError(
                "symbol-out-of-bounds",
                f"size '{leaf.name}' is {size}, expected {leaf.lower} to {leaf.upper}",
                hint="call with a size within the bounds, or compile with wider ones",
            )
    return compute(e, values, _INTEGERS, _unbound)


def _linear_array(terms: Terms, const: int, values: Mapping[Atom, Any]) -> Any:
    result: Any = const
    for atom, coefficient in terms:
        result = result + coefficient * values[atom]
    return result


def _least_array(parts: Sequence[Any]) -> Any:
    import numpy as np

    result = parts[0]
    for part in parts[1:]:
        result = np.minimum(result, part)
    return result


def _greatest_array(parts: Sequence[Any]) -> Any:
    import numpy as np

    result = parts[0]
    for part in parts[1:]:
        result = np.maximum(result, part)
    return result


_ARRAYS = Algebra[Any](
    _linear_array, math.prod, _quotient, _remainder, _least_array, _greatest_array
)


def evaluate_array(e: Expr, mapping: Mapping[Any, Array | int]) -> Array | int:
    return compute(e, _by_leaf(mapping), _ARRAYS, _unbound)


# Text


def _linear_text(terms: Terms, const: int, values: Mapping[Atom, str]) -> str:
    """Terms in order, those that are added first, so that a text seldom starts with a sign."""
    positive = [(_scaled(values[a], a, c), "+") for a, c in terms if c > 0]
    negative = [(_scaled(values[a], a, -c), "-") for a, c in terms if c < 0]
    number = [(str(abs(const)), "+" if const > 0 else "-")] if const or not terms else []
    parts = positive + negative + number
    if not positive and const > 0:
        parts = number + negative
    first, sign = parts[0]
    if sign == "-" and first != "0":
        first = f"-({first})" if " " in first and terms else f"-{first}"
    return first + "".join(f" {sign} {part}" for part, sign in parts[1:])


def _scaled(text: str, atom: Atom, coefficient: int) -> str:
    if coefficient == 1:
        return text
    return f"{coefficient}*{_closed(text) if isinstance(atom, FloorDiv | Mod) else text}"


def _closed(text: str) -> str:
    """In parentheses, unless it is a single name, number or call."""
    return f"({text})" if " " in text or "*" in text or text.startswith("-") else text


def _product_text(parts: Sequence[str]) -> str:
    return _short("*".join(f"({part})" if " " in part else part for part in parts))


def _division_text(a: str, b: str) -> str:
    return _short(f"{_closed(a)} floordiv {_closed(b)}")


def _remainder_text(a: str, b: str) -> str:
    return _short(f"{_closed(a)} mod {_closed(b)}")


def _least_text(parts: Sequence[str]) -> str:
    return _short(f"min({', '.join(parts)})")


def _greatest_text(parts: Sequence[str]) -> str:
    return _short(f"max({', '.join(parts)})")


def _short(text: str) -> str:
    """An atom of atoms that are shared many times over would have a text without end."""
    return text if len(text) <= MAX_ATOM_TEXT else f"<{len(text)} characters>"


_TEXT = Algebra[str](
    _linear_text, _product_text, _division_text, _remainder_text, _least_text, _greatest_text
)


def text(e: Expr) -> str:
    return compute(e, {}, _TEXT, _name)


def atom_text(atom: Atom) -> str:
    return text(atom_expr(atom))


def _name(leaf: Leaf) -> str:
    return leaf.name
