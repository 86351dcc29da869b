"""Index expressions as xDSL affine expressions and maps, and back.

    i*8 + j floordiv 4      over dims (i, j)      (d0, d1) -> (((d0 * 8) + (d1 floordiv 4)))

Products of leaves and division by an expression are semi-affine, which an AffineExpr can hold
though few tools compute with it. `min` and `max` are not affine at all. Nodes are built directly:
xDSL's operators refuse semi-affine expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import (
    Atom,
    Expr,
    FloorDiv,
    Leaf,
    Mod,
    Product,
    Terms,
    constant,
)
from uopc.dialects.index_walk import Algebra, compute

# xDSL walks its trees recursively, so wide sums become balanced trees. Narrow ones read better
# as mlir-opt prints them, leaning left.
_WIDEST_LEANING_SUM = 32


def to_affine_map(
    exprs: Sequence[Expr], dims: Sequence[Leaf], symbols: Sequence[Leaf] = ()
) -> AffineMap:
    """The map (d0, …)[s0, …] -> exprs, where d<k> is dims[k] and s<k> is symbols[k].

    UopcError `not-affine` for `min` and `max`, and for a leaf that is neither dim nor symbol.
    """
    names: dict[Atom, AffineExpr] = {leaf: AffineDimExpr(k) for k, leaf in enumerate(dims)}
    names.update((leaf, AffineSymExpr(k)) for k, leaf in enumerate(symbols))
    results = tuple(compute(e, names, _AFFINE, _unknown_leaf) for e in exprs)
    return AffineMap(len(dims), len(symbols), results)


def is_affine(e: Expr) -> bool:
    """Whether `to_affine_map` can express `e` over its leaves: no `min` or `max` in it."""
    stack: list[Atom] = [atom for atom, _ in e.terms]
    seen: set[Atom] = set()
    while stack:
        atom = stack.pop()
        if atom in seen or isinstance(atom, Leaf):
            continue
        seen.add(atom)
        if isinstance(atom, Product):
            stack += atom.factors
        elif isinstance(atom, FloorDiv | Mod):
            stack += (child for operand in atom.operands for child, _ in operand.terms)
        else:
            return False
    return True


def _unknown_leaf(leaf: Leaf) -> AffineExpr:
    raise UopcError(
        "not-affine",
        f"'{leaf.name}' is neither a dimension nor a symbol of the map",
        hint="give every leaf of the expressions as a dimension or a symbol",
    )


def _binary(kind: AffineBinaryOpKind, a: AffineExpr, b: AffineExpr) -> AffineExpr:
    return AffineBinaryOpExpr(kind, a, b)


def _sum(parts: list[AffineExpr]) -> AffineExpr:
    if len(parts) <= _WIDEST_LEANING_SUM:
        result = parts[0]
        for part in parts[1:]:
            result = _binary(AffineBinaryOpKind.Add, result, part)
        return result
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [_binary(AffineBinaryOpKind.Add, a, b) for a, b in pairs] + odd
    return parts[0]


def _linear(terms: Terms, const: int, values: Mapping[Atom, AffineExpr]) -> AffineExpr:
    parts = [
        values[atom]
        if coefficient == 1
        else _binary(AffineBinaryOpKind.Mul, values[atom], AffineConstantExpr(coefficient))
        for atom, coefficient in terms
    ]
    if const or not parts:
        parts.append(AffineConstantExpr(const))
    return _sum(parts)


def _product(parts: Sequence[AffineExpr]) -> AffineExpr:
    result = parts[0]
    for part in parts[1:]:
        result = _binary(AffineBinaryOpKind.Mul, result, part)
    return result


def _floor_divide(a: AffineExpr, b: AffineExpr) -> AffineExpr:
    return _binary(AffineBinaryOpKind.FloorDiv, a, b)


def _remainder(a: AffineExpr, b: AffineExpr) -> AffineExpr:
    return _binary(AffineBinaryOpKind.Mod, a, b)


def _refuse(parts: Sequence[AffineExpr]) -> AffineExpr:
    raise UopcError(
        "not-affine",
        f"a minimum or maximum of {len(parts)} expressions is not affine",
        hint="give each operand as a result of its own, and take the minimum over the results",
    )


_AFFINE = Algebra[AffineExpr](_linear, _product, _floor_divide, _remainder, _refuse, _refuse)


def from_affine_map(affine_map: AffineMap, operands: Sequence[Expr]) -> list[Expr]:
    """The results of the map over these operands: its dimensions, then its symbols.

    UopcError `affine-operands` if the count differs, `index-divisor` for a division by what may
    be zero.
    """
    wanted = affine_map.num_dims + affine_map.num_symbols
    if len(operands) != wanted:
        raise UopcError(
            "affine-operands",
            f"the affine map {affine_map} takes {wanted} operands, got {len(operands)}",
            hint="give one operand for each dimension, then one for each symbol",
        )
    key = (id(affine_map), *operands)
    if (known := _known.get(key)) is not None:
        return list(known[1])
    dims, symbols = operands[: affine_map.num_dims], operands[affine_map.num_dims :]
    results = [from_affine_expr(result, dims, symbols) for result in affine_map.results]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = (affine_map, results)
    return results[:]


# Passes ask for the same map over the same operands again and again: each schedule command looks
# at a whole body. By identity, since the hash of a map visits all of it; the map is held so that
# its identity stays its own.
_known: dict[tuple[object, ...], tuple[AffineMap, list[Expr]]] = {}
_MOST_KNOWN = 4096


def forget_maps() -> None:
    """Let go of what maps were evaluated to, and of the kernels whose ranges these name."""
    _known.clear()


def from_affine_expr(
    affine: AffineExpr, dims: Sequence[Expr], symbols: Sequence[Expr] = ()
) -> Expr:
    """The value of one affine expression, simplified by the rules of index expressions."""
    values: list[Expr] = []
    # A node is met twice: first it asks for its operands, then it takes them from `values`.
    stack: list[AffineExpr | AffineBinaryOpKind] = [affine]
    while stack:
        node = stack.pop()
        # Not isinstance: these classes are abstract ones', which makes it five times as slow.
        if type(node) is AffineDimExpr:
            values.append(_operand(dims, node.position, "d"))
        elif type(node) is AffineBinaryOpExpr:
            stack += (node.kind, node.rhs, node.lhs)
        elif type(node) is AffineBinaryOpKind:
            right = values.pop()
            values.append(_apply(node, values.pop(), right))
        elif type(node) is AffineConstantExpr:
            values.append(constant(node.value))
        else:
            assert type(node) is AffineSymExpr
            values.append(_operand(symbols, node.position, "s"))
    return values[0]


def _operand(operands: Sequence[Expr], position: int, kind: str) -> Expr:
    if position >= len(operands):
        raise UopcError(
            "affine-operands",
            f"the affine expression mentions {kind}{position}, and has {len(operands)} such "
            "operands",
            hint="declare it in the map's parameter list",
        )
    return operands[position]


def _apply(kind: AffineBinaryOpKind, a: Expr, b: Expr) -> Expr:
    match kind:
        case AffineBinaryOpKind.Add:
            return a + b
        case AffineBinaryOpKind.Mul:
            return a * b
        case AffineBinaryOpKind.FloorDiv:
            return a // b
        case AffineBinaryOpKind.Mod:
            return a % b
        case AffineBinaryOpKind.CeilDiv:
            return -(-a // b)
