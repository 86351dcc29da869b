"""Where an op comes from: file, line and column.

xDSL keeps `loc("file":1:2)` where the text has it, and UnknownLoc everywhere else. The parser
here gives every other op the place it was read from (that of the op's name, as in mlir-opt), so
that an error can name it, clones carry it, and `--print-debuginfo` prints it. Costs about 7 us
an op, of some 300 us for parsing one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyDenseElement,
    ArrayAttr,
    CallSiteLoc,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    RankedStructure,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, AttributeInvT, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from uopc.dialects.errors import SourceLocation, UopcError
from uopc.dialects.registry import make_context
from uopc.dialects.source_text import (
    LineTable,
    check_nesting,
    decode_source,
    printable,
    read_source,
)

MESSAGE_LIMIT = 1000
"""How much of a message made by others is shown: some print whole modules."""


SPLAT_LIMIT = 2**26
"""How many elements `dense<value>` may stand for; xDSL stores each of them."""


class PromptLexer(MLIRLexer):
    """xDSL's lexer, without its exponential time on a string that is not closed.

    Its pattern for strings nests `+` in `*`, and tries all ways to cut a text of n characters
    before it gives up. The same pattern with possessive quantifiers matches the same strings.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class LocatingParser(Parser):
    """xDSL's parser, which also gives every op the place it was read from."""

    def __init__(self, context: Context, lines: LineTable) -> None:
        super().__init__(context, "", lines.name)
        self._parser_state = ParserState(PromptLexer(Input(lines.text, lines.name)))
        self._lines = lines
        self._file = StringAttr(lines.name)
        self._name_starts: list[int] = []
        self._numbers: dict[int, IntAttr] = {}
        self._first_uses: dict[str, Span] = {}

    @property
    def next_token_span(self) -> Span:
        """The span of the token that would be read next."""
        return self._current_token.span

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse all of the input; as in mlir-opt, an empty file is an empty module."""
        if allow_implicit_module and self._current_token.kind == MLIRTokenKind.EOF:
            return ModuleOp([])
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as error:
            self._place_undefined_value(error)
            raise
        if type(module.location) is UnknownLoc:
            module.location = self._location_at(0)
        return module

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        """Find the operand's value; of one not defined yet, remember where it is used first."""
        value = super().resolve_operand(operand, type)
        if isinstance(value, ForwardDeclaredValue):
            self._first_uses.setdefault(operand.operand_name, operand.span)
        return value

    def _place_undefined_value(self, error: ParseError) -> None:
        """xDSL finds undefined values at the end of the file; the error belongs to the use."""
        if self._current_token.kind != MLIRTokenKind.EOF or "used but not defined" not in error.msg:
            return
        for name in self.forward_ssa_references:
            if name in self._first_uses:
                error.span = self._first_uses[name]
                error.msg = f"value %{name} is used but not defined where this use can see it"
                return

    def parse_operation(self) -> Operation:
        """Parse an op, and set its location unless the text gives one."""
        depth = len(self._name_starts)
        operation = super().parse_operation()
        if type(operation.location) is UnknownLoc:
            operation.location = self._location_at(self._name_starts[depth])
        del self._name_starts[depth:]
        return operation

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._name_starts.append(self._current_token.span.start)
        return results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """As xDSL's, but the error stands at the name and knows names that are close to it."""
        if operation := self.ctx.get_optional_op(
            name, dialect_stack=self._parser_state.dialect_stack
        ):
            return operation
        start = self._name_starts[-1]
        near = difflib.get_close_matches(name, [each.name for each in self.ctx.loaded_ops], 3)
        guess = f"; did you mean {' or '.join(near)}?" if near else ""
        end = self._lines.text.find(name, start) + len(name)
        raise ParseError(
            Span(start, max(start + 1, end), self.lexer.input),
            f"Operation {name} is not registered{guess}",
        )

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Parse a dense constant; a splat too large for memory is refused before it is made."""
        if type is not None:
            self._check_splat_size(type)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        type = super()._parse_dense_literal_type()
        self._check_splat_size(type)
        return type

    def _check_splat_size(self, type: RankedStructure[AnyDenseElement]) -> None:
        count = math.prod(type.get_shape())
        if count > max(SPLAT_LIMIT, len(self._lines.text)):
            self.raise_error(
                f"a constant of {count} elements is too large: at most {SPLAT_LIMIT} are read "
                "from one value; make it in the program instead"
            )

    def _location_at(self, offset: int) -> FileLineColLoc:
        line, column = self._lines.line_and_column(offset)
        return FileLineColLoc(self._file, self._number(line), self._number(column))

    def _number(self, value: int) -> IntAttr:
        attribute = self._numbers.get(value)
        if attribute is None:
            attribute = self._numbers[value] = IntAttr(value)
        return attribute


def parse_text(
    text: str | bytes,
    name: str = "<text>",
    *,
    context: Context | None = None,
    first_line: int = 1,
    allow_implicit_module: bool = True,
) -> ModuleOp:
    """Parse a module; its ops know their places (see `location_of`). It is not verified.

    `name` stands for the file in messages, and `first_line` is the number of the text's first
    line. Without a context, xDSL's dialects and uopc's are known.

    Raises UopcError [parse-error], [nesting-too-deep] or [not-text], with the place told.
    """
    if isinstance(text, bytes):
        text = decode_source(text, name, first_line)
    lines = LineTable(text, name, first_line)
    check_nesting(lines)
    parser: LocatingParser | None = None
    try:
        parser = LocatingParser(make_context() if context is None else context, lines)
        return parser.parse_module(allow_implicit_module)
    except ParseError as error:
        raise _from_parse_error(error, lines) from error
    except UopcError as error:
        if error.location is None:
            error.location = lines.location(_reached(parser))
        raise
    except RecursionError as error:
        raise UopcError(
            "nesting-too-deep",
            "an attribute or a region nests too deep for the parser",
            location=lines.location(_reached(parser)),
            hint="split it into several functions, attributes or affine maps",
        ) from error
    except Exception as error:
        # A parser in Python meets broken text with any exception: int() of 5000 digits is a
        # ValueError, an attribute's own check a VerifyException, and so on.
        start = _reached(parser)
        raise UopcError(
            "parse-error",
            clip_message(f"this text cannot be read: {_words(error)}"),
            location=lines.location(start),
            excerpt=lines.excerpt(start, start + 1),
            hint="--show-traceback shows where the parser stopped",
        ) from error


def parse_file(path: str, *, context: Context | None = None) -> ModuleOp:
    """Parse a file of MLIR text, as `parse_text` does.

    Raises UopcError [cannot-read] besides what `parse_text` raises.
    """
    return parse_text(read_source(path), path, context=context)


def location_of(operation: Operation) -> SourceLocation | None:
    """Where the op was read from, or what its `loc(...)` says; None if nobody knows.

    Of a fused location the first known one counts, of a call site the callee's.
    """
    return _resolve(operation.location)


def nearest_location(operation: Operation) -> SourceLocation | None:
    """`location_of`, or, for an op that a pass made without one, a place close to it.

    Looks at the ops that define its operands, then at the ops around it.
    """
    if (location := location_of(operation)) is not None:
        return location
    for operand in operation.operands:
        owner = _owner(operand)
        if owner is not None and (location := location_of(owner)) is not None:
            return location
    parent = operation.parent_op()
    while parent is not None:
        if (location := location_of(parent)) is not None:
            return location
        parent = parent.parent_op()
    return None


def _owner(value: SSAValue) -> Operation | None:
    """The op whose result `value` is; None for a block argument and for a broken value."""
    operation = getattr(value, "op", None)
    return operation if isinstance(operation, Operation) else None


def fused_location(locations: Iterable[Attribute]) -> LocationAttr:
    """One location for what several ops became: theirs, each once; unknown if all are."""
    found: dict[Attribute, None] = {}
    pending = list(reversed(list(locations)))
    while pending:
        location = pending.pop()
        if isinstance(location, FusedLoc):
            pending.extend(reversed(tuple(location.locations)))  # pyright: ignore[reportArgumentType, reportUnknownArgumentType] -- an ArrayAttr, typed as Attribute by xDSL
        elif not isinstance(location, UnknownLoc):
            found[location] = None
    return FusedLoc(ArrayAttr(list(found)), NoneAttr()) if found else UnknownLoc()


def places_text(location: Attribute) -> str:
    """The lines that a fused location stands for, as `softmax.mlir:5-9`; "" for any other.

    Files are told without their folders, so that what is printed does not depend on them.
    """
    if not isinstance(location, FusedLoc):
        return ""
    lines: dict[str, list[int]] = {}
    for part in tuple(location.locations):  # pyright: ignore[reportArgumentType, reportUnknownVariableType] -- an ArrayAttr, typed as Attribute by xDSL
        place = _resolve(cast("Attribute", part))
        if place is not None and not place.file.startswith("<"):  # <stdin> cannot be looked up
            lines.setdefault(place.file.replace("\\", "/").rpartition("/")[2], []).append(
                place.line
            )
    words: list[str] = []
    for file, numbers in lines.items():
        first, last = min(numbers), max(numbers)
        words.append(f"{file}:{first}" if first == last else f"{file}:{first}-{last}")
    return ", ".join(words)


def _resolve(location: Attribute) -> SourceLocation | None:
    pending: list[Attribute] = [location]
    while pending:
        match pending.pop():
            case FileLineColLoc(filename=file, line=line, column=column):
                return SourceLocation(printable(file.data), line.data, column.data)
            case NameLoc(location=inner):
                pending.append(inner)
            case CallSiteLoc(callee=callee, caller=caller):
                pending.extend((caller, callee))
            case FusedLoc(locations=inner):
                pending.extend(reversed(tuple(inner)))  # pyright: ignore[reportArgumentType, reportUnknownArgumentType] -- an ArrayAttr, typed as Attribute by xDSL
            case _:
                pass
    return None


def _reached(parser: LocatingParser | None) -> int:
    return 0 if parser is None else parser.next_token_span.start


def _from_parse_error(error: ParseError, lines: LineTable) -> UopcError:
    at_end = error.span.start >= len(lines.text.rstrip())
    message = clip_message(error.msg).strip()
    hint = ""
    if message == "in block definition":  # xDSL wants a block's label where no op follows
        if at_end:
            message = "expected '}' or another op; the file ends inside a region"
            hint = "a '{' before this place is not closed"
        else:
            message = "expected an op, a block's label such as ^bb0, or '}'"
    if isinstance(error, MultipleSpansParseError):
        places = ", ".join(str(lines.location(span.start)) for span, _ in error.refs)
        message = f"{message}; {error.ref_text or 'see also'} {places}"
    # What is missing at the end of the file belongs after the last word, not on an empty line.
    start = min(error.span.start, len(lines.text.rstrip()))
    return UopcError(
        "parse-error",
        message,
        hint=hint,
        location=lines.location(start),
        excerpt=lines.excerpt(start, error.span.end),
    )


def _words(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def clip_message(message: str) -> str:
    """A message made by others, cut to MESSAGE_LIMIT and safe to show."""
    shown = "\n".join(map(printable, message[:MESSAGE_LIMIT].splitlines()))
    return shown if len(message) <= MESSAGE_LIMIT else shown + " …"
