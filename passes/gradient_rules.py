"""What each op of utensor does to a gradient: one table, for programs in IR and for lazy graphs.

A rule gets a builder of ops, the gradient of an op's result, and the result; it gives the gradients
of the op's sources, None for a source through which nothing flows. Gradients are values as any
others: they can be differentiated again. passes/differentiate.py applies the rules to functions,
frontend/gradients.py to tensors.

Conventions: where max or min is tied, the gradient is shared evenly; abs and sign have gradient
0 at 0; floor, ceil, trunc and round have gradient 0; what a `stage detach` guards gets none;
nothing flows through whole numbers, truth values and positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any, TypeAlias

from uopc.dialects.element_types import element_type_named
from uopc.dialects.errors import UopcError
from uopc.passes.op_builder import OpBuilder, V

Rule: TypeAlias = Callable[[OpBuilder[Any], Any, Any], Sequence[Any]]
"""(builder, gradient, result) to the gradients of the result's sources."""


def _is_float(type_: str) -> bool:
    return element_type_named(type_).is_float


def _plus(make: OpBuilder[V], x: V, number: float) -> V:
    return make.add(x, make.full_like(number, x))


def _square(make: OpBuilder[V], x: V) -> V:
    return make.mul(x, x)


def _zero(make: OpBuilder[V], x: V) -> V:
    return make.full_like(0, x)


Slope: TypeAlias = Callable[[OpBuilder[Any], Any, Any], Any]
"""(builder, source, result) to a factor."""


def _times(slope: Slope) -> Rule:
    """The rule of a function of one source: g times its slope."""
    return lambda make, g, n: (make.mul(g, slope(make, n.sources[0], n)),)


def _over(divisor: Slope) -> Rule:
    """The same where the slope is 1 over something."""
    return lambda make, g, n: (make.div(g, divisor(make, n.sources[0], n)),)


def _root_of_1_minus_square(make: OpBuilder[V], x: V) -> V:
    return make.unary("sqrt", make.sub(make.full_like(1.0, x), _square(make, x)))


# -- elementwise -----------------------------------------------------------------------------------


def _div(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    b = n.sources[1]
    return make.div(g, b), make.neg(make.div(make.mul(g, n), b))


def _pow(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    a, b = n.sources
    zero, one = _zero(make, a), make.full_like(1.0, a)
    # b a^(b-1), and 0 for b = 0 also where a^(b-1) is infinite.
    lowered = make.mul(b, make.binary("pow", a, make.sub(b, one)))
    to_base = make.mul(g, make.where(make.binary("cmpeq", b, zero), zero, lowered))
    if not b.tracked:
        return to_base, None
    # a^b log(a), whose limit at a = 0 is 0 for b >= 0.
    vanishes = make.binary("and", make.binary("cmpeq", a, zero), make.binary("cmple", zero, b))
    logarithm = make.unary("log", make.where(vanishes, one, a))
    return to_base, make.mul(g, make.where(vanishes, zero, make.mul(n, logarithm)))


def _atan2(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    a, b = n.sources
    length = make.add(_square(make, a), _square(make, b))
    return make.div(make.mul(g, b), length), make.neg(make.div(make.mul(g, a), length))


def _extreme(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    """The chosen operand gets the gradient; equal ones half each."""
    a, b = n.sources
    half = make.scaled(g, 0.5)
    tied, zero = make.binary("cmpeq", a, b), _zero(make, g)
    first, second = (a, b) if n.op == "min" else (b, a)
    a_wins = make.binary("cmplt", first, second)
    a_wins = make.binary("or", a_wins, make.binary("cmpne", a, a))
    return (
        make.where(tied, half, make.where(a_wins, g, zero)),
        make.where(tied, half, make.where(a_wins, zero, g)),
    )


def _mod(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    a, b = n.sources
    if n.op == "mod":
        quotient = make.binary("floordiv", a, b)
    else:
        quotient = make.unary("trunc", make.div(a, b))
    return g, make.neg(make.mul(g, quotient))


def _where(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    condition, zero = n.sources[0], _zero(make, g)
    return None, make.where(condition, g, zero), make.where(condition, zero, g)


def _cast(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    type_ = n.sources[0].type
    return (make.cast(g, type_) if _is_float(type_) and _is_float(n.type) else None,)


def _flat(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    """Steps have slope 0 wherever they have one."""
    return tuple(_zero(make, source) for source in n.sources)


# -- movement --------------------------------------------------------------------------------------


def _expand(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    before = n.sources[0].shape
    axes = [k for k, (a, b) in enumerate(zip(before, n.shape, strict=True)) if a != b]
    return (make.reshape(make.reduce("add", g, axes), before),)


def _permute(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    order: tuple[int, ...] = n.attributes[0]
    return (make.permute(g, sorted(range(len(order)), key=order.__getitem__)),)


def _shrink(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    begins, _, steps = n.attributes
    shape = n.sources[0].shape
    if 0 in n.shape:
        return (make.constant(0, shape, g.type),)
    wide = make.dilated(g, steps)
    high = [s - b - w for s, b, w in zip(shape, begins, wide.shape, strict=True)]
    return (make.pad(wide, begins, high),)


def _pad(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    low = n.attributes[0]
    ends = [a + s for a, s in zip(low, n.sources[0].shape, strict=True)]
    return (make.shrink(g, low, ends),)


# -- reductions ------------------------------------------------------------------------------------


def _reduce(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    x = n.sources[0]
    kind, axes = n.attributes
    wide = make.spread(g, x.shape, axes)
    if kind == "add":
        return (wide,)
    if kind == "mul":
        return (make.mul(wide, _product_of_others(make, x, axes)),)
    chosen = make.binary("cmpeq", x, make.spread(n, x.shape, axes))
    # Counted in f32: in f16 a count of ties overflows, and its reciprocal is 0.
    exact = "f64" if x.type == "f64" else "f32"
    count = make.spread(make.reduce("add", make.cast(chosen, exact), axes), x.shape, axes)
    share = make.cast(make.div(make.cast(wide, exact), count), x.type)
    return (make.where(chosen, share, _zero(make, x)),)


def _product_of_others(make: OpBuilder[V], x: V, axes: Sequence[int]) -> V:
    """For each element the product of the others. Zeros are taken out and counted: with one zero,
    only the zero's own place has a product that is not 0."""
    is_zero = make.binary("cmpeq", x, _zero(make, x))
    filled = make.where(is_zero, make.full_like(1, x), x)
    product = make.spread(make.reduce("mul", filled, axes), x.shape, axes)
    own = make.cast(is_zero, "i32")
    zeros = make.spread(make.reduce("add", own, axes), x.shape, axes)
    alone = make.binary("cmpeq", zeros, own)  # no zero among the others
    return make.where(alone, make.div(product, filled), _zero(make, x))


# -- places ----------------------------------------------------------------------------------------


def _gather(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    x, indices = n.sources
    axis: int = n.attributes[0]
    # gather holds positions at the ends, scatter drops those outside.
    wide = make.cast(indices, "i64")
    last = _size_less_1(make, x, axis, wide)
    held = make.binary("max", make.binary("min", wide, last), _zero(make, wide))
    return make.scatter("add", make.constant(0, x.shape, x.type), held, g, axis), None


def _size_less_1(make: OpBuilder[V], x: V, axis: int, like: V) -> V:
    size = x.shape[axis]
    if not isinstance(size, int):
        error = UopcError("no-gradient", "positions along an axis of symbolic size")
        raise make.refuse(x, error)
    return make.full_like(max(size - 1, 0), like)


def _scatter(make: OpBuilder[V], g: V, n: V) -> Sequence[V | None]:
    x, indices, updates = n.sources
    kind, axis = n.attributes
    zero = _zero(make, updates)
    if x.shape[axis] == 0 or 0 in updates.shape:
        return g, None, zero
    inside = _inside(make, x, indices, updates, axis)

    def back(from_x: V) -> V:
        return make.where(inside, make.gather(from_x, indices, axis), zero)

    if kind == "add":
        return g, None, back(g)
    if kind == "set":
        below = make.scatter("set", g, indices, zero, axis)
        last = _last_of_each_place(make, x, indices, updates, axis)
        return below, None, make.where(last, back(g), zero)
    if kind == "mul":
        factors = make.scatter("mul", make.full_like(1, x), indices, updates, axis)
        return make.mul(g, factors), None, _back_of_product(make, g, n, back)
    won = make.binary("cmpeq", updates, make.gather(n, indices, axis))
    won = make.binary("and", inside, won)
    kept = make.binary("cmpeq", x, n)
    exact = "f64" if x.type == "f64" else "f32"  # as for ties of max
    wins = make.scatter("add", make.cast(kept, exact), indices, make.cast(won, exact), axis)
    share = make.cast(make.div(make.cast(g, exact), wins), x.type)
    return (
        make.where(kept, share, _zero(make, x)),
        None,
        make.where(won, make.gather(share, indices, axis), zero),
    )


def _back_of_product(make: OpBuilder[V], g: V, n: V, back: Callable[[V], V]) -> V:
    """The gradient of the factors of `scatter mul`: g times x and the other factors."""
    x, indices, updates = n.sources
    axis: int = n.attributes[1]
    is_zero = make.binary("cmpeq", updates, _zero(make, updates))
    filled = make.where(is_zero, make.full_like(1, updates), updates)
    own = make.cast(is_zero, "i32")
    none = make.constant(0, x.shape, "i32")
    zeros = make.scatter("add", none, indices, own, axis)
    alone = make.binary("cmpeq", make.gather(zeros, indices, axis), own)
    product = back(make.mul(g, make.scatter("mul", x, indices, filled, axis)))
    return make.where(alone, make.div(product, filled), _zero(make, updates))


def _inside(make: OpBuilder[V], x: V, indices: V, updates: V, axis: int) -> V:
    """Which updates go somewhere, in the shape of the updates."""
    wide = make.cast(indices, "i64")
    from_0 = make.binary("cmple", _zero(make, wide), wide)
    good = make.binary("and", from_0, make.binary("cmple", wide, _size_less_1(make, x, axis, wide)))
    return _along_updates(make, good, updates, axis)


def _along_updates(make: OpBuilder[V], mask: V, updates: V, axis: int) -> V:
    rank, depth = len(updates.shape), len(mask.shape)
    narrow = (*[1] * axis, *mask.shape, *[1] * (rank - axis - depth))
    return make.expand(make.reshape(mask, narrow), updates.shape)


def _last_of_each_place(make: OpBuilder[V], x: V, indices: V, updates: V, axis: int) -> V:
    """Which updates are the last of their position."""
    size, count = x.shape[axis], math.prod(indices.shape)
    numbers = make.reshape(make.iota(0, (count,), "i64"), indices.shape)
    last = make.scatter("max", make.constant(-1, (size,), "i64"), indices, numbers, 0)
    won = make.binary("cmpeq", make.gather(last, indices, 0), numbers)
    return _along_updates(make, won, updates, axis)


# -- the table -------------------------------------------------------------------------------------

RULES: dict[str, Rule] = {
    # arithmetic
    "add": lambda make, g, n: (g, g),
    "sub": lambda make, g, n: (g, make.neg(g)),
    "mul": lambda make, g, n: (make.mul(g, n.sources[1]), make.mul(g, n.sources[0])),
    "div": _div,
    "pow": _pow,
    "atan2": _atan2,
    "max": _extreme,
    "min": _extreme,
    "mod": _mod,
    "rem": _mod,
    "neg": lambda make, g, n: (make.neg(g),),
    "abs": _times(lambda make, x, y: make.unary("sign", x)),
    # roots, exponentials, logarithms
    "sqrt": _over(lambda make, x, y: make.scaled(y, 2.0)),
    "rsqrt": _times(lambda make, x, y: make.scaled(make.div(y, x), -0.5)),
    "recip": lambda make, g, n: (make.neg(make.mul(g, _square(make, n))),),
    "cbrt": _over(lambda make, x, y: make.scaled(_square(make, y), 3.0)),
    "exp": _times(lambda make, x, y: y),
    "exp2": _times(lambda make, x, y: make.scaled(y, math.log(2.0))),
    "expm1": _times(lambda make, x, y: make.unary("exp", x)),
    "log": _over(lambda make, x, y: x),
    "log2": _over(lambda make, x, y: make.scaled(x, math.log(2.0))),
    "log10": _over(lambda make, x, y: make.scaled(x, math.log(10.0))),
    "log1p": _over(lambda make, x, y: _plus(make, x, 1.0)),
    # trigonometric and related
    "sin": _times(lambda make, x, y: make.unary("cos", x)),
    "cos": _times(lambda make, x, y: make.neg(make.unary("sin", x))),
    "tan": _times(lambda make, x, y: _plus(make, _square(make, y), 1.0)),
    "asin": _over(lambda make, x, y: _root_of_1_minus_square(make, x)),
    "acos": _over(lambda make, x, y: make.neg(_root_of_1_minus_square(make, x))),
    "atan": _over(lambda make, x, y: _plus(make, _square(make, x), 1.0)),
    "sinh": _times(lambda make, x, y: make.unary("cosh", x)),
    "cosh": _times(lambda make, x, y: make.unary("sinh", x)),
    "tanh": _times(lambda make, x, y: make.sub(make.full_like(1.0, y), _square(make, y))),
    "asinh": _over(lambda make, x, y: make.unary("sqrt", _plus(make, _square(make, x), 1.0))),
    "acosh": _over(lambda make, x, y: make.unary("sqrt", _plus(make, _square(make, x), -1.0))),
    "atanh": _over(lambda make, x, y: make.sub(make.full_like(1.0, x), _square(make, x))),
    "erf": _times(
        lambda make, x, y: make.scaled(
            make.unary("exp", make.neg(_square(make, x))), 2.0 / math.sqrt(math.pi)
        )
    ),
    # choices, types, shapes
    "where": _where,
    "cast": _cast,
    "stage": lambda make, g, n: (g if n.attributes == ("contiguous",) else None,),
    "reshape": lambda make, g, n: (make.reshape(g, n.sources[0].shape),),
    "expand": _expand,
    "permute": _permute,
    "flip": lambda make, g, n: (make.flip(g, n.attributes[0]),),
    "shrink": _shrink,
    "pad": _pad,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    # steps
    **dict.fromkeys(("sign", "floor", "ceil", "trunc", "round", "floordiv"), _flat),
}
"""What each op does to a gradient."""

NO_GRADIENT: dict[str, str] = {
    **dict.fromkeys(
        ("and", "or", "xor", "shl", "shr", "not", "popcount", "clz"), "its result is bits"
    ),
    **dict.fromkeys(("cmplt", "cmple", "cmpeq", "cmpne"), "its result is truth values"),
    "truncdiv": "its result is whole numbers",
    "argreduce": "its result is positions",
    "constant": "it has no operand",
    "iota": "it has no operand",
    "bitcast": "bits are no smooth function of a number",
}
"""Ops without a rule, and why. Only bitcast can have a result that a gradient reaches: the others'
are whole numbers, or depend on nothing."""


def backpropagate(
    make: OpBuilder[V],
    order: Sequence[V],
    root: V,
    seed: V,
    wanted: Container[V] = (),
) -> dict[V, V]:
    """The gradients of `root`, weighted by `seed`, with respect to leaves and `wanted` values.

    `order` are the values that gradients flow through, sources first. Leaves that root does not
    depend on are not in the result. Raises UopcError [no-gradient] for an op without a rule.
    """
    found: dict[V, V] = {root: seed}
    for value in reversed(order):
        if value.op == "leaf" or value not in found:
            continue
        g = found[value] if value in wanted else found.pop(value)
        make.stand_at(value)
        for source, part in zip(value.sources, _rule_of(make, value)(make, g, value), strict=True):
            if part is None or not source.tracked:
                continue
            known = found.get(source)
            found[source] = part if known is None else make.add(known, part)
    return found


def _rule_of(make: OpBuilder[V], value: V) -> Rule:
    rule = RULES.get(value.op)
    if rule is not None:
        return rule
    reason, hint = "it is no op of utensor", "write it as ops of utensor first"
    if value.op in NO_GRADIENT:
        reason = NO_GRADIENT[value.op]
        hint = "detach what comes before it, so that no gradient goes there"
    message = f"{value.op} has no gradient: {reason}"
    raise make.refuse(value, UopcError("no-gradient", message, hint=hint))
