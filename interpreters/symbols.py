"""The values of symbolic sizes: given by the caller, or told by the shapes of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, SymbolVar
from uopc.dialects.sizes import Size, shape_text, symbols_in


def concrete(sizes: Sequence[Size], symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Sizes as ints. Raises UopcError [index-unbound] or [symbol-out-of-bounds]."""
    return tuple(s if isinstance(s, int) else s.evaluate_named(symbols) for s in sizes)


def _solved(size: Size, extent: int) -> tuple[SymbolVar, int] | None:
    """The symbol of `a * n + b` and its value where the size is `extent`."""
    if not isinstance(size, Expr) or len(size.terms) != 1:
        return None
    (atom, factor) = size.terms[0]
    if not isinstance(atom, SymbolVar):
        return None
    value, rest = divmod(extent - size.const, factor)
    return None if rest else (atom, value)


def bind_symbols(
    name: str,
    sizes: Sequence[Sequence[Size]],
    shapes: Sequence[Sequence[int]],
    given: Mapping[str, int],
) -> dict[str, int]:
    """The values of the symbols of inputs' sizes, and that all shapes agree with them.

    Raises UopcError [bad-input] for a shape that does not fit, [index-unbound] for a symbol that
    no shape tells and nobody gives, [symbol-out-of-bounds].
    """
    bound = dict(given)
    for position, (expected, shape) in enumerate(zip(sizes, shapes, strict=True)):
        if len(expected) != len(shape):
            raise UopcError(
                "bad-input",
                f"input {position} of @{name} has shape {tuple(shape)}, expected "
                f"{shape_text(expected)}",
            )
        for size, extent in zip(expected, shape, strict=True):
            if (solution := _solved(size, extent)) is not None:
                bound.setdefault(solution[0].name, solution[1])
    for position, (expected, shape) in enumerate(zip(sizes, shapes, strict=True)):
        if (wanted := concrete(expected, bound)) != tuple(shape):
            values = ", ".join(f"{s.name} = {bound[s.name]}" for s in symbols_in(expected))
            raise UopcError(
                "bad-input",
                f"input {position} of @{name} has shape {tuple(shape)}, expected {wanted}"
                + (f" ({shape_text(expected)} for {values})" if values else ""),
            )
    return bound
