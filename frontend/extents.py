"""Sizes that are not known while a function is traced: expressions over bounded symbols.

    n = uopc.size("n", 1, 64)
    step = uopc.jit(f, sizes=[(n, 8)])          # one plan for 1 to 64 rows

Inside of such a function a tensor's shape holds expressions (dialects/index_expr.py) where sizes
are symbolic. They add, multiply and divide as ints do; where the functions of tensors compare them
or need their value, they ask here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, at_least, same, symbol
from uopc.dialects.sizes import RESERVED_NAMES
from uopc.dialects.sizes import size as settled_size


def size(name: str, lower: int, upper: int) -> Expr:
    """A size that each call of a jitted function has its own value of, `lower` to `upper`.

    Raises UopcError [bad-option] for a name that is none, and for bounds that hold no size.
    """
    if not name.isidentifier() or name in RESERVED_NAMES:
        raise UopcError("bad-option", f"a size is called {name!r}", hint="expected a plain name")
    if not 0 <= lower <= upper:
        raise UopcError(
            "bad-option", f"size {name} is {lower} to {upper}", hint="0 <= lower <= upper"
        )
    return symbol(name, lower, upper)


def is_symbolic(value: object) -> bool:
    """Whether a size is an expression."""
    return isinstance(value, Expr)


def any_symbolic(shape: Iterable[object]) -> bool:
    """Whether one of some sizes is an expression."""
    return any(map(is_symbolic, shape))


def settled(value: Any) -> Any:
    """A size, as an int where it is one for all values of its symbols."""
    return settled_size(value)


def count_of(shape: Sequence[Any]) -> Any:
    """The number of elements."""
    return settled(math.prod(shape))


def are_equal(a: Any, b: Any) -> bool:
    """Whether two sizes are proved equal."""
    return bool(same(a, b)) if is_symbolic(a) or is_symbolic(b) else bool(a == b)


def is_at_least(a: Any, b: Any) -> bool:
    """Whether a >= b is proved for all values of the symbols."""
    return at_least(a, b) is True


def slice_bounds(begin: Any, end: Any, step: Any, length: Any) -> tuple[Any, Any]:
    """Where a slice of step 1 begins and ends, of an axis or with bounds of symbolic size.

    Raises UopcError [bad-index] where it is not the same for all values of the symbols.
    """
    if step not in (None, 1):
        raise UopcError("bad-index", f"step {step} along an axis of symbolic size {length}")

    def place(value: Any, default: Any) -> Any:
        if value is None:
            return default
        return value if is_symbolic(value) or value >= 0 else settled(length + value)

    first, last = place(begin, 0), place(end, length)
    if is_at_least(first, 0) and is_at_least(last, first) and is_at_least(length, last):
        return first, last
    raise UopcError(
        "bad-index",
        f"a slice from {first} to {last} of an axis of size {length} is not within it for all "
        "values of its symbols",
        hint="give the size a larger lower bound",
    )


def position_of(position: Any, length: Any) -> Any:
    """A position from the front along an axis of symbolic size. Raises UopcError [bad-index]."""
    first = position if is_symbolic(position) or position >= 0 else settled(length + position)
    if is_at_least(first, 0) and is_at_least(length, first + 1):
        return first
    raise UopcError(
        "bad-index",
        f"position {position} is outside of an axis of size {length} for some of its values",
        hint="give the size a larger lower bound",
    )
