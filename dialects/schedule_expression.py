"""Index expressions as schedules write them: `q0 floordiv 2 + 1`, `min(n - k0 * 8, 8)`.

    E ::= NAME | NUMBER | -E | E + E | E - E | E * E | E floordiv E | E mod E
        | min(E, …) | max(E, …) | (E)

Names are ranges and sizes. Python reads the text, since its grammar has these rules and
precedences; what it reads beyond them is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from uopc.dialects.index_expr import Expr, as_expr, maximum, minimum

_WORDS = {"floordiv": "//", "mod": "%"}
_OPERATORS: dict[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: Expr.__add__,
    ast.Sub: Expr.__sub__,
    ast.Mult: Expr.__mul__,
    ast.FloorDiv: Expr.__floordiv__,
    ast.Mod: Expr.__mod__,
}
_EXTREMA = {"min": minimum, "max": maximum}
_MAX_LENGTH = 1000


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression. Raises ValueError for what is none."""
    if len(text) > _MAX_LENGTH or not text.isascii() or "//" in text or "%" in text:
        raise ValueError(text)
    plain = re.sub(r"\b(floordiv|mod)\b", lambda m: _WORDS[m[1]], text)
    try:
        tree = ast.parse(plain, mode="eval").body
        _check(tree)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(text) from error
    return tree


def names_in(tree: ast.expr) -> list[str]:
    """The names of ranges and sizes in an expression, in order."""
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    return list(dict.fromkeys(names))


def evaluate(tree: ast.expr, named: Mapping[str, Expr]) -> Expr:
    """The index expression that a tree is. Raises UopcError [index-divisor]."""
    match tree:
        case ast.Constant(value=int(number)):
            return as_expr(number)
        case ast.Name(id=name):
            return named[name]
        case ast.UnaryOp(operand=operand):
            return -evaluate(operand, named)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](evaluate(left, named), evaluate(right, named))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _EXTREMA[name](*(evaluate(a, named) for a in arguments))
        case _:
            raise AssertionError(ast.dump(tree))


def _check(tree: ast.expr) -> None:
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool) and number < 1 << 48:
            pass
        case ast.Name():
            pass
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left)
            _check(right)
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as arguments, keywords=[]) if (
            name in _EXTREMA
        ):
            for argument in arguments:
                _check(argument)
        case _:
            raise ValueError(ast.dump(tree))
