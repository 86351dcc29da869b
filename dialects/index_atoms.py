"""The atoms of index expressions: leaves, products, quotients, remainders, minima, maxima.

Users take them from `index_expr`, whose functions make them; see there for the grammar.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    from .index_expr import Expr

HAS_DIVISION = 1  # flags of a form: a floordiv stands in it, alone or within a product
HAS_REMAINDER = 2  # a mod does
HAS_DIGIT = 4  # a mod does whose numerator has a floordiv

_serial = count()


class Atom:
    """What a linear form is made of.

    `lower`, `upper`: inclusive bounds. `leaves`: the leaves mentioned. `closure`: those, and the
    leaves that the ends of ranges mention. `depth`: how far above symbols and constants.
    `order`: the sort key; it depends on names and on the order in which ranges were made, so
    that equal programs print alike. `flags`: HAS_DIVISION, HAS_REMAINDER.
    """

    __slots__ = ("__weakref__", "depth", "digest", "flags", "lower", "order", "upper")
    lower: int
    upper: int
    depth: int
    digest: int
    flags: int
    order: tuple[Any, ...]

    @property
    def factors(self) -> tuple[Atom, ...]:
        return (self,)

    @property
    def leaves(self) -> frozenset[Leaf]:
        raise NotImplementedError

    @property
    def closure(self) -> frozenset[Leaf]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __copy__(self) -> Atom:
        return self

    def __deepcopy__(self, memo: object) -> Atom:
        return self


class Leaf(Atom):
    """An atom that stands for a number from outside: its `name` is for people only."""

    __slots__ = ()
    name: str

    # Not stored: a set that holds its owner would be a reference cycle.
    @property
    def leaves(self) -> frozenset[Leaf]:
        return frozenset((self,))

    @property
    def closure(self) -> frozenset[Leaf]:
        return frozenset((self,))

    def _place(self, rank: int, key: tuple[Any, ...], lower: int, upper: int, depth: int) -> None:
        self.lower = lower
        self.upper = upper
        self.depth = depth
        self.flags = 0
        self.order = (rank, *key)
        self.digest = crc32(ascii((rank, self.name, lower, upper)).encode())


class RangeVar(Leaf):
    """The index of a loop: 0 <= r < end. Distinct from every other, whatever its name.

    `key` is carried for the owner. An empty range (end <= 0) has bounds (0, 0): it has no
    point, so any bounds are true of it.
    """

    __slots__ = ("end", "key", "name")

    def __init__(self, name: str, end: Expr, key: object = None) -> None:
        self.name = name
        self.end = end
        self.key = key
        _ = end.closure  # cached now, so that a long chain of ends is never walked recursively
        self._place(0, (next(_serial),), 0, max(end.upper - 1, 0), 1 + depth_of(end))

    @property
    def closure(self) -> frozenset[Leaf]:
        return self.end.closure | frozenset((self,))


class SymbolVar(Leaf):
    """A named size, known when the program is called: lower <= n <= upper."""

    __slots__ = ("name",)

    def __init__(self, name: str, lower: int, upper: int) -> None:
        self.name = name
        self._place(1, (name, lower, upper), lower, upper, 0)


class ValueVar(Leaf):
    """A number that the program computes: lower <= v <= upper. `key` says which number."""

    __slots__ = ("key", "name")

    def __init__(self, key: object, lower: int, upper: int) -> None:
        self.key = key
        self.name = key if isinstance(key, str) else "value"
        self._place(2, (lower, upper, next(_serial)), lower, upper, 0)


class Composite(Atom):
    """An atom over expressions. `operands` has the numerator and divisor, or the arguments."""

    __slots__ = ("_closure", "_leaves", "operands")
    rank = 0
    own_flag = 0
    operands: tuple[Expr, ...]
    _leaves: frozenset[Leaf]
    _closure: frozenset[Leaf]

    def __init__(self, operands: tuple[Expr, ...]) -> None:
        self.operands = operands
        self._leaves = frozenset[Leaf]().union(*(e.leaves for e in operands))
        self._closure = frozenset[Leaf]().union(*(e.closure for e in operands))
        self.depth = 1 + max(map(depth_of, operands))
        self.flags = self.own_flag
        self._sort(ascii([_digest_of(e) for e in operands]))
        self.lower, self.upper = self._interval()

    def _interval(self) -> tuple[int, int]:
        """Bounds from those of the operands."""
        raise NotImplementedError

    def __str__(self) -> str:
        from .index_walk import atom_text  # walks are over finished atoms

        return atom_text(self)

    def _sort(self, structure: str) -> None:
        self.digest = crc32(f"{self.rank}{structure}".encode())
        leaves = tuple(sorted(leaf.order for leaf in self._leaves))
        self.order = (self.rank, leaves, self.digest, next(_serial))

    @property
    def leaves(self) -> frozenset[Leaf]:
        return self._leaves

    @property
    def closure(self) -> frozenset[Leaf]:
        return self._closure


class Product(Composite):
    """A product of two or more atoms, none of them a product; sorted, with repetition."""

    __slots__ = ("_factors",)
    rank = 3

    def __init__(self, factors: tuple[Atom, ...]) -> None:
        self.operands = ()
        self._factors = factors
        self._leaves = frozenset[Leaf]().union(*(f.leaves for f in factors))
        self._closure = frozenset[Leaf]().union(*(f.closure for f in factors))
        self.depth = max(f.depth for f in factors)
        self.flags = 0
        for factor in factors:
            self.flags |= factor.flags
        self._sort(ascii([f.digest for f in factors]))
        self.lower, self.upper = self._interval()

    def _interval(self) -> tuple[int, int]:
        # Equal factors count as a power, so that a square is not negative.
        low = high = 1
        for factor in dict.fromkeys(self._factors):
            power = self._factors.count(factor)
            ends = (factor.lower**power, factor.upper**power)
            least, most = min(ends), max(ends)
            if power % 2 == 0 and factor.lower < 0 < factor.upper:
                least = 0
            corners = (low * least, low * most, high * least, high * most)
            low, high = min(corners), max(corners)
        return low, high

    @property
    def factors(self) -> tuple[Atom, ...]:
        return self._factors


class _Division(Composite):
    __slots__ = ()

    @property
    def numerator(self) -> Expr:
        return self.operands[0]

    @property
    def divisor(self) -> Expr:
        """A constant of at least 2, or an expression that is at least 1."""
        return self.operands[1]


class FloorDiv(_Division):
    __slots__ = ()
    rank = 4
    own_flag = HAS_DIVISION

    def _interval(self) -> tuple[int, int]:
        (low, high), (least, most) = self.numerator.bounds, self.divisor.bounds
        least = max(least, 1)  # a divisor is positive, even where its bounds do not show it
        return min(low // least, low // most), max(high // least, high // most)


class Mod(_Division):
    __slots__ = ()
    rank = 5
    own_flag = HAS_REMAINDER

    def __init__(self, operands: tuple[Expr, ...]) -> None:
        super().__init__(operands)
        if self.numerator.flags & HAS_DIVISION:
            self.flags |= HAS_DIGIT

    def _interval(self) -> tuple[int, int]:
        (low, high), most = self.numerator.bounds, self.divisor.upper
        return 0, min(high, most - 1) if low >= 0 else most - 1


class Min(Composite):
    __slots__ = ()
    rank = 6

    def _interval(self) -> tuple[int, int]:
        return min(e.lower for e in self.operands), min(e.upper for e in self.operands)


class Max(Composite):
    __slots__ = ()
    rank = 7

    def _interval(self) -> tuple[int, int]:
        return max(e.lower for e in self.operands), max(e.upper for e in self.operands)


Terms = tuple[tuple[Atom, int], ...]


def depth_of(e: Expr) -> int:
    return max((atom.depth for atom, _ in e.terms), default=0)


def _digest_of(e: Expr) -> tuple[Any, ...]:
    return (*((atom.digest, coefficient) for atom, coefficient in e.terms), e.const)
