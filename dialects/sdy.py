"""sdy: where values lie on several devices, as JAX writes it around random keys. Read, and ignored.

    sdy.mesh @NAME = <…>
    sdy.sharding_constraint %x <…> : type
    #sdy.sharding<…>                        an attribute of arguments and results

Programs here run on one device, so that a constraint is the identity. What stands between the
angle brackets is kept as text.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolOpInterface
from xdsl.utils.mlir_lexer import MLIRTokenKind


def parse_bracketed(parser: AttrParser) -> str:
    """The text between `<` and the `>` that closes it."""
    parser.parse_punctuation("<")
    begin, end, depth = parser.pos, parser.pos, 1
    while depth:
        token = parser._consume_token()  # pyright: ignore[reportPrivateUsage] (any token will do)
        if token.kind == MLIRTokenKind.EOF:
            parser.raise_error("expected '>'", begin, end)
        depth += {"<": 1, ">": -1}.get(token.text, 0)
        end = token.span.start
    return parser.lexer.input.content[begin:end].strip()


@irdl_attr_definition
class ShardingAttr(ParametrizedAttribute):
    """`#sdy.sharding<@mesh, [{}, {"x"}]>`."""

    name = "sdy.sharding"
    text: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[StringAttr]:
        return [StringAttr(parse_bracketed(parser))]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text.data}>")


@irdl_op_definition
class MeshOp(IRDLOperation):
    """`sdy.mesh @mesh = <["x"=2]>`: devices and their names."""

    name = "sdy.mesh"
    sym_name = prop_def(StringAttr)
    mesh = prop_def(AnyAttr())
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> MeshOp:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = StringAttr(parse_bracketed(parser))
        attributes = parser.parse_optional_attr_dict()
        return cls.create(properties={"sym_name": name, "mesh": mesh}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        text = self.mesh.data if isinstance(self.mesh, StringAttr) else ""
        printer.print_string(f" @{self.sym_name.data} = <{text}>")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ShardingConstraintOp(IRDLOperation):
    """`sdy.sharding_constraint %x <@mesh, [{}]> : type`: the identity."""

    name = "sdy.sharding_constraint"
    input = operand_def()
    sharding = prop_def(AnyAttr())
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ShardingConstraintOp:
        operand = parser.parse_unresolved_operand()
        sharding = ShardingAttr(StringAttr(parse_bracketed(parser)))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(operand, type_)],
            result_types=[type_],
            properties={"sharding": sharding},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.input)
        text = self.sharding.text.data if isinstance(self.sharding, ShardingAttr) else ""
        printer.print_string(f" <{text}>")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


SDY = Dialect("sdy", [MeshOp, ShardingConstraintOp], [ShardingAttr])
