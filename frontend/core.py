"""What every file of tensor functions builds on: tensors to nodes and back, shapes and types met.

The functions themselves stand in files by theme and are attached to Tensor in tensor.py.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, cast

import numpy as np

from uopc.dialects.element_types import (
    ELEMENT_TYPES,
    ElementType,
    element_type_named,
    element_type_of_numpy,
)
from uopc.dialects.errors import UopcError
from uopc.frontend import nodes
from uopc.frontend.extents import is_symbolic, settled
from uopc.frontend.graph import Array, Node, Shape, apply, buffer, constant
from uopc.frontend.promotion import promote, promote_number
from uopc.runtime.buffers import C_CONTIGUOUS_AND_ALIGNED, empty_aligned, numpy_dtype

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Number: TypeAlias = bool | int | float
Operand: TypeAlias = "Tensor | Number | Array | np.generic | Sequence[Any]"
DTypeLike: TypeAlias = "str | np.dtype[Any] | type[Any]"
Axes: TypeAlias = "int | Sequence[int] | None"
HALVES = ("f16", "bf16")

_class: list[type[Tensor]] = []


def register(tensor_class: Any) -> None:
    """Called once by tensor.py, which imports this module and not the other way round."""
    _class.append(tensor_class)


def wrap(node: Node) -> Tensor:
    """A tensor of a node."""
    return _class[0].of_node(node)


def is_tensor(value: object) -> bool:
    """Whether a value is a Tensor."""
    return isinstance(value, _class[0])


def bad(kind: str, message: str, hint: str = "") -> UopcError:
    """The error of a wrong argument."""
    return UopcError(kind, message, hint=hint)


# -- types -----------------------------------------------------------------------------------------

_PYTHON_TYPES: dict[object, str] = {bool: "i1", int: "i32", float: "f32"}


def type_name(dtype: DTypeLike | ElementType) -> str:
    """The element type's name: of `f32`, `float32`, `numpy.float32`, a numpy dtype or `float`.

    Raises UopcError [unknown-dtype].
    """
    if isinstance(dtype, ElementType):
        return dtype.name
    if isinstance(dtype, str):
        if any(t.name == dtype for t in ELEMENT_TYPES):
            return dtype
        if dtype == "bfloat16":
            return "bf16"
    elif dtype in _PYTHON_TYPES:
        return _PYTHON_TYPES[dtype]
    try:
        row = _row_of_numpy(np.dtype(dtype))
    except TypeError:
        row = None
    if row is None:
        raise bad(
            "unknown-dtype",
            f"there is no element type {str(dtype)[:60]!r}",
            "expected one of " + ", ".join(t.name for t in ELEMENT_TYPES),
        )
    return row.name


@functools.lru_cache(maxsize=64)
def _row_of_numpy(dtype: np.dtype[Any]) -> ElementType | None:
    """The row of a numpy dtype, in whatever order its bytes are."""
    return element_type_of_numpy(dtype.newbyteorder("="))


# -- arrays ----------------------------------------------------------------------------------------


def owned_copy(array: Array, type_: str) -> Array:
    """A row-major, aligned copy in an element type's dtype, its bytes in this machine's order."""
    copy = empty_aligned(array.shape, numpy_dtype(type_))
    copy[...] = array
    return copy


def shared_or_copied(array: Array, type_: str) -> Array:
    """The array itself where C can read it as it is, else a copy. It is never written."""
    fits = array.flags.num & C_CONTIGUOUS_AND_ALIGNED == C_CONTIGUOUS_AND_ALIGNED
    if fits and type_ != "i1" and array.dtype == numpy_dtype(type_) and array.dtype.isnative:
        return array
    return owned_copy(array, type_)


def array_node(value: object, type_: str | None = None) -> Node:
    """A buffer with a copy of an array, a number or nested lists of numbers.

    Raises UopcError [unknown-dtype], [wrong-type], [ragged-list].
    """
    if isinstance(value, np.ndarray | np.generic):
        array: Array = np.asarray(cast(Any, value))
        if isinstance(value, np.ma.MaskedArray):
            raise bad("wrong-type", "a masked array's mask would be lost", "array.filled(value)")
        name = type_ or type_name(array.dtype)
    else:
        try:
            array = np.asarray(value)
        except ValueError:
            raise bad(
                "ragged-list",
                "the nested lists have different lengths, or hold things that are no numbers",
                "every list of one level must have as many elements",
            ) from None
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            raise bad(
                "wrong-type",
                f"a {type(value).__name__} is no number, list of numbers or array",
                "integers must fit 64 bits" if array.dtype.kind == "O" else "",
            )
        name = type_ or _type_of_python(array)
    return buffer(converted(array, name), name)


def _type_of_python(array: Array) -> str:
    if array.dtype.kind == "b":
        return "i1"
    if array.dtype.kind == "f":
        return "f32" if array.dtype == np.float64 else type_name(array.dtype)
    if array.dtype.kind == "i" and array.size:
        fits = int(array.min()) >= -(2**31) and int(array.max()) < 2**31
        return "i32" if fits else "i64"
    return "i32" if array.dtype.kind == "i" else type_name(array.dtype)


def converted(array: Array, type_: str) -> Array:
    """An owned array in an element type, numbers converted as utensor.cast does."""
    if array.dtype.kind == "f" and not element_type_named(type_).is_float and type_ != "i1":
        return owned_copy(_saturated(array.astype(np.float64), type_), type_)
    if array.dtype == numpy_dtype(type_):
        return owned_copy(array, type_)
    with np.errstate(over="ignore"):
        return owned_copy(array, type_)


def _saturated(array: Array, type_: str) -> Array:
    """Floats as integers: truncated, held at the type's limits, NaN as 0."""
    low, high = element_type_named(type_).limits
    inside = (array > low) & (array < high)
    whole = np.where(inside, array, 0).astype(numpy_dtype(type_))
    whole[array <= low] = low
    whole[array >= high] = high
    return whole


def check_number(value: Number, type_: str) -> None:
    """Raises UopcError [out-of-range] for a Python number that an integer type cannot hold."""
    row = element_type_named(type_)
    if not row.is_integer or isinstance(value, bool):
        return
    low, high = row.limits
    if isinstance(value, float) or not low <= value <= high:
        raise bad(
            "out-of-range", f"{value} is no {type_}, which holds {low} to {high}", "cast first"
        )


def known_elements(x: Tensor) -> Array | None:
    """The elements of a tensor that is data already, for checks: nothing is computed for them.

    None for what is still to be computed, and for whatever a function that is being traced takes
    in: its elements are other ones at each call.
    """
    node = x.node
    return (node.realized or node).array


# -- operands --------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> Shape:
    """numpy's common shape. Raises UopcError [wrong-operands]."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result: list[int] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            raise bad(
                "wrong-operands",
                f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast: axis {axis} "
                f"has sizes {' and '.join(sorted(map(str, sizes)))}",
                "sizes must be equal, or one of them 1; reshape or index with None",
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def tensor(value: Operand) -> Tensor:
    """A tensor as it is; anything else as Tensor(value) makes it, and a size as its value."""
    if is_symbolic(value):  # the value of a size, which takes the type of what it meets
        made = wrap(nodes.constant(value, (), "i64"))
        made.weak = True
        return made
    return value if isinstance(value, _class[0]) else wrap(array_node(value))  # pyright: ignore[reportReturnType] (the class is Tensor)


_NUMBERS = frozenset((bool, int, float))


def is_number(value: object) -> bool:
    """Whether a value is a plain Python number, which takes the type of the tensor it meets."""
    if type(value) in _NUMBERS:
        return True
    return isinstance(value, int | float) and not isinstance(value, np.generic)


def number(value: object) -> Number:
    """A plain Python number as such. Raises UopcError [wrong-type] for anything else."""
    if isinstance(value, bool | int | float):
        return value
    raise bad("wrong-type", f"expected a number, got a {type(value).__name__}")


def whole(name: str, value: object, least: int = 0) -> int:
    """The whole number that an argument is, of at least `least`, as Python's own.

    Raises UopcError [wrong-argument], which says the argument's name.
    """
    try:
        given = operator.index(cast("int", value))
    except TypeError:
        given = None
    if given is None or given < least:
        expected = f"expected a whole number of at least {least}"
        raise bad("wrong-argument", f"{name} is {shown(value)}", expected)
    return given


def real(name: str, value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """The number from low to high that an argument is: Python's, numpy's or a tensor's.

    Raises UopcError [wrong-argument], which says the argument's name.
    """
    try:
        given = math.nan if isinstance(value, str | bytes) else float(cast("float", value))
    except (TypeError, ValueError, OverflowError):
        given = math.nan
    if not low <= given <= high:
        span = "" if low == -math.inf else f" of at least {low:g}"
        span = f" from {low:g} to {high:g}" if high < math.inf else span
        raise bad("wrong-argument", f"{name} is {shown(value)}", f"expected a number{span}")
    return given


def shown(value: object) -> str:
    """A wrong argument in few words."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"


def python_kind(type_: str) -> Number:
    """A Python number of the kind of a weak tensor's type."""
    row = element_type_named(type_)
    return False if row.is_bool else 1.0 if row.is_float else 1


def meet_types(*values: Any) -> str:
    """The type in which operands meet: tensors (weak ones as Python numbers) and numbers.

    At least one is a tensor.
    """
    strong: str | None = None
    weak: list[Any] = []
    for value in values:
        if is_number(value) or value.weak:
            weak.append(value)
        else:
            strong = value.node.type if strong is None else promote(strong, value.node.type)
    if strong is None:
        types = [v.node.type for v in weak if not is_number(v)]
        strong = str(types[0])
        for type_ in types[1:]:
            strong = promote(strong, str(type_))
        weak = [v for v in weak if is_number(v)]
    assert strong is not None
    for value in weak:
        number = value if is_number(value) else python_kind(value.node.type)
        strong = promote_number(strong, number)
    return strong


def operands(values: Sequence[Operand], type_: str | None = None) -> list[Node]:
    """The nodes of operands, in one shape and type; that type may be given."""
    ready: list[Any] = [v if is_number(v) else tensor(v) for v in values]
    type_ = type_ or meet_types(*ready)
    shape = broadcast_shapes(*[v.node.shape for v in ready if not is_number(v)])
    found: list[Node] = []
    for value in ready:
        if is_number(value):
            check_number(value, type_)
            found.append(constant(value, shape, type_))
        else:
            found.append(nodes.broadcast(nodes.cast(value.node, type_), shape))
    return found


def elementwise(op: str, *values: Operand, type_: str | None = None) -> Tensor:
    """An elementwise op on operands that are made to meet."""
    result = wrap(apply(op, tuple(operands(values, type_))))
    result.weak = all(is_number(v) or getattr(v, "weak", False) for v in values)
    return result


P = ParamSpec("P")


def in_single(
    function: Callable[Concatenate[Tensor, P], Tensor],
) -> Callable[Concatenate[Tensor, P], Tensor]:
    """A function of which halves go through in f32, and come out as halves: what it adds up on the
    way may be beyond f16 where the result is not."""

    @functools.wraps(function)
    def computed(x: Tensor, *args: P.args, **kwargs: P.kwargs) -> Tensor:
        type_ = x.element
        others = (v.element for v in (*args, *kwargs.values()) if isinstance(v, _class[0]))
        if type_ not in HALVES or any(o != type_ and o[0] in "fb" for o in others):
            return function(x, *args, **kwargs)  # what they meet in is wide enough
        return function(x.cast("f32"), *args, **kwargs).cast(type_)

    return computed


# -- axes ------------------------------------------------------------------------------------------


def one_axis(axis: int, rank: int) -> int:
    """An axis counted from 0. Raises UopcError [bad-axis]."""
    try:
        value = operator.index(axis)
    except TypeError:
        raise bad("bad-axis", f"an axis is a whole number, got {axis!r}") from None
    if not -rank <= value < rank:
        expected = f"expected {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise bad("bad-axis", f"axis {value} is out of range for rank {rank}", expected)
    return value % rank


def plain(value: Any) -> Any:
    """A whole number, or a sequence of them, with numpy's as Python's; others as they are."""
    if isinstance(value, np.integer):
        return int(cast(int, value))
    if isinstance(value, tuple | list):
        return tuple(plain(v) for v in cast(Sequence[Any], value))
    return value


def all_axes(axes: Axes, rank: int) -> tuple[int, ...]:
    """Axes counted from 0, ascending; None means all. Raises UopcError [bad-axis]."""
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int) or hasattr(axes, "__index__") else tuple(axes)  # pyright: ignore[reportArgumentType] (it has __index__, or is a sequence)
    found = [one_axis(a, rank) for a in given]  # pyright: ignore[reportArgumentType] (as above)
    if len(set(found)) != len(found):
        raise bad("bad-axis", f"axes {list(found)} are not distinct")
    return tuple(sorted(found))


def shape_of(sizes: Sequence[Any]) -> Shape:
    """Sizes given one by one or as one sequence. Raises UopcError [bad-shape]."""
    given: Any = sizes
    if len(given) == 1 and not hasattr(given[0], "__index__") and not is_symbolic(given[0]):
        given = given[0]
    try:
        return tuple(settled(n) if is_symbolic(n) else operator.index(n) for n in given)
    except TypeError:
        raise bad("bad-shape", f"a shape is whole numbers, got {str(given)[:80]}") from None
