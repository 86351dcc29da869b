"""Tensors from nothing: constants, ranges, and random numbers by a counter.

Random numbers are numpy's Philox, a counter-based generator, drawn on the host: the n-th draw
after `manual_seed(s)` depends on s, n and the shape alone. In a function that uopc.jit traces each
draw is an input, drawn anew at every call.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from uopc.frontend import nodes, tracing
from uopc.frontend.core import (
    DTypeLike,
    Number,
    bad,
    check_number,
    converted,
    plain,
    shape_of,
    shown,
    type_name,
    wrap,
)
from uopc.frontend.extents import is_symbolic, settled
from uopc.frontend.graph import Array, Shape, buffer, constant, iota

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def full(shape: Any, value: Number, dtype: DTypeLike | None = None) -> Tensor:
    """One number everywhere; f32, i32 or i1 by its kind unless `dtype` says otherwise."""
    kind = "i1" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"
    name = kind if dtype is None else type_name(dtype)
    if name != "i1":
        check_number(value, name)
    return wrap(constant(value, _sizes((shape,) if _is_size(shape) else shape), name))


def _is_size(shape: Any) -> bool:
    return hasattr(shape, "__index__") or is_symbolic(shape)


def _sizes(shape: Any) -> Shape:
    """The shape of something new. Raises UopcError [bad-shape], for sizes below 0 as well."""
    sizes = shape_of(shape)
    if any(not is_symbolic(n) and n < 0 for n in sizes):
        raise bad("bad-shape", f"a new tensor has shape {list(sizes)}", "sizes are at least 0")
    return sizes


def zeros(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Zeros."""
    return wrap(constant(0, _sizes(shape), type_name(dtype)))


def ones(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Ones."""
    return wrap(constant(1, _sizes(shape), type_name(dtype)))


def index_along(size: int, axis: int, rank: int, type_: str = "i32") -> Tensor:
    """0 to size - 1 along one axis of a rank, the other sizes 1."""
    size = plain(size)
    return wrap(iota(axis, tuple(size if k == axis else 1 for k in range(rank)), type_))


def arange(
    start: Number, stop: Number | None = None, step: Number = 1, dtype: DTypeLike | None = None
) -> Tensor:
    """Numbers from start up to, without, stop; from 0 if one number is given."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise bad("wrong-argument", "a range with step 0 never ends")
    floats = any(isinstance(v, float) for v in (start, stop, step))
    name = ("f32" if floats else "i32") if dtype is None else type_name(dtype)
    if is_symbolic(stop) and step == 1:
        count = settled(stop - start)
    else:
        count = max(0, math.ceil((stop - start) / step))
    # Positions in the widest type: those of a narrow one would wrap.
    wide = "f64" if floats else "i64"
    positions = iota(0, (count,), wide)
    scaled = nodes.add(nodes.scaled(positions, step), nodes.full_like(start, positions))
    return wrap(nodes.cast(scaled, name))


def linspace(start: float, stop: float, count: int, dtype: DTypeLike = "f32") -> Tensor:
    """`count` numbers from start to stop, both included."""
    name = type_name(dtype)
    positions = iota(0, (count,), "f64")
    step = (stop - start) / max(count - 1, 1)
    scaled = nodes.add(nodes.scaled(positions, step), nodes.full_like(float(start), positions))
    return wrap(nodes.cast(scaled, name))


def eye(rows: int, columns: int | None = None, dtype: DTypeLike = "f32") -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    columns = rows if columns is None else columns
    mask = index_along(rows, 0, 2) == index_along(columns, 1, 2)
    return mask.cast(dtype)


def zeros_like(x: Tensor) -> Tensor:
    """Zeros in the shape and type of x."""
    return wrap(nodes.full_like(0, x.node))


def ones_like(x: Tensor) -> Tensor:
    """Ones in the shape and type of x."""
    return wrap(nodes.full_like(1, x.node))


def full_like(x: Tensor, value: Number) -> Tensor:
    """One number in the shape and type of x."""
    check_number(value, x.node.type)
    return wrap(nodes.full_like(value, x.node))


def empty(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """A tensor whose elements are not meant to be read: zeros."""
    return zeros(*shape, dtype=dtype)


def logspace(
    start: float, stop: float, count: int, base: float = 10.0, dtype: DTypeLike = "f32"
) -> Tensor:
    """`count` powers of a base, the exponents from start to stop, both included."""
    exponents = linspace(start, stop, count, dtype="f64")
    return (exponents * math.log2(base)).exp2().cast(dtype)


# -- random numbers --------------------------------------------------------------------------------


class Generator:
    """Draws by number: the n-th is Philox with the seed as key and n as the counter's high word."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start again at draw 0 of a seed."""
        with self._lock:
            self._seed = seed & ((1 << 64) - 1)
            self._draws = 0

    def next(self) -> np.random.Generator:
        """numpy's generator for the next draw."""
        with self._lock:
            number = self._draws
            self._draws += 1
        return np.random.Generator(np.random.Philox(key=self._seed, counter=[0, 0, 0, number]))


_generator = Generator()


def manual_seed(seed: int = 0) -> None:
    """Start the random numbers of this process again, from a whole number.

    Raises UopcError [wrong-argument].
    """
    try:
        number = operator.index(seed)  # numpy's as well, which would not hold the mask
    except TypeError:
        raise bad(
            "wrong-argument", f"the seed is {shown(seed)}", "expected a whole number"
        ) from None
    _generator.seed(number)


def drawn(draw: Callable[[np.random.Generator], Array], shape: Shape, type_: str) -> Tensor:
    """A tensor of random numbers: now, or at each call of the function being traced."""

    def make() -> Array:
        return converted(np.asarray(draw(_generator.next())), type_)

    trace = tracing.current()
    if trace is not None:
        return wrap(trace.drawn(make, shape, type_))
    return wrap(buffer(make(), type_))


def _numpy_float(type_: str) -> Any:
    return np.float64 if type_ == "f64" else np.float32


def _float_type(dtype: DTypeLike) -> str:
    name = type_name(dtype)
    if name not in ("f64", "f32", "f16", "bf16"):
        raise bad("wrong-dtype", f"real numbers are not drawn as {name}", "use randint")
    return name


def rand(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Uniform from 0 up to, without, 1 (a half type may round up to 1)."""
    sizes, name = _sizes(shape), _float_type(dtype)
    return drawn(lambda g: cast(Array, g.random(sizes, _numpy_float(name))), sizes, name)


def randn(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Normal, mean 0 and deviation 1."""
    sizes, name = _sizes(shape), _float_type(dtype)
    return drawn(lambda g: cast(Array, g.standard_normal(sizes, _numpy_float(name))), sizes, name)


def randint(*shape: Any, low: int = 0, high: int = 10, dtype: DTypeLike = "i32") -> Tensor:
    """Whole numbers from low up to, without, high."""
    sizes, name = _sizes(shape), type_name(dtype)
    if low >= high:
        raise bad("wrong-argument", f"there is no whole number from {low} up to {high}")
    check_number(low, name)
    check_number(high - 1, name)
    return drawn(lambda g: g.integers(low, high, sizes, np.int64), sizes, name)


def uniform(*shape: Any, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = "f32") -> Tensor:
    """Uniform from low up to high."""
    sizes, name = _sizes(shape), _float_type(dtype)
    return drawn(lambda g: g.uniform(low, high, sizes), sizes, name)


def normal(*shape: Any, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = "f32") -> Tensor:
    """Normal, of a mean and a deviation."""
    sizes, name = _sizes(shape), _float_type(dtype)
    return drawn(lambda g: g.normal(mean, std, sizes), sizes, name)


def randperm(count: int, dtype: DTypeLike = "i32") -> Tensor:
    """The numbers 0 to count - 1 in random order."""
    return drawn(lambda g: g.permutation(count), (count,), type_name(dtype))


def rand_like(x: Tensor) -> Tensor:
    """Uniform from 0 to 1 in the shape and type of x."""
    return rand(x.shape, dtype=x.element)


def randn_like(x: Tensor) -> Tensor:
    """Normal in the shape and type of x."""
    return randn(x.shape, dtype=x.element)


def bernoulli(x: Tensor) -> Tensor:
    """1 with the probability that each element is, else 0, in x's type."""
    return (rand(x.shape) < x).cast(x.element)


def multinomial(weights: Tensor, count: int, replacement: bool = False) -> Tensor:
    """Positions along the last axis, each drawn with a probability as its weight, in i32; every
    one at most once unless there is `replacement`."""
    if weights.ndim not in (1, 2):
        raise bad("wrong-operands", f"weights of rank {weights.ndim}", "a vector or a matrix")
    classes = weights.shape[-1]
    if not replacement:
        if count > classes:
            raise bad("wrong-argument", f"{count} of {classes} positions without replacement")
        # The largest of log(weight) + Gumbel noise is one drawn by weight; the next ones too.
        noise = -(-(rand(weights.shape) + 1e-20).log()).log()
        return (weights.cast("f32").log() + noise).topk(count)[1]
    totals = weights.cast("f32").cumsum(-1)
    draws = rand((*weights.shape[:-1], count)) * totals[..., -1:]
    return (totals.unsqueeze(-2) <= draws.unsqueeze(-1)).sum(-1).minimum(classes - 1)


def scaled_uniform(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Uniform from -1 to 1, over the root of the number of elements."""
    sizes = _sizes(shape)
    bound = 1 / math.sqrt(max(1, math.prod(sizes)))
    return uniform(sizes, low=-bound, high=bound, dtype=dtype)


def kaiming_normal(*shape: Any, a: float = 0.01, dtype: DTypeLike = "f32") -> Tensor:
    """Normal with deviation sqrt(2 / ((1 + a*a) fan in))."""
    sizes = _sizes(shape)
    deviation = math.sqrt(2 / (1 + a * a) / max(1, math.prod(sizes[1:])))
    return normal(sizes, std=deviation, dtype=dtype)


def glorot_uniform(*shape: Any, dtype: DTypeLike = "f32") -> Tensor:
    """Uniform within sqrt(6 / (fan in + fan out)); the first axis is out, the others are in."""
    sizes = _sizes(shape)
    bound = math.sqrt(6 / max(1, sizes[0] + math.prod(sizes[1:])))
    return uniform(sizes, low=-bound, high=bound, dtype=dtype)


def kaiming_uniform(*shape: Any, a: float = 0.01, dtype: DTypeLike = "f32") -> Tensor:
    """Uniform within sqrt(6 / ((1 + a*a) fan in))."""
    sizes = _sizes(shape)
    bound = math.sqrt(6 / (1 + a * a) / max(1, math.prod(sizes[1:])))
    return uniform(sizes, low=-bound, high=bound, dtype=dtype)
