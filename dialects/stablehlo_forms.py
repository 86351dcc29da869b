"""The forms of StableHLO's ops that no row of items describes.

constant dense<1.0> : tensor<4xf32>
slice %x [0:8, 2:10:2] : (tensor<8x10xf32>) -> tensor<8x4xf32>
dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : …
convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]} : …
reduce(%x init: %i) applies stablehlo.add across dimensions = [1] : …
reduce(%x init: %i) across dimensions = [1] : … reducer(%a: T, %b: T) { … }
while(%i = %x) : T cond { … } do { … }
custom_call @name(%x) {…} : …
composite "name" %x {…} : …
reduce_precision %x, format = e5m10 : tensor<4xf32>
"""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from uopc.dialects.stablehlo_attributes import (
    ConvAttr,
    DotAlgorithmAttr,
    DotAttr,
    PrecisionAttr,
    WordAttr,
    axes_attr,
    field_text,
    int_list,
    parse_conv_axes,
)
from uopc.dialects.stablehlo_text import (
    Form,
    HloOp,
    Properties,
    build,
    integer_of,
    list_attr,
    parse_operands,
    parse_tail,
    parse_types,
    print_tail,
    print_types,
)


def _parse_ints(parser: Parser) -> list[int]:
    return parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: int(parser.parse_integer())
    )


# constant


def _parse_constant(cls: type[HloOp], parser: Parser) -> HloOp:
    properties: Properties = {}
    attributes = parse_tail(parser, cls, properties)
    position = parser.pos
    value = properties["value"] = parser.parse_attribute()
    if not isinstance(value, DenseIntOrFPElementsAttr):
        parser.raise_error(f"{cls.name}: expected dense<…>, got {value}", position, parser.pos)
    tensor = cast("DenseIntOrFPElementsAttr[Any]", value).type
    return build(cls, (), [cast(Attribute, tensor)], properties, attributes)


def _print_constant(op: HloOp, printer: Printer) -> None:
    print_tail(op, printer, ["value"])
    printer.print_string(" ")
    printer.print_attribute(op.properties["value"])


# slice


def _parse_slice(cls: type[HloOp], parser: Parser) -> HloOp:
    operand = parser.parse_unresolved_operand()
    ranges = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: _parse_range(parser)
    )
    names = ("start_indices", "limit_indices", "strides")
    columns = zip(*ranges, strict=True) if ranges else ((), (), ())
    properties: Properties = {n: list_attr(c) for n, c in zip(names, columns, strict=True)}
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, [operand])
    return build(cls, values, results, properties, attributes)


def _parse_range(parser: Parser) -> tuple[int, int, int]:
    start = int(parser.parse_integer())
    parser.parse_punctuation(":")
    limit = int(parser.parse_integer())
    step = int(parser.parse_integer()) if parser.parse_optional_punctuation(":") else 1
    return start, limit, step


def _print_slice(op: HloOp, printer: Printer) -> None:
    columns = [int_list(op.properties[n]) for n in ("start_indices", "limit_indices", "strides")]
    parts = [f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in zip(*columns, strict=True)]
    printer.print_string(" ")
    printer.print_ssa_value(op.operands[0])
    printer.print_string(f" [{', '.join(parts)}]")
    print_tail(op, printer, ["start_indices", "limit_indices", "strides"])
    print_types(op, printer)


# dot, dot_general

_DOT_PARTS = {"batching_dims": "batching", "contracting_dims": "contracting"}


def _parse_dot(cls: type[HloOp], parser: Parser) -> HloOp:
    operands = parse_operands(parser)
    properties: Properties = {}
    dims: Properties = {}
    while (word := parser.parse_optional_identifier()) is not None:
        parser.parse_punctuation("=")
        if word in _DOT_PARTS:
            dims[f"lhs_{_DOT_PARTS[word]}_dimensions"] = axes_attr(_parse_ints(parser))
            parser.parse_keyword("x")
            dims[f"rhs_{_DOT_PARTS[word]}_dimensions"] = axes_attr(_parse_ints(parser))
        elif word == "precision":
            words = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_identifier
            )
            properties["precision_config"] = ArrayAttr([PrecisionAttr.of(w) for w in words])
        elif word == "algorithm":
            properties["algorithm"] = DotAlgorithmAttr.new(
                DotAlgorithmAttr.parse_parameters(parser)
            )
        else:
            parser.raise_error(
                f"'{word}' in {cls.name}: expected batching_dims, contracting_dims, precision or "
                "algorithm"
            )
        if parser.parse_optional_punctuation(",") is None:
            break
    if cls.name.endswith("dot_general"):
        properties["dot_dimension_numbers"] = DotAttr.of(dims)
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, operands)
    return build(cls, values, results, properties, attributes)


def _print_dot(op: HloOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    dims = op.properties.get("dot_dimension_numbers")
    if isinstance(dims, DotAttr):
        for word, part in _DOT_PARTS.items():
            lhs, rhs = dims.axes(f"lhs_{part}_dimensions"), dims.axes(f"rhs_{part}_dimensions")
            if lhs or part == "contracting":
                printer.print_string(f", {word} = {list(lhs)} x {list(rhs)}")
    precision = op.properties.get("precision_config")
    if isinstance(precision, ArrayAttr):
        words = [cast(WordAttr, each).word.data for each in cast("ArrayAttr[Any]", precision).data]
        printer.print_string(f", precision = [{', '.join(words)}]")
    algorithm = op.properties.get("algorithm")
    if isinstance(algorithm, DotAlgorithmAttr):
        printer.print_string(", algorithm = ")
        algorithm.print_parameters(printer)
    print_tail(op, printer, ["dot_dimension_numbers", "precision_config", "algorithm"])
    print_types(op, printer)


# convolution

_WINDOW = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def _parse_convolution(cls: type[HloOp], parser: Parser) -> HloOp:
    parser.parse_punctuation("(")
    operands = parse_operands(parser)
    parser.parse_punctuation(")")
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    properties: Properties = {"dimension_numbers": ConvAttr.of(parse_conv_axes(parser))}
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")
    parser.parse_comma_separated_list(
        parser.Delimiter.BRACES, lambda: _parse_window(cls, parser, properties)
    )
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, operands)
    return build(cls, values, results, properties, attributes)


def _parse_window(cls: type[HloOp], parser: Parser, properties: Properties) -> None:
    word = parser.parse_identifier()
    if word not in _WINDOW:
        parser.raise_error(f"'{word}' in {cls.name}: expected one of {', '.join(_WINDOW)}")
    parser.parse_punctuation("=")
    if word == "pad":
        pairs = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: _parse_ints(parser)
        )
        flat = [value for pair in pairs for value in pair]
        tensor = TensorType(i64, [len(pairs), 2])
        properties["padding"] = DenseIntOrFPElementsAttr.from_list(tensor, flat)
        return
    values = _parse_ints(parser)
    if word == "reverse":
        properties[_WINDOW[word]] = DenseArrayBase.from_list(i1, values)
    else:
        properties[_WINDOW[word]] = list_attr(values)


def _print_convolution(op: HloOp, printer: Printer) -> None:
    printer.print_string("(")
    printer.print_list(op.operands, printer.print_ssa_value)
    axes = cast(ConvAttr, op.properties["dimension_numbers"]).text()
    parts: list[str] = []
    for word, name in _WINDOW.items():
        if (value := op.properties.get(name)) is None:
            continue
        numbers = list(int_list(value))
        if word == "pad":
            pairs = [numbers[k : k + 2] for k in range(0, len(numbers), 2)]
            parts.append(f"pad = {pairs}")
        elif word == "reverse":
            flags = ", ".join("true" if n else "false" for n in numbers)
            parts.append(f"reverse = [{flags}]")
        else:
            parts.append(f"{word} = {numbers}")
    printer.print_string(f") dim_numbers = {axes}, window = {{{', '.join(parts)}}}")
    print_tail(op, printer, ["dimension_numbers", *_WINDOW.values()])
    print_types(op, printer)


# reduce


def _parse_reduce(cls: type[HloOp], parser: Parser) -> HloOp:
    inputs: list[UnresolvedOperand] = []
    inits: list[UnresolvedOperand] = []
    while True:
        parser.parse_punctuation("(")
        inputs.append(parser.parse_unresolved_operand())
        parser.parse_keyword("init")
        parser.parse_punctuation(":")
        inits.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(")")
        if parser.parse_optional_punctuation(",") is None:
            break
    applied = parser.parse_identifier() if parser.parse_optional_keyword("applies") else None
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    properties: Properties = {"dimensions": list_attr(_parse_ints(parser))}
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, [*inputs, *inits])
    if applied is not None:
        region = Region(_applied_block(parser, applied, values[-1].type))
    else:
        region = _parse_reducer(parser)
    return build(cls, values, results, properties, attributes, [region])


def _applied_block(parser: Parser, name: str, scalar: Attribute) -> Block:
    """The body `return name(a, b)`."""
    found = parser.ctx.get_optional_op(name)
    returned = parser.ctx.get_optional_op("stablehlo.return")
    if found is None or returned is None:
        parser.raise_error(f"operation {name} is not registered")
    block = Block(arg_types=[scalar, scalar])
    op = found.create(operands=block.args, result_types=[scalar])
    block.add_ops([op, returned.create(operands=[op.results[0]])])
    return block


def _parse_reducer(parser: Parser) -> Region:
    """`reducer(%a0: T, %b0: T) (%a1: U, %b1: U) { … }`: the arguments are a0, a1, b0, b1."""
    parser.parse_keyword("reducer")
    firsts: list[Parser.Argument] = []
    seconds: list[Parser.Argument] = []
    while parser.parse_optional_punctuation("("):
        firsts.append(parser.parse_argument())
        parser.parse_punctuation(",")
        seconds.append(parser.parse_argument())
        parser.parse_punctuation(")")
    return parser.parse_region([*firsts, *seconds])


def _print_reduce(op: HloOp, printer: Printer) -> None:
    count = len(op.operands) // 2
    for position in range(count):
        printer.print_string(", (" if position else "(")
        printer.print_ssa_value(op.operands[position])
        printer.print_string(" init: ")
        printer.print_ssa_value(op.operands[count + position])
        printer.print_string(")")
    printer.print_string(f" across dimensions = {list(int_list(op.properties['dimensions']))}")
    print_tail(op, printer, ["dimensions"])
    print_types(op, printer)
    printer.print_string(" reducer")
    block = op.regions[0].block
    for position in range(count):
        printer.print_string(" (" if position else "(")
        pair = (block.args[position], block.args[count + position])
        printer.print_list(pair, printer.print_block_argument)
        printer.print_string(")")
    printer.print_string(" ")
    printer.print_region(op.regions[0], print_entry_block_args=False)


# while


def _parse_while(cls: type[HloOp], parser: Parser) -> HloOp:
    names: list[Any] = []
    operands: list[UnresolvedOperand] = []

    def assignment() -> None:
        names.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        operands.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, assignment)
    values: list[SSAValue] = []
    if operands:
        position = parser.pos
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = list(parser.resolve_operands(operands, types, position))
    arguments = [n.resolve(v.type) for n, v in zip(names, values, strict=True)]
    attributes = parser.parse_optional_attr_dict_with_keyword()
    parser.parse_keyword("cond")
    condition = parser.parse_region(arguments)
    parser.parse_keyword("do")
    body = parser.parse_region(arguments)
    data: Properties = dict(attributes.data) if attributes is not None else {}
    return build(cls, values, [v.type for v in values], {}, data, [condition, body])


def _print_while(op: HloOp, printer: Printer) -> None:
    """Both regions' arguments are printed under the names of the body's."""
    printer.print_string("(")
    condition, body = (region.block for region in op.regions)
    for position, (argument, operand) in enumerate(zip(body.args, op.operands, strict=True)):
        printer.print_string(", " if position else "")
        name = printer.print_ssa_value(argument)
        printer._ssa_values[condition.args[position]] = name  # pyright: ignore[reportPrivateUsage] -- one name for two arguments
        printer.print_string(" = ")
        printer.print_ssa_value(operand)
    printer.print_string(")")
    if op.operands:
        printer.print_string(" : ")
        printer.print_list([o.type for o in op.operands], printer.print_attribute)
    if op.attributes:
        printer.print_string(" attributes")
        printer.print_op_attributes(op.attributes)
    for word, region in zip((" cond ", " do "), op.regions, strict=True):
        printer.print_string(word)
        printer.print_region(region, print_entry_block_args=False)


# custom_call, composite, reduce_precision, scan


def _parse_custom_call(cls: type[HloOp], parser: Parser) -> HloOp:
    properties: Properties = {"call_target_name": parser.parse_symbol_name()}
    parser.parse_punctuation("(")
    operands = parse_operands(parser)
    parser.parse_punctuation(")")
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, operands)
    return build(cls, values, results, properties, attributes)


def _print_custom_call(op: HloOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(cast(StringAttr, op.properties["call_target_name"]).data)
    printer.print_string("(")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_string(")")
    print_tail(op, printer, ["call_target_name"])
    _print_function_type(op, printer)


def _parse_composite(cls: type[HloOp], parser: Parser) -> HloOp:
    properties: Properties = {"name": StringAttr(parser.parse_str_literal())}
    operands = parse_operands(parser)
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, operands)
    return build(cls, values, results, properties, attributes)


def _print_composite(op: HloOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_attribute(op.properties["name"])
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    print_tail(op, printer, ["name"])
    _print_function_type(op, printer)


def _print_function_type(op: HloOp, printer: Printer) -> None:
    printer.print_string(" : ")
    printer.print_function_type([o.type for o in op.operands], [r.type for r in op.results])


def _parse_reduce_precision(cls: type[HloOp], parser: Parser) -> HloOp:
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    parser.parse_keyword("format")
    parser.parse_punctuation("=")
    position = parser.pos
    word = parser.parse_identifier()
    match = re.fullmatch(r"e(\d{1,4})m(\d{1,4})", word)
    if match is None:
        parser.raise_error(f"'{word}' is no float format: expected e5m10 or the like", position)
    names = ("exponent_bits", "mantissa_bits")
    properties: Properties = {
        name: IntegerAttr(int(bits), i32) for name, bits in zip(names, match.groups(), strict=True)
    }
    attributes = parse_tail(parser, cls, properties)
    values, results = parse_types(parser, [operand])
    return build(cls, values, results, properties, attributes)


def _print_reduce_precision(op: HloOp, printer: Printer) -> None:
    names = ("exponent_bits", "mantissa_bits")
    exponent, mantissa = (integer_of(op.properties.get(name)) for name in names)
    printer.print_string(" ")
    printer.print_ssa_value(op.operands[0])
    printer.print_string(f", format = e{exponent}m{mantissa}")
    print_tail(op, printer, names)
    print_types(op, printer)


def _parse_scan(cls: type[HloOp], parser: Parser) -> HloOp:
    parser.parse_punctuation("(")
    inputs = parse_operands(parser)
    parser.parse_punctuation(")")
    parser.parse_keyword("inits")
    parser.parse_punctuation("(")
    inits = parse_operands(parser)
    parser.parse_punctuation(")")
    parser.parse_keyword("dimension")
    parser.parse_punctuation("=")
    properties: Properties = {"dimension": IntegerAttr(int(parser.parse_integer()), i64)}
    given = parser.parse_optional_attr_dict_with_keyword()
    attributes: Properties = dict(given.data) if given is not None else {}
    for name in list(attributes):
        if name in cls.PROPERTIES:
            properties[name] = attributes.pop(name)
    region = parser.parse_region()
    values, results = parse_types(parser, [*inputs, *inits])
    segments = [len(inputs), len(inits)], [len(results) - len(inits), len(inits)]
    for name, sizes in zip(("operandSegmentSizes", "resultSegmentSizes"), segments, strict=True):
        properties[name] = DenseArrayBase.from_list(i32, sizes)
    return build(cls, values, results, properties, attributes, [region])


def _print_scan(op: HloOp, printer: Printer) -> None:
    count = int_list(op.properties["operandSegmentSizes"])[0]
    printer.print_string("(")
    printer.print_list(op.operands[:count], printer.print_ssa_value)
    printer.print_string(") inits (")
    printer.print_list(op.operands[count:], printer.print_ssa_value)
    printer.print_string(f") dimension = {field_text(op.properties['dimension'])}")
    shown = ("dimension", "operandSegmentSizes", "resultSegmentSizes")
    left = {n: v for n, v in op.properties.items() if n not in shown} | op.attributes
    if left:
        printer.print_string(" attributes")
        printer.print_op_attributes(left)
    printer.print_string(" ")
    printer.print_region(op.regions[0])
    _print_function_type(op, printer)


SPECIAL_FORMS: dict[str, Form] = {
    "constant": Form(_parse_constant, _print_constant),
    "slice": Form(_parse_slice, _print_slice),
    "dot": Form(_parse_dot, _print_dot),
    "convolution": Form(_parse_convolution, _print_convolution),
    "reduce": Form(_parse_reduce, _print_reduce),
    "while": Form(_parse_while, _print_while),
    "custom_call": Form(_parse_custom_call, _print_custom_call),
    "composite": Form(_parse_composite, _print_composite),
    "reduce_precision": Form(_parse_reduce_precision, _print_reduce_precision),
    "scan": Form(_parse_scan, _print_scan),
}
"""By the names that the table of ops in stablehlo.py uses."""
