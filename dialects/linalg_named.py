"""Named ops of linalg that xDSL 0.75 does not have, so that their text is read.

`linalg.matvec ins(%a, %x : A, B) outs(%y : C) -> C`, with `{strides = …}` before `ins` where there
are windows. In the generic form each has a region, which says nothing that the name does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i32, i64
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.type import get_element_type_or_self

NAMES = (
    "batch_matmul batch_matvec batch_vecmat matvec vecmat dot conv_1d conv_2d conv_3d "
    "conv_1d_nwc_wcf conv_1d_ncw_fcw conv_3d_ndhwc_dhwcf conv_3d_ncdhw_fcdhw "
    "depthwise_conv_1d_nwc_wc depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nchw_chw "
    "depthwise_conv_2d_nhwc_hwcm pooling_nhwc_sum pooling_nhwc_max pooling_nhwc_min "
    "pooling_nchw_sum pooling_nwc_sum pooling_nwc_max pooling_nwc_min pooling_ncw_sum "
    "pooling_ncw_max pooling_ndhwc_sum pooling_ndhwc_max pooling_ndhwc_min "
    "abs ceil floor negf square tanh rsqrt reciprocal round erf div div_unsigned powf"
)


class NamedOp(IRDLOperation):
    """An op that reads `inputs` and what `outputs` held before."""

    inputs = var_operand_def()
    outputs = var_operand_def()
    res = var_result_def()
    bodies = var_region_def()
    strides = opt_prop_def(Attribute)
    dilations = opt_prop_def(Attribute)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        given = {n: a for n, a in self.properties.items() if n in ("strides", "dilations")}
        if given:
            printer.print_string(" ")
            printer.print_attr_dict(given)
        _print_operands(printer, "ins", self.inputs)
        _print_operands(printer, "outs", self.outputs)
        _print_results(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> NamedOp:
        properties = dict(parser.parse_optional_attr_dict())
        inputs, outputs = _operands(parser, "ins"), _operands(parser, "outs")
        segments = DenseArrayBase.from_list(i32, [len(inputs), len(outputs)])
        return cls.create(
            operands=[*inputs, *outputs],
            result_types=_results(parser),
            properties={**properties, "operandSegmentSizes": segments},
        )


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """linalg.softmax dimension(1) ins(%x : T) outs(%y : T) -> T: along one axis."""

    name = "linalg.softmax"
    input = operand_def()
    output = operand_def()
    res = var_result_def()
    dimension = prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dimension({self.dimension.value.data})")
        _print_operands(printer, "ins", [self.input])
        _print_operands(printer, "outs", [self.output])
        _print_results(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = IntegerAttr(parser.parse_integer(), i64)
        operands = [*_operands(parser, "ins"), *_operands(parser, "outs")]
        if len(operands) != 2:
            parser.raise_error(f"linalg.softmax has one input and one output, got {len(operands)}")
        return cls.create(
            operands=operands,
            result_types=_results(parser),
            properties={"dimension": dimension},
        )


@irdl_op_definition
class MapOp(IRDLOperation):
    """linalg.map ins(%x, %y : T, T) outs(%z : T) (%a : E, %b : E) { … }: a body over elements.

    The short form, `linalg.map { arith.addf } ins(…) outs(…)`, is read as the long one. The result
    has the type of the output.
    """

    name = "linalg.map"
    inputs = var_operand_def()
    init = operand_def()
    res = var_result_def()
    body = region_def("single_block")

    def print(self, printer: Printer) -> None:
        if self.inputs:
            _print_operands(printer, "ins", self.inputs)
        _print_operands(printer, "outs", [self.init])
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        word, position = None, parser.pos
        if parser.parse_optional_punctuation("{"):
            word = parser.parse_identifier()
            position = parser.pos
            parser.parse_punctuation("}")
        inputs, outputs = _operands(parser, "ins"), _operands(parser, "outs")
        if len(outputs) != 1:
            parser.raise_error(f"linalg.map has one output, got {len(outputs)}")
        if word is None:
            paren = parser.Delimiter.PAREN
            arguments = parser.parse_comma_separated_list(paren, parser.parse_argument)
            body = parser.parse_region(arguments)
        else:
            body = _short_body(parser, word, position, inputs, outputs[0])
        on_tensors = all(isinstance(v.type, TensorType) for v in outputs)
        return cls.create(
            operands=[*inputs, *outputs],
            result_types=[v.type for v in outputs] if on_tensors else [],
            regions=[body],
        )


def _short_body(
    parser: Parser, word: str, position: int, inputs: list[SSAValue], output: SSAValue
) -> Region:
    """One op of the elements."""
    op = parser.ctx.get_optional_op(word)
    if op is None:
        parser.raise_error(f"unregistered operation {word!r}", position, position)
    types = [get_element_type_or_self(v.type) for v in inputs]
    block = Block(arg_types=types)
    result = [get_element_type_or_self(output.type)]
    made = op.create(operands=block.args, result_types=result)
    block.add_ops([made, YieldOp(*made.results)])
    return Region(block)


def _results(parser: Parser) -> list[Attribute]:
    if not parser.parse_optional_punctuation("->"):
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def _print_results(printer: Printer, op: Operation) -> None:
    if op.results:
        printer.print_string(" -> ")
        printer.print_list([v.type for v in op.results], printer.print_attribute)


def _print_operands(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    printer.print_string(f" {word}(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([v.type for v in values], printer.print_attribute)
    printer.print_string(")")


def _operands(parser: Parser, word: str) -> list[SSAValue]:
    if not parser.parse_optional_keyword(word):
        return []
    none = parser.Delimiter.NONE
    parser.parse_punctuation("(")
    names = parser.parse_comma_separated_list(none, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(none, parser.parse_type)
    position = parser.pos
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(names, types, position))


def _op(name: str) -> type[Operation]:
    members: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"linalg.{name}: see MLIR's linalg.",
        "name": f"linalg.{name}",
    }
    title = "".join(part.capitalize() for part in name.split("_"))
    return irdl_op_definition(cast("type[NamedOp]", type(f"{title}Op", (NamedOp,), members)))


ExtendedLinalg = Dialect(
    "linalg",
    [*Linalg.operations, MapOp, SoftmaxOp, *(_op(name) for name in NAMES.split())],
    [*Linalg.attributes],
)
"""xDSL's linalg, and the ops above."""
