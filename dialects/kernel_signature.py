"""What plans and kernels share: a symbol with sizes and buffers as block arguments, and its text.

@name sizes(%n = n = 1 to 64) ins(%x : memref<?x8xf32> of [n + 1, 8])
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    MemRefType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import IRDLOperation, prop_def, region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.index_expr import Expr, SymbolVar
from uopc.dialects.sizes import (
    Size,
    SizesAttr,
    parse_sizes,
    parse_symbol,
    print_sizes,
    sizes_of,
    tensor_type,
)
from uopc.dialects.tensor_elementwise import element_of

Buffer = MemRefType[Attribute]


def buffer_type(element: Attribute, sizes: Sequence[Size]) -> Buffer:
    """The row-major memref type of a shape; symbolic sizes become `?`."""
    return _memref(element, tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes))


@lru_cache(maxsize=4096)
def _memref(element: Attribute, shape: tuple[int, ...]) -> Buffer:
    return MemRefType(element, shape)  # 100 us of checks


def buffer_of(value: SSAValue) -> Buffer:
    """The memref type of a value. Raises VerifyException for any other type."""
    if not isinstance(value.type, MemRefType):
        raise VerifyException(f"expected a memref, got {value.type}")
    return cast(Buffer, value.type)


def check_sizes(buffer: Buffer, sizes: SizesAttr | None, what: str) -> None:
    """Verify that the sizes given for a buffer are those of its type, and what it holds."""
    shape = buffer.get_shape()
    if sizes is None:
        if DYNAMIC_INDEX in shape:
            raise VerifyException(f"{what}: {buffer} has a `?` without 'of [sizes]'")
        given: Sequence[Size] = shape
    else:
        given = sizes.data
    if tuple(s if isinstance(s, int) else DYNAMIC_INDEX for s in given) != shape:
        raise VerifyException(f"{what}: sizes [{', '.join(map(str, given))}] do not fit {buffer}")
    tensor = tensor_type(buffer.element_type, tuple(given))
    sizes_of(tensor)
    element_of(tensor)


def print_buffer(
    printer: Printer, buffer: Attribute, sizes: Sequence[Size], *, with_bounds: bool = False
) -> None:
    """Print `memref<?x8xf32> of [n, 8]`, followed by the symbols' bounds if asked for."""
    printer.print_attribute(buffer)
    if all(isinstance(s, int) for s in sizes):
        return
    printer.print_string(" of ")
    if with_bounds:
        print_sizes(printer, sizes)
    else:
        printer.print_string("[" + ", ".join(map(str, sizes)) + "]")


def parse_buffer(parser: Parser, known: Mapping[str, Expr] | None) -> tuple[Buffer, SizesAttr]:
    """Parse what `print_buffer` prints; without `known` symbols their bounds follow."""
    position = parser.pos
    buffer = parser.parse_type()
    if not isinstance(buffer, MemRefType):
        parser.raise_error(f"expected a memref type, got {buffer}", position)
    typed = cast(Buffer, buffer)
    if parser.parse_optional_keyword("of"):
        return typed, SizesAttr(parse_sizes(parser, known))
    shape = typed.get_shape()
    if DYNAMIC_INDEX in shape:
        parser.raise_error(f"{typed} has a `?`: expected 'of [sizes]' after it", position)
    return typed, SizesAttr(shape)


class BufferedOp(IRDLOperation, ABC):
    """A plan or a kernel: a symbol with sizes and buffers as block arguments."""

    sym_name = prop_def(StringAttr)
    symbols = prop_def(SizesAttr)
    """One symbol a leading `index` argument."""
    buffer_sizes = prop_def(ArrayAttr[SizesAttr])
    """The sizes of each buffer argument, in order."""
    body = region_def("single_block")

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def symbol_vars(self) -> tuple[SymbolVar, ...]:
        """The symbols, in the order of their arguments."""
        return tuple(cast(SymbolVar, s.leaf) for s in self.symbols.data if isinstance(s, Expr))

    @property
    def size_arguments(self) -> Sequence[SSAValue]:
        return self.block.args[: len(self.symbols.data)]

    @property
    def buffers(self) -> Sequence[SSAValue]:
        """The buffer arguments."""
        return self.block.args[len(self.symbols.data) :]

    def sizes_of_buffer(self, position: int) -> tuple[Size, ...]:
        return self.buffer_sizes.data[position].data

    def verify_(self) -> None:
        for s in self.symbols.data:
            if not (isinstance(s, Expr) and isinstance(s.leaf, SymbolVar)):
                raise VerifyException(f"{self.name}: expected a symbol, got {s}")
        if len(set(self.symbols.data)) != len(self.symbols.data):
            raise VerifyException(f"{self.name}: a symbol is listed twice")
        if len(self.size_arguments) != len(self.symbols.data):
            raise VerifyException(
                f"{self.name}: expected an argument for each of {len(self.symbols.data)} symbols, "
                f"got {len(self.size_arguments)}"
            )
        for argument in self.size_arguments:
            if not isinstance(argument.type, IndexType):
                raise VerifyException(f"a size argument is an index, got {argument.type}")
        if len(self.buffers) != len(self.buffer_sizes.data):
            raise VerifyException(
                f"{self.name}: expected sizes for {len(self.buffers)} buffers, got "
                f"{len(self.buffer_sizes.data)}"
            )
        known = set(self.symbol_vars)
        for position, value in enumerate(self.buffers):
            sizes = self.buffer_sizes.data[position]
            check_sizes(buffer_of(value), sizes, f"argument {position}")
            for s in sizes.data:
                if isinstance(s, Expr) and not s.leaves <= known:
                    raise VerifyException(f"argument {position}: {s} is not over the sizes")

    def print_sizes_clause(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.symbols.data:
            printer.print_string(" sizes(")
            for position, (value, s) in enumerate(
                zip(self.size_arguments, self.symbol_vars, strict=True)
            ):
                printer.print_string(", " if position else "")
                printer.print_ssa_value(value)
                printer.print_string(f" = {s.name} = {s.lower} to {s.upper}")
            printer.print_string(")")

    def print_arguments(self, printer: Printer, word: str, first: int, last: int) -> None:
        printer.print_string(f" {word}(")
        for position in range(first, last):
            printer.print_string(", " if position > first else "")
            printer.print_ssa_value(self.buffers[position])
            printer.print_string(" : ")
            print_buffer(printer, self.buffers[position].type, self.sizes_of_buffer(position))
        printer.print_string(")")


class Signature:
    """What is parsed between a symbol's name and its body."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.symbols: list[Expr] = []
        self.arguments: list[Parser.Argument] = []
        self.sizes: list[SizesAttr] = []
        if parser.parse_optional_keyword("sizes"):
            parser.parse_comma_separated_list(parser.Delimiter.PAREN, self._parse_symbol)

    def _parse_symbol(self) -> None:
        name = self.parser.parse_argument(expect_type=False)
        self.parser.parse_punctuation("=")
        self.symbols.append(parse_symbol(self.parser))
        self.arguments.append(name.resolve(IndexType()))

    def parse_buffers(self, word: str) -> int:
        """Parse `word(%a : M, …)`; how many there are."""
        self.parser.parse_keyword(word)
        delimiter = self.parser.Delimiter.PAREN
        return len(self.parser.parse_comma_separated_list(delimiter, self._parse_buffer))

    def _parse_buffer(self) -> None:
        name = self.parser.parse_argument(expect_type=False)
        self.parser.parse_punctuation(":")
        known = {str(s): s for s in self.symbols}
        buffer, sizes = parse_buffer(self.parser, known)
        self.arguments.append(name.resolve(buffer))
        self.sizes.append(sizes)

    def properties(self, name: StringAttr) -> dict[str, Attribute]:
        return {
            "sym_name": name,
            "symbols": SizesAttr(tuple(self.symbols)),
            "buffer_sizes": ArrayAttr(self.sizes),
        }
