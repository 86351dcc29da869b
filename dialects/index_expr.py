"""Index expressions: the integer arithmetic of loops and addresses.

    expr     ::= const + coefficient*atom + …          a linear form, kept sorted
    atom     ::= leaf | expr floordiv expr | expr mod expr
               | atom*atom… | min(expr, …) | max(expr, …)
    leaf     ::= range     0 <= r < end, every one distinct
               | symbol    lower <= n <= upper, a size known at the call
               | value     lower <= v <= upper, an opaque number such as a loaded index

Division floors and the remainder has the divisor's sign, as in Python. Expressions are
hash-consed: two with the same terms are one object, so `is` is equality and a hash costs
nothing. The tables are weak, and no node points back at what uses it: an expression goes as
soon as its last user does. Nodes are never changed after they are made (bounds are cached), and
may be made from any thread.

Every operation simplifies by the rules of `index_rules`, which use the bounds and relations of
`index_bounds`. A simplification holds for every value within the bounds of the leaves, and for no
other: who substitutes a leaf answers for staying within them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar
from weakref import WeakValueDictionary

from uopc.dialects.errors import UopcError

from .index_atoms import (
    HAS_DIGIT,
    HAS_DIVISION,
    HAS_REMAINDER,
    Atom,
    Composite,
    FloorDiv,
    Leaf,
    Max,
    Min,
    Mod,
    Product,
    RangeVar,
    SymbolVar,
    Terms,
    ValueVar,
    depth_of,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.int64]]

_Value = TypeVar("_Value")

__all__ = [
    "HAS_DIGIT",
    "HAS_DIVISION",
    "HAS_REMAINDER",
    "Atom",
    "Composite",
    "Expr",
    "FloorDiv",
    "Leaf",
    "Max",
    "Min",
    "Mod",
    "Product",
    "RangeVar",
    "SymbolVar",
    "Terms",
    "ValueVar",
    "as_expr",
    "at_least",
    "atom_expr",
    "closure",
    "constant",
    "depth_of",
    "from_form",
    "intern",
    "intern_atom",
    "less_than",
    "maximum",
    "minimum",
    "monomial",
    "new_range",
    "raw_form",
    "same",
    "symbol",
    "total",
    "value",
]

# Reentrant: a garbage collection inside the lock may run a user's finalizer, which may build.
_lock = RLock()


class Expr:
    """const + sum of coefficient*atom, with `terms` sorted and every coefficient non-zero."""

    __slots__ = (
        "__weakref__",
        "_closure",
        "_leaves",
        "_lower",
        "_upper",
        "const",
        "flags",
        "terms",
    )
    __array_ufunc__ = None  # numpy's integers leave the operator to us

    def __init__(self, terms: Terms, const: int) -> None:
        self.terms = terms
        self.const = const
        self._lower: int | None = None
        self._upper: int | None = None
        self._leaves: frozenset[Leaf] | None = None
        self._closure: frozenset[Leaf] | None = None
        flags = 0
        for atom, _ in terms:
            flags |= atom.flags
        self.flags = flags

    def __add__(self, other: Expr | SupportsIndex) -> Expr:
        if isinstance(other, int):
            return intern(self.terms, self.const + other) if other else self
        if (right := _operand(other)) is None:
            return NotImplemented
        if not right.terms:
            return intern(self.terms, self.const + right.const) if right.const else self
        if not self.terms:
            return intern(right.terms, self.const + right.const) if self.const else right
        form = dict(self.terms)
        for atom, coefficient in right.terms:
            form[atom] = form.get(atom, 0) + coefficient
        return from_form(form, self.const + right.const)

    def __sub__(self, other: Expr | SupportsIndex) -> Expr:
        if isinstance(other, int):
            return intern(self.terms, self.const - other) if other else self
        if (right := _operand(other)) is None:
            return NotImplemented
        return self + -right

    def __rsub__(self, other: SupportsIndex) -> Expr:
        return -self + other

    def __neg__(self) -> Expr:
        return intern(tuple([(atom, -c) for atom, c in self.terms]), -self.const)

    def __mul__(self, other: Expr | SupportsIndex) -> Expr:
        if isinstance(other, int):
            return _scaled(self, other)
        if (right := _operand(other)) is None:
            return NotImplemented
        left = self
        if not right.terms:
            return _scaled(left, right.const)
        if not left.terms:
            return _scaled(right, left.const)
        product = _bounds.raw_product(left, right)
        return from_form(dict(product.terms), product.const)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Expr | SupportsIndex) -> Expr:
        if (right := _operand(other)) is None:
            return NotImplemented
        return _rules.floor_divide(self, right)

    def __rfloordiv__(self, other: SupportsIndex) -> Expr:
        return as_expr(other) // self

    def __mod__(self, other: Expr | SupportsIndex) -> Expr:
        if (right := _operand(other)) is None:
            return NotImplemented
        return _rules.remainder(self, right)

    def __rmod__(self, other: SupportsIndex) -> Expr:
        return as_expr(other) % self

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def as_int(self) -> int | None:
        """The value of a constant, None for anything else."""
        return None if self.terms else self.const

    def __int__(self) -> int:
        if self.terms:
            raise ValueError(f"index expression '{self}' is not a constant")
        return self.const

    @property
    def leaf(self) -> Leaf | None:
        """The leaf that this expression is, with coefficient 1 and nothing else."""
        atom = self.atom
        return atom if isinstance(atom, Leaf) else None

    @property
    def atom(self) -> Atom | None:
        """The atom that this expression is, with coefficient 1 and nothing else."""
        if len(self.terms) == 1 and not self.const and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    @property
    def lower(self) -> int:
        if self._lower is None:
            self._lower = _bounds.lower_bound(self)
        return self._lower

    @property
    def upper(self) -> int:
        if self._upper is None:
            self._upper = _bounds.upper_bound(self)
        return self._upper

    @property
    def bounds(self) -> tuple[int, int]:
        """Inclusive bounds: exact for sums of independent leaves, sound for everything."""
        return self.lower, self.upper

    @property
    def leaves(self) -> frozenset[Leaf]:
        """The leaves mentioned, through div, mod, products, min, max, not through range ends."""
        if self._leaves is None:
            self._leaves = frozenset[Leaf]().union(*(atom.leaves for atom, _ in self.terms))
        return self._leaves

    @property
    def closure(self) -> frozenset[Leaf]:
        """`leaves`, and those that the ends of the ranges among them mention."""
        if self._closure is None:
            self._closure = frozenset[Leaf]().union(*(atom.closure for atom, _ in self.terms))
        return self._closure

    @property
    def ranges(self) -> frozenset[RangeVar]:
        return frozenset(leaf for leaf in self.leaves if isinstance(leaf, RangeVar))

    def substitute(self, mapping: Mapping[Any, Expr | int]) -> Expr:
        """The expression with leaves replaced (all at once) and simplified anew.

        A replacement must stay within the bounds of its leaf. Range ends are not touched.
        """
        return _walk.substitute(self, mapping)

    def evaluate(self, mapping: Mapping[Any, int]) -> int:
        """The value at one point. UopcError `index-unbound` if a leaf has no value."""
        return _walk.evaluate(self, mapping)

    def evaluate_named(self, sizes: Mapping[str, int]) -> int:
        """The value for symbols given by name: `index-unbound`, `symbol-out-of-bounds`."""
        return _walk.evaluate_named(self, sizes)

    def evaluate_array(self, mapping: Mapping[Any, Array | int]) -> Array | int:
        """The values at many points: int64 arrays (or ints) that broadcast. int64 may overflow."""
        return _walk.evaluate_array(self, mapping)

    def __str__(self) -> str:
        return _walk.text(self)

    def __repr__(self) -> str:
        return f"<Expr {self}>"

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self


_exprs: WeakValueDictionary[tuple[Terms, int], Expr] = WeakValueDictionary()
_atoms: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


def intern(terms: Terms, const: int) -> Expr:
    """The one expression of these sorted terms, without any simplification."""
    key = (terms, const)
    found = _exprs.get(key)
    if found is None:
        made = Expr(terms, const)
        with _lock:
            found = _exprs.get(key)
            if found is None:
                _exprs[key] = found = made
    return found


def intern_atom(make: Callable[..., _Value], *arguments: object) -> _Value:
    """The one atom of this class and these arguments, without any simplification."""
    key = (make, *arguments)
    found = _atoms.get(key)
    if found is None:
        made = make(*arguments)
        with _lock:
            found = _atoms.setdefault(key, made)
    return found


def _term_order(term: tuple[Atom, int]) -> tuple[Any, ...]:
    return term[0].order


def raw_form(form: Mapping[Atom, int], const: int) -> Expr:
    """The expression of a linear form, as it stands."""
    terms = [term for term in form.items() if term[1]]
    if len(terms) > 1:
        terms.sort(key=_term_order)
    return intern(tuple(terms), const)


def from_form(form: dict[Atom, int], const: int) -> Expr:
    """The expression of a linear form, with quotients and remainders put together."""
    for atom, coefficient in form.items():
        if coefficient and atom.flags & (HAS_DIVISION | HAS_DIGIT):
            form, const = _rules.recombine(form, const)
            break
    return raw_form(form, const)


def _scaled(e: Expr, factor: int) -> Expr:
    if factor == 1:
        return e
    if not factor:
        return intern((), 0)
    if e.flags & (HAS_DIVISION | HAS_DIGIT):  # 2*(x - 4*(x//8)) has x%8 in it
        return from_form({atom: c * factor for atom, c in e.terms}, e.const * factor)
    return intern(tuple([(atom, c * factor) for atom, c in e.terms]), e.const * factor)


def _operand(value: object) -> Expr | None:
    """An expression or integer as an expression, None for what an operator must refuse."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int):
        return intern((), int(value))
    # numpy's integers; the check of a protocol is slow, so it comes last. Who comes before numpy's
    # arrays, as a tensor does, comes before a size as well.
    if not isinstance(value, SupportsIndex) or getattr(value, "__array_priority__", 0) > 0:
        return None
    return constant(value)


def constant(value: SupportsIndex) -> Expr:
    return intern((), int(operator.index(value)))


def as_expr(value: Expr | SupportsIndex) -> Expr:
    return value if isinstance(value, Expr) else constant(value)


def atom_expr(atom: Atom) -> Expr:
    return intern(((atom, 1),), 0)


def monomial(factors: Iterable[Atom]) -> Atom:
    """The product of one or more atoms, as an atom."""
    ordered = sorted(factors, key=lambda atom: atom.order)
    return ordered[0] if len(ordered) == 1 else intern_atom(Product, tuple(ordered))


def new_range(name: str, end: Expr | int, key: object = None) -> Expr:
    """A new range 0 <= r < end, unequal to every other."""
    return atom_expr(RangeVar(name, as_expr(end), key))


def _check_bounds(what: str, lower: int, upper: int) -> None:
    if lower > upper:
        raise UopcError(
            "index-bounds",
            f"{what} has lower bound {lower} above its upper bound {upper}",
            hint="bounds are inclusive: lower <= upper",
        )


def symbol(name: str, lower: int, upper: int) -> Expr:
    """The size `name` with these inclusive bounds; one leaf for each such triple."""
    _check_bounds(f"symbol '{name}'", lower, upper)
    return atom_expr(intern_atom(SymbolVar, name, lower, upper))


def value(key: object, lower: int, upper: int) -> Expr:
    """The computed number that `key` stands for; one leaf for each equal key and bounds."""
    _check_bounds("value", lower, upper)
    try:
        hash(key)
        identity = (ValueVar, key.__class__, key, lower, upper)
    except TypeError:
        identity = (ValueVar, key.__class__, id(key), lower, upper)
    found: ValueVar | None = _atoms.get(identity)
    made = found or ValueVar(key, lower, upper)
    with _lock:
        return atom_expr(_atoms.setdefault(identity, made))


def minimum(first: Expr | int, second: Expr | int, *more: Expr | int) -> Expr:
    return _rules.extremum(Min, [as_expr(e) for e in (first, second, *more)])


def maximum(first: Expr | int, second: Expr | int, *more: Expr | int) -> Expr:
    return _rules.extremum(Max, [as_expr(e) for e in (first, second, *more)])


def total(parts: Iterable[Expr | int]) -> Expr:
    """The sum of many, in time linear in their terms."""
    form: dict[Atom, int] = {}
    const = 0
    for part in map(as_expr, parts):
        const += part.const
        for atom, coefficient in part.terms:
            form[atom] = form.get(atom, 0) + coefficient
    return from_form(form, const)


def at_least(a: Expr | int, b: Expr | int) -> bool | None:
    """True if a >= b at every point, False if at none, None if neither is proved."""
    difference = as_expr(a) - b
    if difference.lower >= 0:
        return True
    return False if difference.upper < 0 else None


def less_than(a: Expr | int, b: Expr | int) -> bool | None:
    """True if a < b at every point, False if at none, None if neither is proved."""
    difference = as_expr(a) - b
    if difference.upper < 0:
        return True
    return False if difference.lower >= 0 else None


def same(a: Expr | int, b: Expr | int) -> bool | None:
    """True if a == b at every point, False if at none, None if neither is proved."""
    return _bounds.same(as_expr(a), as_expr(b))


def closure(leaves: Iterable[Leaf]) -> frozenset[Leaf]:
    """The leaves, and those that the ends of the ranges among them mention."""
    return frozenset[Leaf]().union(*(leaf.closure for leaf in leaves))


# An operator asks the rules, the rules build expressions: the parts need each other, and each
# touches the others only when called. They import each other relatively, so that a type checker
# that is given the folder sees one class where it would see two under two names.
from . import index_bounds as _bounds  # noqa: E402
from . import index_rules as _rules  # noqa: E402
from . import index_walk as _walk  # noqa: E402
