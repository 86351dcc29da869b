"""ukernel.while and ukernel.if: loops and branches of a plan, between its launches.

    step   ::= (%r, … =)? while ((%x = %b, … : M, …))? { step* condition } do { step* yield }
             | if %flag : M { step* yield } (else { step* yield })?
    condition ::= condition %flag : M        leaves the loop where the flag is false
    yield     ::= yield (%x, … : M, …)?

What runs inside reads and writes buffers of the plan around it; nothing is copied at a border.
A loop's **carried** buffers are names that may change hands: the yield lists them in another
order, so that what a step wrote is what the next one reads. Both regions name them by their own
arguments, and the results are the buffers as they were when the loop was left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

_FLAG: Attribute = MemRefType(i1, [])


def _check_flag(flag: SSAValue, what: str) -> None:
    if flag.type != _FLAG:
        raise VerifyException(f"{what}: expected a flag of type memref<i1>, got {flag.type}")


@irdl_op_definition
class ConditionOp(IRDLOperation):
    """`ukernel.condition %flag : memref<i1>`: goes on with the loop where the flag is true."""

    name = "ukernel.condition"
    flag = operand_def(MemRefType)
    traits = traits_def(IsTerminator())
    assembly_format = "$flag attr-dict `:` type($flag)"

    def __init__(self, flag: SSAValue):
        super().__init__(operands=[flag])

    def verify_(self) -> None:
        _check_flag(self.flag, self.name)
        loop = self.parent_op()
        if not isinstance(loop, WhileOp) or self.parent is not loop.before.block:
            raise VerifyException(f"{self.name} ends the first region of a ukernel.while")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`ukernel.yield %y, %x : M, M`: the carried buffers in the order that the next step has."""

    name = "ukernel.yield"
    buffers = var_operand_def(MemRefType)
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($buffers^ `:` type($buffers))?"

    def __init__(self, buffers: Sequence[SSAValue] = ()):
        super().__init__(operands=[list(buffers)])

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), WhileOp | IfOp):
            raise VerifyException(f"{self.name} ends a region of a ukernel.while or ukernel.if")


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Runs `before`, leaves if its flag is false, runs `body`, and starts again."""

    name = "ukernel.while"
    carried = var_operand_def(MemRefType)
    results_ = var_result_def(MemRefType)
    before = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, carried: Sequence[SSAValue], before: Block, body: Block):
        super().__init__(
            operands=[list(carried)],
            result_types=[[v.type for v in carried]],
            regions=[Region(before), Region(body)],
        )

    @property
    def order(self) -> tuple[int, ...]:
        """For each place the place in `carried` whose buffer the next step has there."""
        last = cast(YieldOp, self.body.block.last_op)
        return tuple(cast(BlockArgument, v).index for v in last.buffers)

    def group(self, place: int) -> tuple[int, ...]:
        """The places whose buffers come to stand at `place`, in time."""
        found, order = [place], self.order
        while (following := order[found[-1]]) != place:
            found.append(following)
        return tuple(found)

    def verify_(self) -> None:
        types = [v.type for v in self.carried]
        for block, what in ((self.before.block, "first"), (self.body.block, "second")):
            if [a.type for a in block.args] != types:
                raise VerifyException(
                    f"{self.name}: the {what} region takes "
                    f"({', '.join(str(a.type) for a in block.args)}), expected "
                    f"({', '.join(map(str, types))})"
                )
        if [r.type for r in self.results_] != types:
            raise VerifyException(f"{self.name}: its results are not of the carried types")
        if not isinstance(self.before.block.last_op, ConditionOp):
            raise VerifyException(f"{self.name}: its first region ends in ukernel.condition")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException(f"{self.name}: its second region ends in ukernel.yield")
        if len(set(self.carried)) != len(types):
            raise VerifyException(f"{self.name}: a buffer is carried twice")
        if sorted(map(_place, last.buffers)) != sorted(map(_place, self.body.block.args)) or any(
            v not in self.body.block.args for v in last.buffers
        ):
            raise VerifyException(
                f"{self.name}: ukernel.yield lists each argument of its region once, in any order"
            )
        if any(v.type != t for v, t in zip(last.buffers, types, strict=True)):
            raise VerifyException(f"{self.name}: buffers of different types change places")

    def print(self, printer: Printer) -> None:
        if self.carried:
            printer.print_string(" (")
            for k, (argument, value) in enumerate(
                zip(self.before.block.args, self.carried, strict=True)
            ):
                printer.print_string(", " if k else "")
                printer.print_ssa_value(argument)
                printer.print_string(" = ")
                printer.print_ssa_value(value)
            printer.print_string(" : ")
            printer.print_list([v.type for v in self.carried], printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.before, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        names: list[Parser.UnresolvedArgument] = []
        carried: list[SSAValue] = []
        if parser.parse_optional_punctuation("("):
            none = parser.Delimiter.NONE
            operands: list[UnresolvedOperand] = []

            def pair() -> None:
                names.append(parser.parse_argument(expect_type=False))
                parser.parse_punctuation("=")
                operands.append(parser.parse_unresolved_operand())

            parser.parse_comma_separated_list(none, pair)
            parser.parse_punctuation(":")
            position = parser.pos
            types = parser.parse_comma_separated_list(none, parser.parse_type)
            parser.parse_punctuation(")")
            if len(types) != len(operands):
                parser.raise_error(f"{len(operands)} buffers have {len(types)} types", position)
            carried = [parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=True)]
        arguments = [n.resolve(v.type) for n, v in zip(names, carried, strict=True)]
        before = parser.parse_region(arguments)
        parser.parse_characters("do")
        body = parser.parse_region()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            operands=carried,
            result_types=[v.type for v in carried],
            regions=[before, body],
            attributes=dict(attributes.data) if attributes else {},
        )


def _place(value: SSAValue) -> int:
    return value.index if isinstance(value, BlockArgument) else -1


@irdl_op_definition
class IfOp(IRDLOperation):
    """Runs one of two regions. What they compute, they write to buffers of the plan around."""

    name = "ukernel.if"
    flag = operand_def(MemRefType)
    yes = region_def("single_block")
    no = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, flag: SSAValue, yes: Block, no: Block):
        super().__init__(operands=[flag], regions=[Region(yes), Region(no)])

    def verify_(self) -> None:
        _check_flag(self.flag, self.name)
        for region in (self.yes, self.no):
            last = region.block.last_op
            if not isinstance(last, YieldOp) or last.buffers or region.block.args:
                raise VerifyException(
                    f"{self.name}: its regions take nothing and end in ukernel.yield of nothing"
                )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.flag)
        printer.print_string(" : ")
        printer.print_attribute(self.flag.type)
        printer.print_string(" ")
        printer.print_region(self.yes)
        if len(self.no.block.ops) > 1:
            printer.print_string(" else ")
            printer.print_region(self.no)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        flag = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(flag, parser.parse_type())
        yes = parser.parse_region()
        no = Region(Block([YieldOp()]))
        if parser.parse_optional_keyword("else"):
            no = parser.parse_region()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            operands=[operand],
            regions=[yes, no],
            attributes=dict(attributes.data) if attributes else {},
        )


CONTROL_OPS: tuple[type[Operation], ...] = (WhileOp, IfOp, ConditionOp, YieldOp)


def carrying_loop(value: SSAValue) -> tuple[WhileOp, int] | None:
    """The loop, and the place among what it carries, of an argument or a result of a loop."""
    if isinstance(value, OpResult):
        return (value.op, value.index) if isinstance(value.op, WhileOp) else None
    assert isinstance(value, BlockArgument)
    loop = value.owner.parent_op()
    return (loop, value.index) if isinstance(loop, WhileOp) else None
