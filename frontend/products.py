"""Products of matrices and tensors: matmul, dot, einsum, linear, attention.

A product is movement ops, a multiplication and a sum, as everywhere in uopc; half types are
summed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uopc.frontend import nodes
from uopc.frontend.core import (
    Number,
    Operand,
    bad,
    broadcast_shapes,
    in_single,
    meet_types,
    one_axis,
    tensor,
    wrap,
)
from uopc.frontend.elementwise import where
from uopc.frontend.graph import Node

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def matmul(x: Tensor, other: Operand) -> Tensor:
    """numpy's `@`: matrices in the last two axes, the others broadcast; vectors as rows or
    columns."""
    b = tensor(other)
    if x.ndim == 0 or b.ndim == 0:
        raise bad("wrong-operands", "a product of matrices needs axes", "use * for scalars")
    type_ = meet_types(x, b)
    left, right = nodes.cast(x.node, type_), nodes.cast(b.node, type_)
    if x.ndim == 1:
        left = nodes.reshape(left, (1, *left.shape))
    if b.ndim == 1:
        right = nodes.reshape(right, (*right.shape, 1))
    if left.shape[-1] != right.shape[-2]:
        raise bad(
            "wrong-operands",
            f"a product of shapes {list(x.shape)} and {list(b.shape)}: {left.shape[-1]} columns "
            f"meet {right.shape[-2]} rows",
            "the sizes must be equal; .mT exchanges the last two axes",
        )
    result = _product(left, right)
    shape = result.shape
    if x.ndim == 1:
        shape = (*shape[:-2], shape[-1])
    if b.ndim == 1:
        shape = shape[:-1]
    return wrap(nodes.reshape(result, shape))


def _product(left: Node, right: Node) -> Node:
    (m, k), n = left.shape[-2:], right.shape[-1]
    lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    order = (*range(len(right.shape) - 2), len(right.shape) - 1, len(right.shape) - 2)
    turned = nodes.permute(right, order)
    shape = (*lead, m, n, k)
    a = nodes.broadcast(nodes.reshape(left, (*left.shape[:-1], 1, k)), shape)
    b = nodes.broadcast(nodes.reshape(turned, (*turned.shape[:-2], 1, n, k)), shape)
    kind = "or" if left.type == "i1" else "add"
    return nodes.reduce(kind, nodes.mul(a, b), (len(shape) - 1,))


def dot(x: Tensor, other: Operand) -> Tensor:
    """numpy.dot for at most two axes on either side; the same as `@` there, `*` with a scalar."""
    b = tensor(other)
    return x * b if x.ndim == 0 or b.ndim == 0 else matmul(x, b)


def outer(x: Tensor, other: Operand) -> Tensor:
    """Each element of one vector times each of another."""
    return x.flatten().unsqueeze(1) * tensor(other).flatten().unsqueeze(0)


def vdot(x: Tensor, other: Operand) -> Tensor:
    """The product of all elements with all others, added up."""
    return matmul(x.flatten(), tensor(other).flatten())


def tensordot(x: Tensor, other: Operand, axes: int | Sequence[Any] = 2) -> Tensor:
    """numpy.tensordot: summed over the last axes of x and the first of other, so many; or over two
    lists of axes."""
    b = tensor(other)
    if isinstance(axes, int):
        first, second = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        first, second = (
            [one_axis(a, rank) for a in ([given] if isinstance(given, int) else given)]
            for given, rank in zip(axes, (x.ndim, b.ndim), strict=True)
        )
    if len(first) != len(second) or min([*first, 0]) < 0 or len(second) > b.ndim:
        raise bad("wrong-argument", f"tensordot over axes {axes} of ranks {x.ndim} and {b.ndim}")
    kept = [k for k in range(x.ndim) if k not in first]
    others = [k for k in range(b.ndim) if k not in second]
    inner = math.prod(x.shape[k] for k in first)
    left = x.permute((*kept, *first)).reshape((math.prod(x.shape[k] for k in kept), inner))
    right = b.permute((*second, *others))
    right = right.reshape((math.prod(b.shape[k] for k in second), -1 if others else 1))
    shape = (*(x.shape[k] for k in kept), *(b.shape[k] for k in others))
    return matmul(left, right).reshape(shape)


def kron(x: Tensor, other: Operand) -> Tensor:
    """The Kronecker product: each element of x times the whole of other."""
    b = tensor(other)
    rank = max(x.ndim, b.ndim)
    first, second = ((1,) * (rank - t.ndim) + t.shape for t in (x, b))
    a = x.reshape(tuple(n for size in first for n in (size, 1)))
    c = b.reshape(tuple(n for size in second for n in (1, size)))
    return (a * c).reshape(tuple(m * n for m, n in zip(first, second, strict=True)))


def cross(x: Tensor, other: Operand, axis: int = -1) -> Tensor:
    """The vector product along an axis of size 3."""
    b = tensor(other)
    at = one_axis(axis, x.ndim)
    if x.shape[at] != 3 or b.shape[axis] != 3:
        raise bad("wrong-operands", f"a vector product along an axis of size {x.shape[at]}")
    up, down = [1, 2, 0], [2, 0, 1]
    return x.take(up, axis) * b.take(down, axis) - x.take(down, axis) * b.take(up, axis)


def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of the last two axes."""
    return x.diagonal().sum(-1)


def addmm(x: Operand, a: Tensor, b: Operand, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """beta * x + alpha * (a @ b), also for batches."""
    return tensor(x) * beta + matmul(a, b) * alpha


def newton_schulz(x: Tensor, steps: int = 5, eps: float = 1e-7) -> Tensor:
    """An approximately orthogonal matrix close to x, by the quintic iteration of the optimizer
    Muon: X <- a X + (b A + c A A) X with A = X X^T, coefficients 3.4445, -4.7750, 2.0315."""
    turned = x.shape[-2] > x.shape[-1]
    y = x.mT if turned else x
    y = y / (y.norm(2, (-2, -1), keepdim=True) + eps)
    for _ in range(steps):
        a = matmul(y, y.mT)
        y = y * 3.4445 + matmul(a * -4.7750 + matmul(a, a) * 2.0315, y)
    return y.mT if turned else y


def linear(x: Tensor, weight: Operand, bias: Operand | None = None) -> Tensor:
    """x @ weight.mT + bias, weight as out by in features."""
    result = matmul(x, tensor(weight).mT)
    return result if bias is None else result + bias


def einsum(formula: str, *values: Operand) -> Tensor:
    """numpy's einsum: `bij,bjk->bik`, with `...` and repeated letters. Operands are multiplied
    from left to right, and summed over a letter once no later operand has it."""
    parts = [tensor(v) for v in values]
    terms, result = _parse_formula(formula, parts)
    sizes: dict[str, int] = {}
    prepared: list[tuple[str, Tensor]] = []
    for term, part in zip(terms, parts, strict=True):
        for letter, size in zip(term, part.shape, strict=True):
            if size != 1 or letter not in sizes:
                if sizes.get(letter, 1) not in (1, size):
                    raise bad(
                        "wrong-operands",
                        f"einsum: '{letter}' has sizes {sizes[letter]} and {size}",
                    )
                sizes[letter] = size
        prepared.append(_without_repeats(term, part))
    letters, value = prepared[0]
    for k, (more, other) in enumerate(prepared[1:], 1):
        later = set("".join(t for t, _ in prepared[k + 1 :])) | set(result)
        letters, value = _contracted(letters, value, more, other, later)
    extra = [k for k, letter in enumerate(letters) if letter not in result]
    value = value.sum(tuple(extra), dtype=value.dtype) if extra else value
    letters = "".join(letter for letter in letters if letter in result)
    return value.permute(tuple(letters.index(letter) for letter in result))


def _parse_formula(formula: str, parts: list[Tensor]) -> tuple[list[str], str]:
    text = formula.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(parts):
        raise bad("wrong-argument", f"einsum {formula!r} has {len(terms)} terms for {len(parts)}")
    spare = [chr(c) for c in range(0x391, 0x391 + 64)]
    widest = 0
    for k, (term, part) in enumerate(zip(terms, parts, strict=True)):
        if "..." in term:
            count = part.ndim - len(term) + 3
            widest = max(widest, count)
            terms[k] = term.replace("...", "".join(spare[64 - count :]) if count > 0 else "")
        if len(terms[k]) != part.ndim:
            raise bad("wrong-argument", f"einsum: '{term}' for a tensor of rank {part.ndim}")
    dots = "".join(spare[64 - widest :]) if widest else ""
    if arrow:
        result = result.replace("...", dots)
    else:
        every = "".join(terms)
        named = sorted(c for c in set(every) - set(dots) if every.count(c) == 1)
        result = dots + "".join(named)
    unknown = set(result) - set("".join(terms))
    if unknown or len(set(result)) != len(result):
        raise bad(
            "wrong-argument", f"einsum: the result '{result}' has letters of no operand, twice"
        )
    return terms, result


def _without_repeats(term: str, part: Tensor) -> tuple[str, Tensor]:
    """A letter that an operand has twice stands for its diagonal."""
    for letter in term:
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            order = [k for k in range(part.ndim) if k not in (first, second)]
            part = part.permute((*order, first, second)).diagonal()
            term = "".join(term[k] for k in order) + letter
    return term, part


def _contracted(
    a_letters: str, a: Tensor, b_letters: str, b: Tensor, later: set[str]
) -> tuple[str, Tensor]:
    union = a_letters + "".join(c for c in b_letters if c not in a_letters)
    kept = [c for c in union if c in later]
    gone = [c for c in union if c not in later]
    order = kept + gone
    product = _spread(a_letters, a, order) * _spread(b_letters, b, order)
    axes = tuple(range(len(kept), len(order)))
    return "".join(kept), product.sum(axes, dtype=product.dtype) if axes else product


def _spread(letters: str, value: Tensor, order: list[str]) -> Tensor:
    present = [c for c in order if c in letters]
    moved = value.permute(tuple(letters.index(c) for c in present))
    sizes = dict(zip(present, moved.shape, strict=True))
    return moved.reshape(tuple(sizes.get(c, 1) for c in order))


@in_single
def scaled_dot_product_attention(
    query: Tensor,
    key: Operand,
    value: Operand,
    mask: Operand | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T * scale + mask) value, over the last two axes; scale is 1/sqrt(d).

    With `enable_gqa` several heads of the query (axis -3) share one of key and value.

    A mask of truth values says what may be seen, one of numbers is added. A row that may see
    nothing gives 0, and passes no gradient.
    """
    k, v = tensor(key), tensor(value)
    if enable_gqa:
        heads = query.shape[-3]
        if heads % k.shape[-3] or heads % v.shape[-3]:
            raise bad("wrong-operands", f"{heads} heads of queries share {k.shape[-3]} of keys")
        k, v = (t.repeat_interleave(heads // t.shape[-3], -3) for t in (k, v))
    scores = matmul(query, k.mT) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        rows, columns = scores.shape[-2:]
        from uopc.frontend.creation import index_along

        seen = index_along(columns, 1, 2) <= index_along(rows, 0, 2)
        scores = where(seen, scores, -math.inf)
    if mask is not None:
        m = tensor(mask)
        scores = where(m, scores, -math.inf) if m.element == "i1" else scores + m
    top = scores.max(-1, keepdim=True).detach()
    e = (scores - where(top == -math.inf, 0.0, top)).exp()
    total = e.sum(-1, keepdim=True)
    weights = e / where(total == 0.0, 1.0, total)
    return matmul(weights.dropout(dropout) if dropout else weights, v)
