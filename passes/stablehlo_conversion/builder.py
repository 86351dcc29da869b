"""Builds utensor ops, and none that is not needed.

A value that is known stays a constant: ops on constants of one value are folded, and movement ops
move the elements of short constants. Counters of loops and clamped indices vanish this way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ElementType, element_type_of_numpy
from uopc.dialects.errors import UnsupportedError
from uopc.dialects.numbers import dense_array, dense_of_array, known_element, scalar, scalar_value
from uopc.dialects.sizes import sizes_of, tensor_type
from uopc.passes.fold import Number, fold

Shape = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[Any]]

MAX_OPS = 200_000
"""A program that needs more ops when it is unrolled and inlined is refused."""

FOLDED_ELEMENTS = 1024
"""Movement ops move the elements of constants up to this size at compile time."""


def tensor(value: SSAValue) -> TensorType[Attribute]:
    """The type of a value."""
    return e.tensor_of(value)


def shape_of(value: SSAValue) -> Shape:
    """The sizes of a value, all of them numbers here."""
    return tuple(tensor(value).get_shape())


def row_of(value: SSAValue) -> ElementType:
    """The element type's row of a value."""
    return known_element(tensor(value).element_type)


def element_of(value: SSAValue) -> Attribute:
    """The element type of a value."""
    return tensor(value).element_type


class Builder:
    """Appends ops to a block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.location: Attribute | None = None
        self.count = 0
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}

    def append(self, op: Operation) -> SSAValue:
        """Add an op; its first result. Raises UnsupportedError for the one op too many."""
        self.add(op)
        return op.results[0]

    def add(self, op: Operation) -> None:
        """Add an op of any results, as `append` does."""
        self.count += 1
        if self.count > MAX_OPS:
            raise UnsupportedError(
                "unsupported-op",
                f"inlined and unrolled, the program has more than {MAX_OPS} ops",
                hint="loops and calls are written out: use fewer steps",
            )
        for result in op.results:
            if isinstance(result.type, TensorType):
                sizes_of(tensor(result))  # no larger than any memory
        if self.location is not None:
            op.location = cast(Any, self.location)
        self.block.add_op(op)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Append to a block of a region; constants made there are not known outside of it."""
        outer, self.block = self.block, block
        constants, self._constants = self._constants, dict(self._constants)
        yield
        self.block, self._constants = outer, constants

    # Constants.

    def constant(
        self, value: float | int | Attribute, element: Attribute, shape: Shape = ()
    ) -> SSAValue:
        """A tensor whose elements are all `value`: a number, wrapped or rounded to the type."""
        number = value if isinstance(value, Attribute) else scalar(value, element)
        type_ = tensor_type(element, shape)
        found = self._constants.get((number, type_))
        if found is None:
            found = self.append(t.ConstantOp(cast(Any, number), type_))
            self._constants[number, type_] = found
        return found

    def like(self, value: SSAValue, number: float | int) -> SSAValue:
        """A constant of the type of `value`."""
        return self.constant(number, element_of(value), shape_of(value))

    def array(self, array: Array) -> SSAValue:
        """A constant of these elements."""
        if not array.size or _all_alike(array):
            row = element_type_of_numpy(array.dtype)
            assert row is not None, array.dtype
            number = array.reshape(-1)[0].item() if array.size else 0
            return self.constant(number, row.attribute, array.shape)
        dense = dense_of_array(array)
        type_ = tensor_type(dense.type.element_type, array.shape)
        found = self._constants.get((dense, type_))
        if found is None:
            found = self.append(t.ConstantOp(dense, type_))
            self._constants[dense, type_] = found
        return found

    # Elementwise.

    def op(self, cls: type[Any], *operands: SSAValue) -> SSAValue:
        """An elementwise op. Operands of no axes are repeated to the shape of the others."""
        operands = self.alike(operands)
        numbers = [number_of(operand) for operand in operands]
        if all(number is not None for number in numbers):
            result = cls.infer(tensor(operands[0])) if cls is not e.WhereOp else tensor(operands[1])
            folded = fold(_short(cls), cast("list[Number]", numbers), result.element_type)
            if folded is not None:
                return self.constant(folded, result.element_type, shape_of(operands[-1]))
        return self.append(cls(*operands))

    def alike(self, operands: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """The operands, those of no axes repeated to the shape of the others."""
        shape = max((shape_of(each) for each in operands), key=len)
        return tuple(self.spread(each, shape) if not shape_of(each) else each for each in operands)

    def where(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` where the condition holds, else `no`."""
        known = number_of(condition)
        if known is not None:
            yes, no, _ = self.alike((yes, no, condition))
            return yes if scalar_value(known) else no
        return yes if yes is no else self.op(e.WhereOp, condition, yes, no)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The numbers in another type; see CastOp."""
        return self._converted(e.CastOp, value, element)

    def bitcast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The bits in another type of the same width."""
        return self._converted(e.BitcastOp, value, element)

    def _converted(self, cls: type[Any], value: SSAValue, element: Attribute) -> SSAValue:
        if element_of(value) == element:
            return value
        number = number_of(value)
        if number is not None:
            folded = fold(_short(cls), [number], element)
            if folded is not None:
                return self.constant(folded, element, shape_of(value))
        return self.append(cls(value, element))

    # Movement.

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self._moved(
            value,
            tuple(shape),
            lambda a: a.reshape(tuple(shape)),
            lambda: m.ReshapeOp(value, shape),
        )

    def permute(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """Result axis k is operand axis order[k]."""
        if list(order) == list(range(len(order))):
            return value
        shape = tuple(shape_of(value)[k] for k in order)
        return self._moved(
            value, shape, lambda a: a.transpose(order), lambda: m.PermuteOp(value, order)
        )

    def expand(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Axes of size 1 repeated."""
        if shape_of(value) == tuple(shape):
            return value
        return self._moved(value, tuple(shape), None, lambda: m.ExpandOp(value, shape))

    def spread(self, value: SSAValue, shape: Sequence[int], axes: Sequence[int] = ()) -> SSAValue:
        """`value` repeated in a larger shape, its axis k being axis axes[k], in any order."""
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        value = self.permute(value, order)
        sizes = [1] * len(shape)
        for k in order:
            sizes[axes[k]] = shape_of(value)[order.index(k)]
        return self.expand(self.reshape(value, sizes), shape)

    def flip(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """The order along some axes reversed."""
        axes = tuple(k for k in axes if shape_of(value)[k] > 1)
        if not axes:
            return value
        return self._moved(
            value, shape_of(value), lambda a: np.flip(a, axes), lambda: m.FlipOp(value, axes)
        )

    def shrink(
        self,
        value: SSAValue,
        begins: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> SSAValue:
        """Each step-th element from begin up to, without, end along each axis."""
        steps = tuple(steps) if steps is not None else (1,) * len(begins)
        ranges = [range(a, b, s) for a, b, s in zip(begins, ends, steps, strict=True)]
        if all(r == range(n) for r, n in zip(ranges, shape_of(value), strict=True)):
            return value
        index = tuple(slice(a, b, s) for a, b, s in zip(begins, ends, steps, strict=True))
        return self._moved(
            value,
            tuple((b - a + s - 1) // s for a, b, s in zip(begins, ends, steps, strict=True)),
            lambda a: a[index],
            lambda: m.ShrinkOp(value, begins, ends, steps),
        )

    def _moved(
        self,
        value: SSAValue,
        shape: Shape,
        move: Callable[[Array], Array] | None,
        make: Callable[[], Operation],
    ) -> SSAValue:
        number = number_of(value)
        if number is not None:
            return self.constant(number, element_of(value), shape)
        array = array_of(value)
        if array is not None and move is not None and array.size <= FOLDED_ELEMENTS:
            return self.array(np.ascontiguousarray(move(array)))
        return self.append(make())

    def pad(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float | Attribute = 0
    ) -> SSAValue:
        """Elements of one value added before and after each axis."""
        if not any(low) and not any(high):
            return value
        return self.append(m.PadOp(value, low, high, fill))

    def slice_axis(
        self, value: SSAValue, axis: int, begin: int, end: int, step: int = 1
    ) -> SSAValue:
        """Elements begin, begin + step, … below end along one axis."""
        shape = shape_of(value)
        begins, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
        begins[axis], ends[axis], steps[axis] = begin, end, step
        return self.shrink(value, begins, ends, steps)

    def concatenate(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """Values one after another along an axis.

        Each is padded to the whole length, and what an element comes from is chosen by its
        position: one kernel, that reads one value an element.
        """
        values = [each for each in values if shape_of(each)[axis]] or list(values[:1])
        rank, total = len(shape_of(values[0])), sum(shape_of(each)[axis] for each in values)
        if len(values) == 1:
            return values[0]
        position = self.iota(0, (total,))
        result: SSAValue | None = None
        begin = 0
        for each in values:
            end = begin + shape_of(each)[axis]
            low, high = [0] * rank, [0] * rank
            low[axis], high[axis] = begin, total - end
            padded = self.pad(each, low, high)
            if result is None:
                result = padded
            else:
                before = self.op(e.CmpltOp, position, self.constant(begin, i64, (total,)))
                mask = self.spread(before, shape_of(padded), (axis,))
                result = self.where(mask, result, padded)
            begin = end
        assert result is not None
        return result

    # The rest.

    def iota(self, axis: int, shape: Sequence[int], element: Attribute = i64) -> SSAValue:
        """Each element is its position along an axis."""
        if math.prod(shape) and shape[axis] == 1:
            return self.constant(0, element, tuple(shape))
        return self.append(t.IotaOp(axis, tensor_type(element, tuple(shape))))

    def reduce(self, kind: str, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Combine along axes, which are dropped."""
        if not axes:
            return value
        shape = shape_of(value)
        if all(shape[k] == 1 for k in axes):
            return self.reshape(value, [n for k, n in enumerate(shape) if k not in axes])
        return self.append(t.ReduceOp(kind, value, axes))

    def gather(self, value: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """The axis replaced by the indices' shape; indices are clamped."""
        return self.append(t.GatherOp(value, indices, axis))

    def scatter(
        self, kind: str, value: SSAValue, indices: SSAValue, updates: SSAValue, axis: int
    ) -> SSAValue:
        """Updates combined at indices; those outside of the axis are dropped."""
        return self.append(t.ScatterOp(kind, value, indices, updates, axis))

    def stage(self, value: SSAValue) -> SSAValue:
        """The same value in a buffer of its own, so that it is computed once."""
        if not isinstance(value, OpResult) or isinstance(value.op, t.ConstantOp | t.StageOp):
            return value
        return self.append(t.StageOp(value))


def _short(cls: type[Operation]) -> str:
    return cls.name.partition(".")[2]


def _all_alike(array: Array) -> bool:
    """Whether all elements have the same bits: -0 is not 0, and a NaN is like itself."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.size == 1 or flat.tobytes() == flat[:1].tobytes() * flat.size


def constant_op(value: SSAValue) -> t.ConstantOp | None:
    """The constant that a value is."""
    if isinstance(value, OpResult) and isinstance(value.op, t.ConstantOp):
        return value.op
    return None


def number_of(value: SSAValue) -> Number | None:
    """The number that all elements are, if that is known."""
    op = constant_op(value)
    number = None if op is None else op.value
    return cast(Number, number) if isinstance(number, FloatAttr | IntegerAttr) else None


def array_of(value: SSAValue) -> Array | None:
    """The elements, if they are known and not all alike."""
    op = constant_op(value)
    return None if op is None or op.dense is None else dense_array(op.dense)


def known_integer(value: SSAValue) -> int | None:
    """The integer that all elements are, if that is known."""
    number = number_of(value)
    return int(scalar_value(number)) if isinstance(number, IntegerAttr) else None
