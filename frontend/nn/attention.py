"""Multi-head attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math

from uopc.frontend.core import DTypeLike, Operand, bad, real, tensor, whole
from uopc.frontend.nn.linear import Linear, constant, uniform
from uopc.frontend.nn.module import Module
from uopc.frontend.tensor import Tensor


class MultiHeadAttention(Module):
    """softmax(q k^T / sqrt(head size) + mask) v in each head, projected in and out.

    query (…, length, size), key and value (…, others, size), the same as the query if left out;
    the result is (…, length, size). Batch axes come first.

    A mask of truth values says what may be SEEN, as in scaled_dot_product_attention (torch's
    module of this name means the opposite); one of numbers is added to the scores. It has shape
    (length, others), or more axes that broadcast to (…, heads, length, others).
    `key_mask` (…, others) says which keys may be seen by any query. With `is_causal` position k
    sees positions up to k. A query that sees nothing gets the output's bias alone.

    Parameters have torch's names and shapes: in_proj_weight (3 size, size), in_proj_bias (3 size),
    out_proj.weight (size, size), out_proj.bias (size).
    """

    def __init__(
        self,
        size: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        size, heads = whole("size", size, 1), whole("heads", heads, 1)
        if size % heads:
            raise bad("wrong-argument", f"size {size} in {heads} heads", "a multiple is needed")
        self.size = size
        self.heads = heads
        self.dropout = real("dropout", dropout, 0, 1)
        bound = math.sqrt(6 / (4 * size))  # Glorot's, of the three projections as one matrix
        self.in_proj_weight = uniform((3 * size, size), bound, dtype)
        self.in_proj_bias = constant((3 * size,), 0.0, dtype) if bias else None
        self.out_proj = Linear(size, size, bias, dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias = constant((size,), 0.0, dtype)

    def __call__(
        self,
        query: Operand,
        key: Operand | None = None,
        value: Operand | None = None,
        mask: Operand | None = None,
        key_mask: Operand | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The attended values; raises UopcError [wrong-operands] for sizes that do not fit."""
        # The same object stays the same tensor: three projections of one are one product.
        q_in = tensor(query)
        k_in = q_in if key is None or key is query else tensor(key)
        v_in = k_in if value is None or value is key else tensor(value)
        for name, x in (("query", q_in), ("key", k_in), ("value", v_in)):
            if x.ndim < 2 or x.shape[-1] != self.size:
                raise bad(
                    "wrong-operands",
                    f"the {name} has shape {list(x.shape)}, expected (…, length, {self.size})",
                )
        if q_in is k_in and k_in is v_in:
            q, k, v = q_in.linear(self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            weights = self.in_proj_weight.chunk(3, 0)
            biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3, 0)
            q, k, v = (
                x.linear(w, b) for x, w, b in zip((q_in, k_in, v_in), weights, biases, strict=True)
            )
        seen = None if mask is None else tensor(mask)
        if key_mask is not None:
            known = tensor(key_mask)
            known = known.reshape((*known.shape[:-1], 1, 1, known.shape[-1]))
            seen = _both(seen, known)
        attended = self._split(q).scaled_dot_product_attention(
            self._split(k),
            self._split(v),
            seen,
            self.dropout if self.training else 0.0,
            is_causal,
        )
        return self.out_proj(attended.transpose(-3, -2).flatten(-2))

    def _split(self, x: Tensor) -> Tensor:
        """(…, length, size) to (…, heads, length, head size)."""
        wide = x.reshape((*x.shape[:-1], self.heads, self.size // self.heads))
        return wide.transpose(-3, -2)


def _both(mask: Tensor | None, known: Tensor) -> Tensor:
    if mask is None:
        return known
    if mask.element == "i1":
        return mask.logical_and(known)
    return known.where(mask, -math.inf)
