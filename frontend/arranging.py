"""More ways to arrange elements: cut, joined, stacked and turned, in numpy's, torch's and einops'
words. All of it is made of the functions in movement.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uopc.frontend.core import Operand, bad, one_axis, plain, tensor, wrap
from uopc.frontend.movement import (
    cat,
    expand,
    flip,
    pad,
    permute,
    reshape,
    shrink,
    split,
    transpose,
)
from uopc.frontend.windows import windows

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def narrow(x: Tensor, axis: int, start: int, length: int) -> Tensor:
    """`length` elements of an axis from `start` on, which may count from the end."""
    at = one_axis(axis, x.ndim)
    size = x.shape[at]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise bad(
            "wrong-argument", f"{length} elements from {start} on of axis {at} of size {size}"
        )
    return shrink(x, [(first, first + length) if k == at else None for k in range(x.ndim)])


def select(x: Tensor, axis: int, index: int) -> Tensor:
    """The part of an axis at one position, without the axis."""
    at = one_axis(axis, x.ndim)
    return x[(*[slice(None)] * at, index)]


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Expanded to another tensor's shape."""
    return expand(x, other.shape)


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """Reshaped to another tensor's shape."""
    return reshape(x, other.shape)


def pad_to(x: Tensor, *shape: Any, value: float = 0) -> Tensor:
    """Padded at the ends of its axes to a shape; None keeps a size."""
    sizes: Any = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    wanted = [n if w is None else int(w) for n, w in zip(x.shape, sizes, strict=True)]
    if any(w < n for n, w in zip(x.shape, wanted, strict=True)):
        raise bad("bad-shape", f"shape {list(x.shape)} is not padded to {wanted}, which is smaller")
    return pad(x, [(0, w - n) for n, w in zip(x.shape, wanted, strict=True)], value=value)


def shrink_to(x: Tensor, *shape: Any) -> Tensor:
    """The first elements along its axes, as many as a shape says; None keeps a size."""
    sizes: Any = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
    return shrink(x, [None if w is None else (0, int(w)) for w in sizes])


def rot90(x: Tensor, times: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by 90 degrees, from the first towards the second of two axes."""
    a, b = (one_axis(k, x.ndim) for k in axes)
    if a == b:
        raise bad("bad-axis", f"axes {a} and {b} are one")
    match times % 4:
        case 1:
            return transpose(flip(x, b), a, b)
        case 2:
            return flip(x, (a, b))
        case 3:
            return flip(transpose(x, a, b), b)
        case _:
            return x


def fliplr(x: Tensor) -> Tensor:
    """The second axis reversed."""
    return flip(x, 1)


def flipud(x: Tensor) -> Tensor:
    """The first axis reversed."""
    return flip(x, 0)


def _at_least(x: Tensor, rank: int) -> Tensor:
    if x.ndim >= rank:
        return x
    if rank == 3:  # numpy's: a vector becomes (1, n, 1), a matrix (m, n, 1)
        return reshape(_at_least(x, 2), (*_at_least(x, 2).shape, 1))
    return reshape(x, (*[1] * (rank - x.ndim), *x.shape))


def atleast_1d(x: Tensor) -> Tensor:
    """A scalar as a vector; others as they are."""
    return _at_least(x, 1)


def atleast_2d(x: Tensor) -> Tensor:
    """With axes of size 1 in front, up to rank 2."""
    return _at_least(x, 2)


def atleast_3d(x: Tensor) -> Tensor:
    """Up to rank 3, as numpy does it: (n) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _at_least(x, 3)


def vstack(tensors: Sequence[Operand]) -> Tensor:
    """One on top of the other: along the first axis, vectors as rows."""
    return cat([atleast_2d(tensor(t)) for t in tensors], 0)


def hstack(tensors: Sequence[Operand]) -> Tensor:
    """Side by side: along the second axis, vectors along their only one."""
    parts = [atleast_1d(tensor(t)) for t in tensors]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


def dstack(tensors: Sequence[Operand]) -> Tensor:
    """One behind the other: along the third axis."""
    return cat([atleast_3d(tensor(t)) for t in tensors], 2)


def column_stack(tensors: Sequence[Operand]) -> Tensor:
    """Vectors as the columns of a matrix, matrices side by side."""
    parts = [tensor(t) for t in tensors]
    return cat([reshape(p, (-1, 1)) if p.ndim < 2 else p for p in parts], 1)


def tensor_split(x: Tensor, parts: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """numpy.array_split: so many pieces, the first ones longer by one if need be, or cut at
    positions."""
    at = one_axis(axis, x.ndim)
    size, parts = x.shape[at], plain(parts)
    if isinstance(parts, int):
        if parts < 1:
            raise bad("wrong-argument", f"{parts} pieces: expected at least 1")
        each, more = divmod(size, parts)
        return split(x, [each + (k < more) for k in range(parts)], at)
    cuts = [0, *parts, size]
    return [x[(*[slice(None)] * at, slice(a, b))] for a, b in itertools.pairwise(cuts)]


def unfold(x: Tensor, axis: int, size: int, step: int = 1) -> Tensor:
    """torch.Tensor.unfold: windows along an axis, their elements in a new last axis."""
    at = one_axis(axis, x.ndim)
    last = x.moveaxis(at, -1)
    return windows(last, (size,), step).moveaxis(-2, at)


def diff(x: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbours along an axis, n times."""
    at = one_axis(axis, x.ndim)
    for _ in range(n):
        size = x.shape[at]
        x = narrow(x, at, min(1, size), max(size - 1, 0)) - narrow(x, at, 0, max(size - 1, 0))
    return x


def block_diag(*tensors: Operand) -> Tensor:
    """Matrices along the diagonal of one, zeros elsewhere."""
    parts = [atleast_2d(tensor(t)) for t in tensors]
    width = sum(p.shape[1] for p in parts)
    rows: list[Operand] = []
    before = 0
    for part in parts:
        rows.append(pad(part, ((0, 0), (before, width - before - part.shape[1]))))
        before += part.shape[1]
    return cat(rows, 0)


# -- einops ----------------------------------------------------------------------------------------


def rearrange(x: Tensor, formula: str, **sizes: int) -> Tensor:
    """einops.rearrange: `b (h w) c -> b c h w` with `h=2`. Axes have names; those in parentheses
    are one axis of x, or of the result; `1` is an axis of size 1 and `...` the axes without name.
    """
    left, arrow, right = formula.partition("->")
    if not arrow:
        raise bad("wrong-argument", f"rearrange {formula!r}", "expected 'axes -> axes'")
    before, after = _groups(left, formula), _groups(right, formula)
    if ["..."] in before:
        dots = x.ndim - len(before) + 1
        before, after = (_with_dots(groups, dots) for groups in (before, after))
    if len(before) != x.ndim:
        raise bad("wrong-argument", f"rearrange {formula!r} of a tensor of rank {x.ndim}")
    names = [name for group in before for name in group]
    if sorted(names) != sorted(n for group in after for n in group) or len(set(names)) < len(names):
        raise bad("wrong-argument", f"rearrange {formula!r}: each name stands once on either side")
    known = dict(sizes)
    for group, size in zip(before, x.shape, strict=True):
        _fill_sizes(group, size, known, formula)
    wide = reshape(x, tuple(known[name] for name in names))
    moved = permute(wide, tuple(names.index(n) for group in after for n in group))
    return reshape(moved, tuple(math.prod(known[n] for n in group) for group in after))


def _groups(text: str, formula: str) -> list[list[str]]:
    groups: list[list[str]] = []
    inside = False
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word in ("(", ")"):
            if inside == (word == "("):
                raise bad("wrong-argument", f"rearrange {formula!r}: parentheses do not match")
            inside = word == "("
            if inside:
                groups.append([])
        elif inside:
            groups[-1] += [] if word == "1" else [word]
        else:
            groups.append([] if word == "1" else [word])
    if inside:
        raise bad("wrong-argument", f"rearrange {formula!r}: parentheses do not match")
    return groups


def _with_dots(groups: list[list[str]], count: int) -> list[list[str]]:
    names = [f".{k}" for k in range(count)]
    found: list[list[str]] = []
    for group in groups:
        if group == ["..."]:
            found += [[name] for name in names]
        else:
            found.append([n for word in group for n in (names if word == "..." else [word])])
    return found


def _fill_sizes(group: list[str], size: int, known: dict[str, int], formula: str) -> None:
    unknown = [name for name in group if name not in known]
    rest = math.prod(known[name] for name in group if name in known)
    if len(unknown) == 1 and rest and size % rest == 0:
        known[unknown[0]] = size // rest
    elif unknown or rest != size:
        raise bad(
            "wrong-argument",
            f"rearrange {formula!r}: an axis of size {size} as ({' '.join(group)})",
            "give the sizes that are not clear: h=2",
        )


def tril_indices(rows: int, columns: int, offset: int = 0) -> Tensor:
    """The positions of the lower triangle of a matrix, as a 2 by n tensor, row by row."""
    return _triangle_indices(rows, columns, offset, True)


def triu_indices(rows: int, columns: int, offset: int = 0) -> Tensor:
    """The positions of the upper triangle of a matrix, as a 2 by n tensor, row by row."""
    return _triangle_indices(rows, columns, offset, False)


def _triangle_indices(rows: int, columns: int, offset: int, lower: bool) -> Tensor:
    import numpy as np

    from uopc.frontend.core import array_node

    found = (np.tril_indices if lower else np.triu_indices)(rows, offset, columns)
    return wrap(array_node(np.stack(found), "i32"))
