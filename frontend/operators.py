"""Operators with the tensor on the right, in-place ones, and assignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from uopc.frontend import elementwise, indexing, products
from uopc.frontend.core import Operand, bad, tensor

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def assign(x: Tensor, value: Operand) -> Tensor:
    """Take another value, in x's shape and type. What was built from the old one keeps it.

    Of a tensor with requires_grad the new value is a leaf again. Raises UopcError [bad-shape].
    """
    new = tensor(value).cast(x.element)
    x.become((new if new.shape == x.shape else new.expand(x.shape)).node)
    return x


def setitem(x: Tensor, key: Any, value: Operand) -> None:
    """`x[key] = value`, as numpy with a copy first."""
    assign(x, indexing.with_item(x, key, value))


def iadd(x: Tensor, other: Operand) -> Tensor:
    """`x += other`, in x's type."""
    return assign(x, x + other)


def isub(x: Tensor, other: Operand) -> Tensor:
    """`x -= other`, in x's type."""
    return assign(x, x - other)


def imul(x: Tensor, other: Operand) -> Tensor:
    """`x *= other`, in x's type."""
    return assign(x, x * other)


def itruediv(x: Tensor, other: Operand) -> Tensor:
    """`x /= other`, in x's type."""
    return assign(x, x / other)


def ifloordiv(x: Tensor, other: Operand) -> Tensor:
    """`x //= other`, in x's type."""
    return assign(x, x // other)


def imod(x: Tensor, other: Operand) -> Tensor:
    """`x %= other`, in x's type."""
    return assign(x, x % other)


def ipow(x: Tensor, other: Operand) -> Tensor:
    """`x **= other`, in x's type."""
    return assign(x, x**other)


def imatmul(x: Tensor, other: Operand) -> Tensor:
    """`x @= other`, in x's type."""
    return assign(x, x @ other)


def iand(x: Tensor, other: Operand) -> Tensor:
    """`x &= other`, in x's type."""
    return assign(x, x & other)


def ior(x: Tensor, other: Operand) -> Tensor:
    """`x |= other`, in x's type."""
    return assign(x, x | other)


def ixor(x: Tensor, other: Operand) -> Tensor:
    """`x ^= other`, in x's type."""
    return assign(x, x ^ other)


def ilshift(x: Tensor, other: Operand) -> Tensor:
    """`x <<= other`, in x's type."""
    return assign(x, x << other)


def irshift(x: Tensor, other: Operand) -> Tensor:
    """`x >>= other`, in x's type."""
    return assign(x, x >> other)


def radd(x: Tensor, other: Operand) -> Tensor:
    """`other + x`."""
    return elementwise.add(other, x)


def rsub(x: Tensor, other: Operand) -> Tensor:
    """`other - x`."""
    return elementwise.sub(other, x)


def rmul(x: Tensor, other: Operand) -> Tensor:
    """`other * x`."""
    return elementwise.mul(other, x)


def rtruediv(x: Tensor, other: Operand) -> Tensor:
    """`other / x`."""
    return elementwise.div(other, x)


def rfloordiv(x: Tensor, other: Operand) -> Tensor:
    """`other // x`."""
    return elementwise.floordiv(other, x)


def rmod(x: Tensor, other: Operand) -> Tensor:
    """`other % x`."""
    return elementwise.mod(other, x)


def rpow(x: Tensor, other: Operand) -> Tensor:
    """`other ** x`."""
    return elementwise.pow(other, x)


def rand(x: Tensor, other: Operand) -> Tensor:
    """`other & x`."""
    return elementwise.bitwise_and(other, x)


def ror(x: Tensor, other: Operand) -> Tensor:
    """`other | x`."""
    return elementwise.bitwise_or(other, x)


def rxor(x: Tensor, other: Operand) -> Tensor:
    """`other ^ x`."""
    return elementwise.bitwise_xor(other, x)


def rlshift(x: Tensor, other: Operand) -> Tensor:
    """`other << x`."""
    return elementwise.lshift(other, x)


def rrshift(x: Tensor, other: Operand) -> Tensor:
    """`other >> x`."""
    return elementwise.rshift(other, x)


def divmod_(x: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    """`divmod(x, other)`: x // other and x % other."""
    return elementwise.floordiv(x, other), elementwise.mod(x, other)


def rdivmod(x: Tensor, other: Operand) -> tuple[Tensor, Tensor]:
    """`divmod(other, x)`."""
    return divmod_(other, x)


def rmatmul(x: Tensor, other: Operand) -> Tensor:
    """`other @ x`."""
    return products.matmul(tensor(other), x)


def iterate(x: Tensor) -> Iterator[Tensor]:
    """The parts along the first axis."""
    if x.ndim == 0:
        raise bad("bad-axis", "a tensor of rank 0 cannot be walked over")
    return iter(x.unbind())


def contains(x: Tensor, value: Operand) -> bool:
    """Whether an element is equal to a value: `value in x`."""
    return bool((x == value).any().item())


def text(x: Tensor, spec: str) -> str:
    """`format(x, spec)`: of a tensor of one element its number's, else its repr."""
    return format(x.item(), spec) if spec and x.size == 1 else format(repr(x), spec)
