"""Programs written against names of ops: one text for ops in IR and for nodes of a lazy graph.

    class Lines(OpBuilder[Value]): def apply(self, op, sources, attributes): …
    make.mul(x, make.exp(y))

Who implements `apply` has the rest. Attributes are those of dialects/tensor_build.py. Helpers leave
out what changes nothing; types and shapes are the callers' affair: nothing here promotes, and only
`broadcast` broadcasts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.sizes import Size
from uopc.dialects.tensor_build import number_text, text_number

Shape: TypeAlias = tuple[Any, ...]
"""Numbers, or size expressions where the program has symbols."""


class Value(Protocol):
    """The result of an op."""

    @property
    def op(self) -> str:
        """The op's name without its dialect; `leaf` for what no op computes."""
        ...

    @property
    def attributes(self) -> tuple[Any, ...]:
        """See dialects/tensor_build.py."""
        ...

    @property
    def sources(self) -> tuple[Any, ...]:
        """The op's operands, values of the same class."""
        ...

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        ...

    @property
    def type(self) -> str:
        """The element type's name: `f32`."""
        ...

    @property
    def tracked(self) -> bool:
        """Whether gradients flow through it."""
        ...


V = TypeVar("V", bound=Value)


class OpBuilder(ABC, Generic[V]):
    """Makes ops: those of one class of values."""

    @abstractmethod
    def apply(self, op: str, sources: tuple[V, ...], attributes: tuple[Any, ...] = ()) -> V:
        """The result of an op of these sources."""

    def stand_at(self, value: V) -> None:
        """What is made from now on belongs to the place where the value's op stands."""

    def refuse(self, value: V, error: UopcError) -> UopcError:
        """The error, with what is known of the place of the op that a value is the result of."""
        return error

    # -- numbers -----------------------------------------------------------------------------------

    def constant(self, value: float | int | bool, shape: Shape, type_: str) -> V:
        """All elements one number, rounded or wrapped to the type when it becomes IR."""
        return self.apply("constant", (), (number_text(value), shape, type_))

    def full_like(self, value: float | int, x: V) -> V:
        """One number in x's shape and type."""
        return self.constant(value, x.shape, x.type)

    def iota(self, axis: int, shape: Shape, type_: str) -> V:
        """Each element its own position along an axis."""
        return self.apply("iota", (), (axis, shape, type_))

    # -- elementwise -------------------------------------------------------------------------------

    def unary(self, op: str, x: V) -> V:
        return self.apply(op, (x,))

    def binary(self, op: str, a: V, b: V) -> V:
        return self.apply(op, (a, b))

    def add(self, a: V, b: V) -> V:
        return self.apply("add", (a, b))

    def sub(self, a: V, b: V) -> V:
        return self.apply("sub", (a, b))

    def mul(self, a: V, b: V) -> V:
        return self.apply("mul", (a, b))

    def div(self, a: V, b: V) -> V:
        return self.apply("div", (a, b))

    def neg(self, x: V) -> V:
        return self.apply("neg", (x,))

    def scaled(self, x: V, factor: float | int) -> V:
        """x times a number."""
        return self.apply("mul", (x, self.full_like(factor, x)))

    def where(self, condition: V, a: V, b: V) -> V:
        return self.apply("where", (condition, a, b))

    def cast(self, x: V, type_: str) -> V:
        return x if x.type == type_ else self.apply("cast", (x,), (type_,))

    # -- movement ----------------------------------------------------------------------------------

    def reshape(self, x: V, shape: Shape) -> V:
        while True:
            if x.shape == shape:
                return x
            if x.op == "constant" and math.prod(shape) == math.prod(x.shape):
                return self.constant(text_number(x.attributes[0]), shape, x.type)
            if x.op != "reshape":
                return self.apply("reshape", (x,), (shape,))
            x = x.sources[0]

    def expand(self, x: V, shape: Shape) -> V:
        if x.shape == shape:
            return x
        if x.op == "constant" and all(a in (1, b) for a, b in zip(x.shape, shape, strict=True)):
            return self.constant(text_number(x.attributes[0]), shape, x.type)
        return self.apply("expand", (x,), (shape,))

    def broadcast(self, x: V, shape: Shape) -> V:
        """numpy's broadcasting to a shape that x fits."""
        if x.shape == shape:
            return x
        padded = (1,) * (len(shape) - len(x.shape)) + x.shape
        return self.expand(self.reshape(x, padded), shape)

    def permute(self, x: V, order: Sequence[int]) -> V:
        order = tuple(order)
        return x if order == tuple(range(len(x.shape))) else self.apply("permute", (x,), (order,))

    def flip(self, x: V, axes: Sequence[int]) -> V:
        return self.apply("flip", (x,), (tuple(axes),)) if axes else x

    def shrink(
        self,
        x: V,
        begins: Sequence[Size],
        ends: Sequence[Size],
        steps: Sequence[int] | None = None,
    ) -> V:
        steps = tuple(steps) if steps is not None else (1,) * len(x.shape)
        if all(b == 0 for b in begins) and tuple(ends) == x.shape and all(s == 1 for s in steps):
            return x
        return self.apply("shrink", (x,), (tuple(begins), tuple(ends), steps))

    def pad(self, x: V, low: Sequence[Size], high: Sequence[Size], value: str = "0") -> V:
        """`value` is a number as tensor_build.number_text writes it."""
        if all(n == 0 for n in low) and all(n == 0 for n in high):
            return x
        return self.apply("pad", (x,), (tuple(low), tuple(high), value))

    def dilated(self, x: V, steps: Sequence[int]) -> V:
        """step - 1 zeros between neighbours along each axis."""
        shape = x.shape
        if all(s == 1 for s in steps):
            return x
        if not all(isinstance(n, int) or s == 1 for n, s in zip(shape, steps, strict=True)):
            raise self.refuse(
                x,
                UnsupportedError(
                    "unsupported-op", "elements are moved apart along an axis of symbolic size"
                ),
            )
        rank = len(shape)
        wide = [s > 1 and n > 1 for s, n in zip(steps, shape, strict=True)]
        apart = self.reshape(x, tuple(k for n in shape for k in (n, 1)))
        high = [k for s, w in zip(steps, wide, strict=True) for k in (0, s - 1 if w else 0)]
        apart = self.pad(apart, [0] * (2 * rank), high)
        sizes = tuple(n * s if w else n for n, s, w in zip(shape, steps, wide, strict=True))
        ends = [(n - 1) * s + 1 if w else n for n, s, w in zip(shape, steps, wide, strict=True)]
        return self.shrink(self.reshape(apart, sizes), [0] * rank, ends)

    # -- reductions and places ---------------------------------------------------------------------

    def reduce(self, kind: str, x: V, axes: Sequence[int]) -> V:
        return self.apply("reduce", (x,), (kind, tuple(sorted(axes)))) if axes else x

    def spread(self, x: V, shape: Shape, axes: Sequence[int]) -> V:
        """What reducing `axes` of `shape` gave, repeated along them again."""
        return self.expand(self.reshape(x, kept(shape, axes)), shape)

    def gather(self, x: V, indices: V, axis: int) -> V:
        return self.apply("gather", (x, indices), (axis,))

    def scatter(self, kind: str, x: V, indices: V, updates: V, axis: int) -> V:
        return self.apply("scatter", (x, indices, updates), (kind, axis))

    def detach(self, x: V) -> V:
        return self.apply("stage", (x,), ("detach",)) if x.tracked else x


def kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """A shape with some axes made 1."""
    return tuple(1 if k in axes else n for k, n in enumerate(shape))
