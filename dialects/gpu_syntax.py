"""The text that MLIR prints of its gpu dialect, read: xDSL 0.75 knows the generic form only.

    gpu.module @kernels {
      gpu.func @k(%x: memref<64xf32>) workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
          kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
        %t = gpu.thread_id x
        gpu.barrier
        %r, %ok = gpu.shuffle xor %v, %offset, %width : f32
        gpu.return
      }
    }
    gpu.launch_func @kernels::@k blocks in (%n, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<64xf32>)
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) { … gpu.terminator }

Memory that a function or a launch attributes to a workgroup or to a thread becomes memref.alloca at
its start, which says the same. What is printed stays the generic form, which mlir-opt reads.
`install()` adds the parsers in place, once, for the whole process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import gpu, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    MemRefType,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser

from uopc.dialects.gpu_extensions import ShuffleModeEnum, ShuffleOp

_NO_ASYNC = "uopc reads launches that the host waits for: leave out 'async'"


@functools.cache
def install() -> None:
    """Add the parsers. A second call does nothing."""
    parsers: dict[type[Operation], Callable[[Parser], Operation]] = {
        gpu.ModuleOp: _module,
        gpu.FuncOp: _function,
        gpu.LaunchOp: _launch,
        gpu.LaunchFuncOp: _launch_func,
        gpu.ReturnOp: _return,
        ShuffleOp: _shuffle,
        gpu.BarrierOp: _plain(gpu.BarrierOp),
        gpu.TerminatorOp: _plain(gpu.TerminatorOp),
    }
    for kind in (gpu.ThreadIdOp, gpu.BlockIdOp, gpu.BlockDimOp, gpu.GridDimOp, gpu.GlobalIdOp):
        parsers[kind] = _dimension(kind)
    for kind in (gpu.LaneIdOp, gpu.SubgroupIdOp, gpu.SubgroupSizeOp, gpu.NumSubgroupsOp):
        parsers[kind] = _number(kind)
    for kind, parse in parsers.items():
        kind.parse = classmethod(_method(parse))  # pyright: ignore[reportAttributeAccessIssue] -- in place


def _method(parse: Callable[[Parser], Operation]) -> Callable[[Any, Parser], Operation]:
    def parse_op(cls: Any, parser: Parser) -> Operation:
        return parse(parser)

    return parse_op


def _plain(kind: type[Operation]) -> Callable[[Parser], Operation]:
    def parse(parser: Parser) -> Operation:
        return kind.create(attributes=parser.parse_optional_attr_dict())

    return parse


def _skip_bound(parser: Parser) -> None:
    if parser.parse_optional_keyword("upper_bound") is not None:
        parser.parse_integer()


def _dimension(kind: Any) -> Callable[[Parser], Operation]:
    def parse(parser: Parser) -> Operation:
        made = kind(gpu.DimensionAttr(parser.parse_str_enum(gpu.DimensionEnum)))
        _skip_bound(parser)
        return made

    return parse


def _number(kind: Any) -> Callable[[Parser], Operation]:
    def parse(parser: Parser) -> Operation:
        _skip_bound(parser)
        if parser.parse_optional_punctuation(":") is not None:
            parser.parse_type()
        return kind()

    return parse


def _shuffle(parser: Parser) -> Operation:
    mode = parser.parse_str_enum(ShuffleModeEnum)
    operands = [parser.parse_unresolved_operand()]
    for _ in range(2):
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    value, offset, width = parser.resolve_operands(operands, [type_, i32, i32], parser.pos)
    return ShuffleOp(value, offset, width, mode)


def _return(parser: Parser) -> Operation:
    first = parser.parse_optional_unresolved_operand()
    if first is None:
        return gpu.ReturnOp([])
    operands = [first]
    while parser.parse_optional_punctuation(",") is not None:
        operands.append(parser.parse_unresolved_operand())
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    return gpu.ReturnOp(parser.resolve_operands(operands, types, parser.pos))


# Modules and functions.


def _module(parser: Parser) -> Operation:
    name = parser.parse_symbol_name()
    attributes = parser.parse_optional_attr_dict_with_keyword()
    body = parser.parse_optional_region() or Region()
    if not body.blocks:
        body.add_block(Block())
    return gpu.ModuleOp.create(
        properties={"sym_name": name},
        attributes=dict(attributes.data) if attributes else {},
        regions=[body],
    )


Argument = Parser.Argument


def _attributed(parser: Parser) -> list[Argument]:
    """The memory that `workgroup(…)` and `private(…)` name."""
    found: list[Argument] = []
    for word in ("workgroup", "private"):
        if parser.parse_optional_keyword(word) is not None:
            found += parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_argument
            )
    return found


def _allocate(block: Block, count: int) -> None:
    """Make the last arguments of a block allocations at its start."""
    made: list[Operation] = []
    for argument in list(block.args)[len(block.args) - count :]:
        type_ = cast("MemRefType[Attribute]", argument.type)
        op = memref.AllocaOp.get(
            type_.element_type, shape=type_.get_shape(), memory_space=type_.memory_space
        )
        op.memref.name_hint = argument.name_hint
        argument.replace_all_uses_with(op.memref)
        block.erase_arg(argument)
        made.append(op)
    if made and block.first_op is not None:
        block.insert_ops_before(made, block.first_op)


def _function(parser: Parser) -> Operation:
    name = parser.parse_symbol_name().data

    def one() -> tuple[Argument, dict[str, Attribute]]:
        return parser.parse_argument(), parser.parse_optional_dictionary_attr_dict()

    given = parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    results: Sequence[Attribute] = []
    if parser.parse_optional_punctuation("->") is not None:
        several = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        results = [parser.parse_type()] if several is None else several
    extra = _attributed(parser)
    is_kernel = parser.parse_optional_keyword("kernel") is not None
    stated = parser.parse_optional_attr_dict_with_keyword()
    body = parser.parse_region([*(argument for argument, _ in given), *extra])
    if extra:
        _allocate(body.blocks[0], len(extra))
    inputs = [argument.type for argument, _ in given]
    made = gpu.FuncOp(name, (inputs, results), body, kernel=is_kernel)
    entries: Mapping[str, Attribute] = stated.data if stated else {}
    for key, value in entries.items():
        known = key in ("known_block_size", "known_grid_size")
        made.attributes[f"gpu.{key}" if known else key] = value
    if any(attributes for _, attributes in given):
        made.attributes["arg_attrs"] = ArrayAttr([DictionaryAttr(a) for _, a in given])
    return made


# Launches.


def _no_async(parser: Parser) -> None:
    if parser.parse_optional_keyword("async") is not None:
        parser.raise_error(_NO_ASYNC)
    if parser.parse_optional_keyword("clusters") is not None:
        parser.raise_error("clusters of blocks are not supported")


def _shared_size(parser: Parser) -> SSAValue | None:
    if parser.parse_optional_keyword("dynamic_shared_memory_size") is None:
        return None
    return parser.resolve_operand(parser.parse_unresolved_operand(), i32)


def _launch_func(parser: Parser) -> Operation:
    _no_async(parser)
    symbol = parser.parse_attribute()
    if not isinstance(symbol, SymbolRefAttr):
        parser.raise_error("expected @MODULE::@KERNEL")
    _no_async(parser)
    sizes: list[Any] = []
    for word in ("blocks", "threads"):
        parser.parse_keyword(word)
        parser.parse_keyword("in")
        sizes.append(
            parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
        )
    type_: Attribute = IndexType()
    if parser.parse_optional_punctuation(":") is not None:
        type_ = parser.parse_type()
    grid, block = ([parser.resolve_operand(o, type_) for o in part] for part in sizes)
    shared = _shared_size(parser)
    operands: list[SSAValue] = []
    if parser.parse_optional_keyword("args") is not None:

        def one() -> SSAValue:
            value = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            return parser.resolve_operand(value, parser.parse_type())

        operands = list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, one))
    return gpu.LaunchFuncOp(
        symbol, grid, block, kernelOperands=operands, dynamicSharedMemorySize=shared
    )


def _launch(parser: Parser) -> Operation:
    _no_async(parser)
    ids: list[Argument] = []
    extents: list[Argument] = []
    given: list[list[SSAValue]] = []
    for word in ("blocks", "threads"):
        parser.parse_keyword(word)
        ids += [_index(a) for a in _names(parser)]
        parser.parse_keyword("in")
        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _pair(parser))
        extents += [_index(name) for name, _ in pairs]
        given.append([value for _, value in pairs])
    shared = _shared_size(parser)
    extra = _attributed(parser)
    body = parser.parse_region([*ids, *extents, *extra])
    if extra:
        _allocate(body.blocks[0], len(extra))
    return gpu.LaunchOp(body, given[0], given[1], dynamicSharedMemorySize=shared)


def _names(parser: Parser) -> list[Any]:
    return parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
    )


def _index(name: Any) -> Argument:
    return name.resolve(IndexType())


def _pair(parser: Parser) -> tuple[Any, SSAValue]:
    name = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return name, parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
