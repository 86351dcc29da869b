"""Named ops of linalg that xDSL 0.75 does not have, so that their text is read.

`linalg.matvec ins(%a, %x : A, B) outs(%y : C) -> C`, with `{strides = …}` before `ins` where there
are windows. In the generic form each has a region, which says nothing that the name does not.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.dialects.linalg import Linalg
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

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
        for word, values in (("ins", self.inputs), ("outs", self.outputs)):
            printer.print_string(f" {word}(")
            printer.print_list(values, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([v.type for v in values], printer.print_attribute)
            printer.print_string(")")
        if self.res:
            printer.print_string(" -> ")
            printer.print_list([v.type for v in self.res], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> NamedOp:
        properties = dict(parser.parse_optional_attr_dict())
        inputs, outputs = _operands(parser, "ins"), _operands(parser, "outs")
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            none = parser.Delimiter.NONE
            results = parser.parse_comma_separated_list(none, parser.parse_type)
        segments = DenseArrayBase.from_list(i32, [len(inputs), len(outputs)])
        return cls.create(
            operands=[*inputs, *outputs],
            result_types=results,
            properties={**properties, "operandSegmentSizes": segments},
        )


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
    [*Linalg.operations, *(_op(name) for name in NAMES.split())],
    [*Linalg.attributes],
)
"""xDSL's linalg, and the ops above."""
