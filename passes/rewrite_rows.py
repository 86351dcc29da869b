"""Rewrite rules written as equations: `Row("add(x, 0) = x", INTEGER)`.

    equation ::= call `=` term
    term     ::= call | variable | constant | literal
    call     ::= name of an elementwise op `(` term, … `)`
    variable ::= a lower-case letter: any value, the same one wherever the letter stands
    constant ::= an upper-case letter: a constant whose elements are all alike
    literal  ::= number | true | false | lowest | highest    that number in the type at hand

`lowest` and `highest` are a type's limits, for floats the infinities. The number 0 is not -0.0.
The left side matches in either order of a commutative op's operands; a constant operand of such
an op always stands second (canonicalize puts it there). The right side is built anew, and folds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from uopc.dialects.numbers import known_element, scalar
from uopc.dialects.tensor import ConstantOp
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS, tensor_of
from uopc.passes.fold import Number, identity
from uopc.passes.value_numbering import COMMUTATIVE

OPS = {op.name.partition(".")[2]: op for op in ELEMENTWISE_OPS}
"""The elementwise ops by the names that equations use."""


class Builder(Protocol):
    """Where a rule gets new values from: simplified, and shared with equal ones."""

    keep_detach: bool

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = ...,
    ) -> SSAValue:
        """The result of an op of class `cls` with this result type."""
        ...

    def constant(self, value: Number, tensor: TensorType[Attribute]) -> SSAValue:
        """A tensor whose elements are all `value`."""
        ...


Rule = Callable[[Builder, Operation], SSAValue | None]
"""The value that an op may be replaced by, or None."""


def defining(value: SSAValue, cls: type[Operation]) -> Operation | None:
    """The op that computes `value`, if it is of class `cls` itself."""
    if isinstance(value, OpResult):
        op = value.op
        return op if type(op) is cls else None
    return None


def splat_of(value: SSAValue) -> Number | None:
    """The number that all elements of a constant are; None for any other value."""
    op = defining(value, ConstantOp)
    if op is None:
        return None
    number = op.properties["value"]
    return cast(Number, number) if isinstance(number, FloatAttr | IntegerAttr) else None


@dataclass(frozen=True)
class Variable:
    """Any value."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A splat constant."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A splat constant of one value, as text."""

    text: str


@dataclass(frozen=True)
class Call:
    """A value computed by an op of this class."""

    name: str
    arguments: tuple[Term, ...]

    @property
    def op(self) -> type[Operation]:
        return OPS[self.name]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


Term = Variable | Constant | Literal | Call

Bindings = dict[str, SSAValue]


@dataclass(frozen=True)
class Row:
    """An equation, and for which kinds of element types it holds.

    `kinds` are those of the last operand, `x` those of the variable x where they differ.
    """

    equation: str
    kinds: tuple[str, ...]
    x: tuple[str, ...] | None = None

    @property
    def sides(self) -> tuple[Call, Term]:
        """Both sides. Raises ValueError for text that is no equation."""
        left, right = parse_equation(self.equation)
        if not isinstance(left, Call):
            raise ValueError(f"the left side of {self.equation!r} is no op")
        return left, right


_TOKEN = re.compile(r"\s*([a-z][a-z0-9_]*|[A-Z]|-?[0-9.]+|[(),=])")
_LITERAL = re.compile(r"-?[0-9.]+|true|false|lowest|highest")


def parse_equation(text: str) -> tuple[Term, Term]:
    """The two sides. Raises ValueError for text that is no equation."""
    tokens = _TOKEN.findall(text)
    left, at = _parse_term(tokens, 0)
    if tokens[at : at + 1] != ["="]:
        raise ValueError(f"expected = in {text!r}")
    right, at = _parse_term(tokens, at + 1)
    if at != len(tokens):
        raise ValueError(f"text after the equation {text!r}")
    return left, right


def _parse_term(tokens: list[str], at: int) -> tuple[Term, int]:
    token = tokens[at]
    if tokens[at + 1 : at + 2] == ["("]:
        arguments: list[Term] = []
        at += 1
        while tokens[at] != ")":
            argument, at = _parse_term(tokens, at + 1)
            arguments.append(argument)
        if token not in OPS:
            raise ValueError(f"there is no elementwise op {token}")
        return Call(token, tuple(arguments)), at + 1
    if _LITERAL.fullmatch(token):
        return Literal(token), at + 1
    if len(token) != 1 or not token.isalpha():
        raise ValueError(f"unexpected {token!r} in an equation")
    return (Constant if token.isupper() else Variable)(token), at + 1


@lru_cache(maxsize=1024)
def literal_number(text: str, element: Attribute) -> Number:
    """A literal as a number of an element type."""
    if text in ("lowest", "highest"):
        return identity("max" if text == "lowest" else "min", element)
    if text in ("true", "false"):
        return scalar(int(text == "true"), element)
    return scalar(float(text) if known_element(element).is_float else int(float(text)), element)


def _orders(term: Term) -> Iterator[Term]:
    """The ways of writing a term with the operands of commutative ops swapped."""
    if not isinstance(term, Call):
        yield term
        return
    for arguments in product(*(list(_orders(each)) for each in term.arguments)):
        yield Call(term.name, arguments)
        if term.op.name in COMMUTATIVE:
            first, second = arguments
            if first != second and not isinstance(second, Constant | Literal):
                yield Call(term.name, (second, first))


OperandClasses = tuple[type[Operation] | None, ...]
"""The classes of the ops that define an op's operands; None for block arguments."""


def operand_classes(op: Operation) -> OperandClasses:
    """See OperandClasses."""
    return tuple([type(v.op) if isinstance(v, OpResult) else None for v in op.operands])


@dataclass(frozen=True)
class _Rule:
    """A row with its left side in one of the orders that match."""

    row: Row
    left: Call
    right: Term

    def may_match(self, classes: OperandClasses) -> bool:
        for term, got in zip(self.left.arguments, classes, strict=True):
            if isinstance(term, Call):
                needed: type[Operation] = term.op
            elif isinstance(term, Variable):
                continue
            else:
                needed = ConstantOp
            if got is not needed:
                return False
        return True


class RowTable:
    """Rows, found by the class of an op, the kind of its elements and its operands' classes."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rules: dict[tuple[type[Operation], str], list[_Rule]] = {}
        self._candidates: dict[tuple[type[Operation], str, OperandClasses], tuple[_Rule, ...]] = {}
        for row in rows:
            left, right = row.sides
            for order in dict.fromkeys(_orders(left)):
                for kind in row.kinds:
                    rules = self._rules.setdefault((left.op, kind), [])
                    rules.append(_Rule(row, cast(Call, order), right))

    def _candidates_for(
        self, cls: type[Operation], kind: str, classes: OperandClasses
    ) -> tuple[_Rule, ...]:
        key = (cls, kind, classes)
        found = self._candidates.get(key)
        if found is None:
            rules = self._rules.get((cls, kind), ())
            found = tuple(rule for rule in rules if rule.may_match(classes))
            self._candidates[key] = found
        return found

    def apply(
        self, builder: Builder, op: Operation, kind: str, classes: OperandClasses
    ) -> SSAValue | None:
        """The right side of the first row that matches; `kind` of the op's last operand."""
        for rule in self._candidates_for(type(op), kind, classes):
            bindings: Bindings = {}
            row = rule.row
            if _match_all(rule.left.arguments, op.operands, bindings) and (
                row.x is None or _kind(bindings["x"]) in row.x
            ):
                return _build(builder, rule.right, bindings, tensor_of(op.results[0]))
        return None


def _kind(value: SSAValue) -> str:
    return known_element(tensor_of(value).element_type).kind


def _match_all(terms: Sequence[Term], values: Sequence[SSAValue], bindings: Bindings) -> bool:
    return all(_match(term, value, bindings) for term, value in zip(terms, values, strict=True))


def _match(term: Term, value: SSAValue, bindings: Bindings) -> bool:
    cls = type(term)
    if cls is Variable:
        return bindings.setdefault(cast(Variable, term).name, value) is value
    if isinstance(term, Call):
        op = defining(value, term.op)
        return op is not None and _match_all(term.arguments, op.operands, bindings)
    number = splat_of(value)
    if number is None:
        return False
    if isinstance(term, Literal):
        return number == literal_number(term.text, number.type)
    return bindings.setdefault(cast(Constant, term).name, value) is value


def _build(
    builder: Builder, term: Term, bindings: Bindings, result: TensorType[Attribute]
) -> SSAValue:
    if isinstance(term, Literal):
        return builder.constant(literal_number(term.text, result.element_type), result)
    if not isinstance(term, Call):
        return bindings[term.name]
    operands = [_build(builder, each, bindings, result) for each in term.arguments]
    cls: Any = term.op
    inferred = result if term.name == "where" else cls.infer(tensor_of(operands[0]))
    return builder.emit(cls, operands, inferred)
