"""uopc.jit with symbolic sizes: one trace and one plan for all lengths within bounds.

    n = uopc.size("n", 0, 64)

    @uopc.jit(sizes=[None, (n, 16), (n, 16)])
    def decode(x, keys, values): ...

Each call has its own value, which is held against the bounds, against the other arguments, and
against sizes that are expressions (n + 1). A size that stands for a whole argument is a Python int,
which is a size inside:

    @uopc.jit(sizes=[None, n])
    def sum_of_first(x, n): return x[:, :n].sum(1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, SymbolVar
from uopc.frontend import tracing
from uopc.frontend.extents import is_symbolic
from uopc.frontend.jit import JitFunction, Replay
from uopc.frontend.jit_arguments import flatten, key_of
from uopc.frontend.jit_trace import Tracer
from uopc.frontend.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


class SizedFunction(JitFunction[P, R]):
    """A jitted function of which some arguments have symbolic sizes."""

    def __init__(self, function: Callable[P, R], sizes: Sequence[Any]) -> None:
        super().__init__(function)
        self._sizes: list[Any] = [
            given if given is None or is_symbolic(given) else tuple(given) for given in sizes
        ]
        _check_symbols(self._sizes)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if tracing.current() is not None:
            return self._function(*args, **kwargs)
        spec, leaves = flatten((args, kwargs) if kwargs else args)
        shapes = self._shapes(cast("tuple[Any, ...]", args))
        values = self._values(shapes, leaves)
        key = key_of(spec, leaves, self._plain, shapes)
        replay = self._replays.get(key)
        if replay is None or not replay.verified or not replay.holds():
            replay = self._traced(key, leaves, args, kwargs, shapes)
        return replay.run(leaves, values)

    def _shapes(self, args: tuple[Any, ...]) -> dict[int, Any]:
        """The shapes with symbolic sizes, by the places of the leaves that have them; of an int
        its size."""
        if len(args) < len(self._sizes):
            raise UopcError(
                "wrong-argument",
                f"{self._name} has sizes for {len(self._sizes)} positional arguments, and is "
                f"called with {len(args)}",
            )
        found: dict[int, Any] = {}
        place = 0
        for number, value in enumerate(args):
            sizes = self._sizes[number] if number < len(self._sizes) else None
            if is_symbolic(sizes):
                if type(value) is not int:
                    raise UopcError(
                        "wrong-argument",
                        f"argument {number} of {self._name} is the size {sizes}, and a "
                        f"{type(value).__name__} in this call",
                        hint="expected an int",
                    )
                found[place] = sizes
            elif sizes is not None:
                if not isinstance(value, Tensor | np.ndarray) or value.ndim != len(sizes):
                    raise UopcError(
                        "wrong-argument",
                        f"argument {number} of {self._name} has sizes ({_listed(sizes)}), which "
                        f"is no form of {_form(value)}",
                        hint="expected a tensor with one size, or None, for each axis",
                    )
                actual = cast("Tensor", value).shape
                found[place] = tuple(
                    actual[k] if size is None else size for k, size in enumerate(sizes)
                )
            place += len(flatten(value)[1])
        return found

    def _values(self, shapes: dict[int, Any], leaves: list[Any]) -> dict[str, int]:
        """What the symbols are in this call. Raises UopcError [size-out-of-bounds],
        [size-mismatch], [missing-size], [wrong-shape]."""
        values: dict[str, int] = {}
        for place, shape in shapes.items():
            whole = is_symbolic(shape)
            actual = (leaves[place],) if whole else leaves[place].shape
            for size, value in zip((shape,) if whole else shape, actual, strict=True):
                symbol = _symbol(size)
                if symbol is None:
                    continue
                if not symbol.lower <= value <= symbol.upper:
                    raise UopcError(
                        "size-out-of-bounds",
                        f"size `{symbol.name}` of {self._name} is {value}; it may be "
                        f"{symbol.lower} to {symbol.upper}",
                        hint="the bounds are those of uopc.size",
                    )
                if values.setdefault(symbol.name, value) != value:
                    raise UopcError(
                        "size-mismatch",
                        f"size `{symbol.name}` of {self._name} is {values[symbol.name]} and "
                        f"{value} in one call",
                        hint="one symbol stands for one value in a call",
                    )
        for place, shape in shapes.items():
            if is_symbolic(shape):
                continue
            expected = tuple(
                cast("Expr", n).evaluate_named(values) if is_symbolic(n) else n for n in shape
            )
            if expected != leaves[place].shape:
                raise UopcError(
                    "wrong-shape",
                    f"an argument of {self._name} has shape {list(leaves[place].shape)}; expected "
                    f"{list(expected)}, which is ({_listed(shape)})",
                )
        return values

    def _trace(self, tracer: Tracer, args: Any, kwargs: Any) -> Replay:
        try:
            return super()._trace(tracer, args, kwargs)
        except (TypeError, ValueError) as error:
            if "Expr" not in str(error) and "index expression" not in str(error):
                raise
            raise UopcError(
                "unsupported-op",
                f"{self._name} needs a symbolic size as a plain number: {error}",
                hint="sort, running totals, convolutions and loops of Python need known sizes; "
                "leave that axis None",
            ) from error


def _check_symbols(sizes: Sequence[Any]) -> None:
    """Check that each symbol is an axis by itself somewhere, where its value comes from."""
    given: list[Any] = []
    for each in sizes:
        given += (each,) if each is None or is_symbolic(each) else each
    for n in given:
        if n is not None and type(n) is not int and not is_symbolic(n):
            raise UopcError(
                "bad-option", f"sizes has {n!r}", hint="expected uopc.size(…), numbers and None"
            )
    bare = {symbol for n in given if (symbol := _symbol(n)) is not None}
    names = [symbol.name for symbol in bare]
    used = {leaf for n in given if is_symbolic(n) for leaf in cast("Expr", n).leaves}
    missing = sorted(leaf.name for leaf in used - bare)
    if missing or len(set(names)) < len(names):
        what = f"{missing[0]} is no axis by itself" if missing else "one name has two bounds"
        raise UopcError(
            "bad-option",
            f"sizes: {what}",
            hint="each symbol must be an argument, or one's axis, by itself",
        )


def _symbol(size: Any) -> SymbolVar | None:
    leaf = size.leaf if isinstance(size, Expr) else None
    return leaf if isinstance(leaf, SymbolVar) else None


def _listed(sizes: Sequence[Any]) -> str:
    return ", ".join(map(str, sizes))


def _form(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" if shape is None else f"shape {list(shape)}"
