"""Gradients: one table of rules over utensor's ops, and the walk that applies it.

A rule gets the gradient of a node and the node, and gives the gradients of its sources, None for
a source through which nothing flows. Gradients are nodes as any others: they can be differentiated
again, and share with the forward graph whatever is equal.

Conventions: where max or min is tied, the gradient is shared evenly; abs and sign have gradient
0 at 0; floor, ceil, trunc and round have gradient 0; what a `detach` guards gets none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from uopc.dialects.errors import UopcError
from uopc.frontend.graph import Node, apply, constant, tracked_order
from uopc.frontend.indexing import dilated
from uopc.frontend.nodes import (
    add,
    binary,
    cast,
    div,
    expand,
    flip,
    full_like,
    gather,
    mul,
    neg,
    pad,
    permute,
    reduce,
    reshape,
    scaled,
    scatter,
    shrink,
    spread,
    sub,
    unary,
    where,
)
from uopc.frontend.promotion import is_float

Rule: TypeAlias = Callable[[Node, Node], Sequence[Node | None]]


def _plus(x: Node, number: float) -> Node:
    return add(x, full_like(number, x))


def _square(x: Node) -> Node:
    return mul(x, x)


def _zero(x: Node) -> Node:
    return full_like(0, x)


def _unary(slope: Callable[[Node, Node], Node]) -> Rule:
    """The rule of a function of one source: g times its slope at (x, result)."""
    return lambda g, n: (mul(g, slope(n.sources[0], n)),)


def _quotient(divisor: Callable[[Node, Node], Node]) -> Rule:
    """The same where the slope is 1 over something."""
    return lambda g, n: (div(g, divisor(n.sources[0], n)),)


def _root_of_1_minus_square(x: Node) -> Node:
    return unary("sqrt", sub(full_like(1.0, x), _square(x)))


# -- elementwise -----------------------------------------------------------------------------------


def _pow(g: Node, n: Node) -> Sequence[Node | None]:
    a, b = n.sources
    zero, one = _zero(a), full_like(1.0, a)
    # b a^(b-1), and 0 for b = 0 also where a^(b-1) is infinite.
    lowered = mul(b, binary("pow", a, sub(b, one)))
    to_base = where(binary("cmpeq", b, zero), zero, lowered)
    # a^b log(a), whose limit at a = 0 is 0 for b >= 0.
    vanishes = apply("and", (binary("cmpeq", a, zero), binary("cmple", zero, b)))
    safe = where(vanishes, one, a)
    to_exponent = where(vanishes, zero, mul(n, unary("log", safe)))
    return mul(g, to_base), mul(g, to_exponent) if b.tracked else None


def _atan2(g: Node, n: Node) -> Sequence[Node | None]:
    a, b = n.sources
    length = add(_square(a), _square(b))
    return div(mul(g, b), length), neg(div(mul(g, a), length))


def _extreme(g: Node, n: Node) -> Sequence[Node | None]:
    """The chosen operand gets the gradient; equal ones half each."""
    a, b = n.sources
    half = scaled(g, 0.5)
    tied, zero = binary("cmpeq", a, b), _zero(g)
    first, second = (a, b) if n.op == "min" else (b, a)
    a_wins = binary("cmplt", first, second)
    a_wins = apply("or", (a_wins, binary("cmpne", a, a)))
    return (
        where(tied, half, where(a_wins, g, zero)),
        where(tied, half, where(a_wins, zero, g)),
    )


def _mod(g: Node, n: Node) -> Sequence[Node | None]:
    a, b = n.sources
    if n.op == "mod":
        quotient = binary("floordiv", a, b)
    else:
        quotient = unary("trunc", div(a, b))
    return g, neg(mul(g, quotient))


def _where(g: Node, n: Node) -> Sequence[Node | None]:
    condition, zero = n.sources[0], _zero(g)
    return None, where(condition, g, zero), where(condition, zero, g)


def _cast(g: Node, n: Node) -> Sequence[Node | None]:
    source = n.sources[0]
    return (cast(g, source.type) if is_float(source.type) and is_float(n.type) else None,)


# -- movement and reductions -----------------------------------------------------------------------


def _expand(g: Node, n: Node) -> Sequence[Node | None]:
    before = n.sources[0].shape
    axes = [k for k, (a, b) in enumerate(zip(before, n.shape, strict=True)) if a != b]
    return (reshape(reduce("add", g, axes), before),)


def _permute(g: Node, n: Node) -> Sequence[Node | None]:
    order: tuple[int, ...] = n.attributes[0]
    return (permute(g, sorted(range(len(order)), key=order.__getitem__)),)


def _shrink(g: Node, n: Node) -> Sequence[Node | None]:
    begins, _, steps = n.attributes
    wide = dilated(g, list(steps))
    shape = n.sources[0].shape
    if 0 in wide.shape:
        return (constant(0, shape, g.type),)
    high = [s - b - w for s, b, w in zip(shape, begins, wide.shape, strict=True)]
    return (pad(wide, begins, high),)


def _pad(g: Node, n: Node) -> Sequence[Node | None]:
    low = n.attributes[0]
    ends = [a + s for a, s in zip(low, n.sources[0].shape, strict=True)]
    return (shrink(g, low, ends),)


def _reduce(g: Node, n: Node) -> Sequence[Node | None]:
    x = n.sources[0]
    kind, axes = n.attributes
    wide = spread(g, x.shape, axes)
    if kind == "add":
        return (wide,)
    if kind == "mul":
        return (_product(wide, n),)
    chosen = binary("cmpeq", x, spread(n, x.shape, axes))
    # Counted in f32: in f16 a count of ties overflows, and its reciprocal is 0.
    exact = "f64" if x.type == "f64" else "f32"
    count = spread(reduce("add", cast(chosen, exact), axes), x.shape, axes)
    share = cast(div(cast(wide, exact), count), x.type)
    return (where(chosen, share, _zero(x)),)


def _product(g: Node, n: Node) -> Node:
    """The product of the others: what is left without the zeros decides where there are some."""
    x, axes = n.sources[0], n.attributes[1]
    is_zero = binary("cmpeq", x, _zero(x))
    filled = where(is_zero, full_like(1, x), x)
    others = div(spread(reduce("mul", filled, axes), x.shape, axes), filled)
    zeros = spread(reduce("add", cast(is_zero, "i32"), axes), x.shape, axes)
    own = cast(is_zero, "i32")
    alone = binary("cmpeq", zeros, own)  # no zero among the others
    return mul(g, where(alone, others, _zero(x)))


def _gather(g: Node, n: Node) -> Sequence[Node | None]:
    x, indices = n.sources
    axis: int = n.attributes[0]
    # gather holds positions at the ends, scatter drops those outside.
    held = _held(indices, x.shape[axis])
    zeros = constant(0, x.shape, x.type)
    return scatter("add", zeros, held, g, axis), None


def _held(indices: Node, size: int) -> Node:
    wide = cast(indices, "i64")
    top = full_like(max(size - 1, 0), wide)
    return binary("max", binary("min", wide, top), _zero(wide))


def _scatter(g: Node, n: Node) -> Sequence[Node | None]:
    x, indices, updates = n.sources
    kind: str = n.attributes[0]
    axis: int = n.attributes[1]
    if x.shape[axis] == 0 or 0 in updates.shape:
        return g, None, _zero(updates)
    inside = _inside(indices, updates, x.shape[axis], axis)
    back = where(inside, gather(g, indices, axis), _zero(updates))
    if kind == "add":
        return g, None, back
    if kind == "set":
        return _scatter_set(g, n, back)
    if kind in ("max", "min"):
        at_updates = gather(n, indices, axis)
        won = apply("and", (inside, binary("cmpeq", updates, at_updates)))
        kept = binary("cmpeq", x, n)
        wins = scatter("add", cast(kept, x.type), indices, cast(won, x.type), axis)
        share = div(g, wins)
        zero = _zero(x)
        return (
            where(kept, share, zero),
            None,
            where(won, gather(share, indices, axis), _zero(updates)),
        )
    factors = scatter("mul", full_like(1, x), indices, updates, axis)
    whole = gather(mul(g, n), indices, axis)
    return mul(g, factors), None, where(inside, div(whole, updates), _zero(updates))


def _inside(indices: Node, updates: Node, size: int, axis: int) -> Node:
    """Which updates go somewhere, in the shape of the updates."""
    wide = cast(indices, "i64")
    good = apply(
        "and",
        (
            binary("cmple", _zero(wide), wide),
            binary("cmplt", wide, full_like(size, wide)),
        ),
    )
    return _along_updates(good, updates, axis)


def _along_updates(mask: Node, updates: Node, axis: int) -> Node:
    rank, depth = len(updates.shape), len(mask.shape)
    narrow = (*[1] * axis, *mask.shape, *[1] * (rank - axis - depth))
    return expand(reshape(mask, narrow), updates.shape)


def _scatter_set(g: Node, n: Node, back: Node) -> Sequence[Node | None]:
    """The last update of a position gets its gradient, the element below gets none."""
    x, indices, updates = n.sources
    axis: int = n.attributes[1]
    below = scatter("set", g, indices, _zero(updates), axis)
    size, count = x.shape[axis], math.prod(indices.shape)
    numbers = reshape(apply("iota", (), (0, (count,), "i64")), indices.shape)
    last = scatter("max", constant(-1, (size,), "i64"), indices, numbers, 0)
    won = binary("cmpeq", gather(last, indices, 0), numbers)
    return below, None, where(_along_updates(won, updates, axis), back, _zero(updates))


# -- the table -------------------------------------------------------------------------------------


def _flat(g: Node, n: Node) -> Sequence[Node | None]:
    """Steps have slope 0 wherever they have one."""
    return tuple(_zero(source) for source in n.sources)


RULES: dict[str, Rule] = {
    # arithmetic
    "add": lambda g, n: (g, g),
    "sub": lambda g, n: (g, neg(g)),
    "mul": lambda g, n: (mul(g, n.sources[1]), mul(g, n.sources[0])),
    "div": lambda g, n: (
        div(g, n.sources[1]),
        neg(div(mul(g, n), n.sources[1])),
    ),
    "pow": _pow,
    "atan2": _atan2,
    "max": _extreme,
    "min": _extreme,
    "mod": _mod,
    "rem": _mod,
    "neg": lambda g, n: (neg(g),),
    "abs": _unary(lambda x, y: unary("sign", x)),
    # roots, exponentials, logarithms
    "sqrt": _quotient(lambda x, y: scaled(y, 2.0)),
    "rsqrt": _unary(lambda x, y: scaled(div(y, x), -0.5)),
    "recip": lambda g, n: (neg(mul(g, _square(n))),),
    "cbrt": _quotient(lambda x, y: scaled(_square(y), 3.0)),
    "exp": _unary(lambda x, y: y),
    "exp2": _unary(lambda x, y: scaled(y, math.log(2.0))),
    "expm1": _unary(lambda x, y: unary("exp", x)),
    "log": _quotient(lambda x, y: x),
    "log2": _quotient(lambda x, y: scaled(x, math.log(2.0))),
    "log10": _quotient(lambda x, y: scaled(x, math.log(10.0))),
    "log1p": _quotient(lambda x, y: _plus(x, 1.0)),
    # trigonometric and related
    "sin": _unary(lambda x, y: unary("cos", x)),
    "cos": _unary(lambda x, y: neg(unary("sin", x))),
    "tan": _unary(lambda x, y: _plus(_square(y), 1.0)),
    "asin": _quotient(lambda x, y: _root_of_1_minus_square(x)),
    "acos": _quotient(lambda x, y: neg(_root_of_1_minus_square(x))),
    "atan": _quotient(lambda x, y: _plus(_square(x), 1.0)),
    "sinh": _unary(lambda x, y: unary("cosh", x)),
    "cosh": _unary(lambda x, y: unary("sinh", x)),
    "tanh": _unary(lambda x, y: sub(full_like(1.0, y), _square(y))),
    "asinh": _quotient(lambda x, y: unary("sqrt", _plus(_square(x), 1.0))),
    "acosh": _quotient(lambda x, y: unary("sqrt", _plus(_square(x), -1.0))),
    "atanh": _quotient(lambda x, y: sub(full_like(1.0, x), _square(x))),
    "erf": _unary(lambda x, y: scaled(unary("exp", neg(_square(x))), 2.0 / math.sqrt(math.pi))),
    # choices, types, shapes
    "where": _where,
    "cast": _cast,
    "stage": lambda g, n: (g if n.attributes == ("contiguous",) else None,),
    "reshape": lambda g, n: (reshape(g, n.sources[0].shape),),
    "expand": _expand,
    "permute": _permute,
    "flip": lambda g, n: (flip(g, n.attributes[0]),),
    "shrink": _shrink,
    "pad": _pad,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    # steps
    **dict.fromkeys(("sign", "floor", "ceil", "trunc", "round", "floordiv"), _flat),
}
"""What each op does to a gradient."""

NO_GRADIENT = frozenset(
    {
        "truncdiv", "and", "or", "xor", "shl", "shr", "not", "popcount", "clz",
        "cmplt", "cmple", "cmpeq", "cmpne", "bitcast", "argreduce", "constant", "iota",
    }
)  # fmt: skip
"""Ops of whole numbers, truth values, bits and positions, or without sources: nothing flows."""


def gradients(root: Node, seed: Node, wanted: Sequence[Node] | None = None) -> dict[Node, Node]:
    """The gradients of `root`, weighted by `seed`, with respect to its leaves, or to `wanted`.

    Nodes that root does not depend on are not in the result.
    """
    order = tracked_order(root)
    found: dict[Node, Node] = {root: seed}
    keep = set(wanted) if wanted is not None else None
    for node in reversed(order):
        if node.op == "leaf" or node not in found:
            continue
        g = found[node] if keep is not None and node in keep else found.pop(node)
        if node.op in NO_GRADIENT:
            continue
        rule = RULES.get(node.op)
        if rule is None:
            raise UopcError("no-gradient", f"there is no rule for the gradient of {node.op}")
        for source, part in zip(node.sources, rule(g, node), strict=True):
            if part is None or not source.tracked:
                continue
            known = found.get(source)
            found[source] = part if known is None else add(known, part)
    return found
