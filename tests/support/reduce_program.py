"""A smaller program that still fails, for a message that a person can read."""

from __future__ import annotations

from collections.abc import Callable

from error_bounds import bounded_results
from random_programs import RandomProgram
from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

Fails = Callable[[RandomProgram], bool]


def smaller(program: RandomProgram, fails: Fails) -> RandomProgram:
    """Drop results, and turn ops into arguments that hold what they computed, while it fails."""
    for count in range(len(program.function.get_return_op().operands)):
        candidate = _with_result(program, count)
        if fails(candidate):
            program = candidate
            break
    position = 0
    while position < len(list(program.function.body.block.ops)) - 1:
        candidate = _as_argument(program, position)
        if fails(candidate):
            program = candidate
        else:
            position += 1
    return program


def _copy(program: RandomProgram) -> RandomProgram:
    return RandomProgram(program.function.clone(), list(program.inputs), dict(program.sizes))


def _with_result(program: RandomProgram, position: int) -> RandomProgram:
    copy = _copy(program)
    old = copy.function.body.block.last_op
    assert isinstance(old, ReturnOp)
    _return(copy.function, old, old.operands[position])
    return _clean(copy)


def _return(function: FuncOp, old: ReturnOp, *values: object) -> None:
    block = function.body.block
    block.erase_op(old)
    block.add_op(ReturnOp(*values))  # pyright: ignore[reportArgumentType]


def _as_argument(program: RandomProgram, position: int) -> RandomProgram:
    copy = _copy(program)
    block = copy.function.body.block
    op = list(block.ops)[position]
    value = _value(copy, op)
    argument = block.insert_arg(op.results[0].type, len(block.args))
    copy.inputs.append(value)
    op.results[0].replace_all_uses_with(argument)
    return _clean(copy)


def _value(program: RandomProgram, op: Operation):
    probe = _copy(program)
    ops = list(program.function.body.block.ops)
    twin = list(probe.function.body.block.ops)[ops.index(op)]
    last = probe.function.body.block.last_op
    assert isinstance(last, ReturnOp)
    _return(probe.function, last, twin.results[0])
    ((value, _),) = bounded_results(probe.function, probe.inputs, probe.sizes)
    return value


def _clean(program: RandomProgram) -> RandomProgram:
    """Without ops and arguments that nobody uses."""
    block = program.function.body.block
    for op in reversed(list(block.ops)):
        if op.results and not any(r.uses for r in op.results):
            block.erase_op(op)
    for position in reversed(range(len(block.args))):
        if not block.args[position].uses:
            block.erase_arg(block.args[position])
            del program.inputs[position]
    last = block.last_op
    assert last is not None
    program.function.function_type = FunctionType.from_lists(
        [a.type for a in block.args], [o.type for o in last.operands]
    )
    return program
