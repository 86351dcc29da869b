"""Calls, returns, constants, and the choice of a buffer."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, func
from xdsl.ir import Operation

from uopc.lowering.c_access import end_streams
from uopc.lowering.c_carried import Carried
from uopc.lowering.c_float import float_literal
from uopc.lowering.c_integer import constant_value
from uopc.lowering.c_lanes import converted, dense_constant
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import EQUAL, Buffer, is_memref


def call(p: FunctionPrinter, op: func.CallOp) -> None:
    """func.call: one result as a variable, several through a struct."""
    signature = p.symbols.functions.get(op.callee.string_value())
    if signature is None:
        p.fail(op, f"no function @{op.callee.string_value()}", "define it in this module")
    arguments: list[str] = []
    for value, parameter in zip(op.arguments, signature.parameters, strict=True):
        if is_memref(value.type):
            arguments.append(_buffer_argument(p, op, p.buffer(value), parameter))
        else:
            e = p.expr(value)
            if e.lanes is not None and e.lanes.is_mask:
                e = converted(p, e, p.vector(value.type, op))
            arguments.append(e.text)
    p.flush_reads()
    text = f"{signature.name}({', '.join(arguments)})"
    used = [r for r in op.results if p.live.uses.get(r)]
    if not used:
        p.statement(f"{text};" if not op.results else f"(void){text};")
    elif len(op.results) == 1:
        made = Carried(p, op.results[0], p.new_name(op.results[0], "v"), op)
        made.declare(p, text)
        p.values[op.results[0]] = made.value(p, False)
    else:
        name = p.names.take("both" if len(op.results) == 2 else "all")
        p.statement(f"{signature.result} {name} = {text};")
        for index, result in enumerate(op.results):
            made = Carried(p, result, f"{name}.r{index}", op)
            p.values[result] = made.value(p, False)


def _buffer_argument(p: FunctionPrinter, op: Operation, buffer: Buffer, parameter: Any) -> str:
    """A pointer in the form the callee declares."""
    if buffer.is_const and not parameter.is_const:
        p.fail(
            op,
            f"passes the read-only '{buffer.pointer}' to a parameter that may be written",
            "mark the callee's parameter llvm.readonly, or pass a copy",
        )
    if parameter.ctype != buffer.ctype:
        const = "const " if parameter.is_const else ""
        return f"({const}{parameter.ctype} *){buffer.pointer}"
    return buffer.pointer


def return_values(p: FunctionPrinter, op: func.ReturnOp) -> None:
    """func.return."""
    end_streams(p)
    results = [Carried(p, v, "", op).taken(p, v) for v in op.arguments]
    if not results:
        return
    if len(results) == 1:
        p.statement(f"return {results[0].text};")
        return
    name = p.names.take("results")
    values = ", ".join(e.text for e in results)
    p.statement(f"{p.result_type} {name} = {{{values}}};")
    p.statement(f"return {name};")


def constant(p: FunctionPrinter, op: arith.ConstantOp) -> None:
    """arith.constant."""
    value: Any = op.value
    name = type(value).__name__
    if name == "IntegerAttr":
        p.values[op.result] = constant_value(value, p.scalar(op.result.type, op))
    elif name == "FloatAttr":
        p.values[op.result] = float_literal(p, value.value.data, p.scalar(op.result.type, op))
    elif name == "DenseIntOrFPElementsAttr" and type(op.result.type).__name__ == "VectorType":
        dense_constant(p, op, value)
    else:
        p.fail(op, f"a constant of type {op.result.type} has no form in C", "use memref.global")


def select(p: FunctionPrinter, op: arith.SelectOp) -> None:
    """arith.select of buffers: a pointer variable."""
    made = Carried(p, op.result, "", op)
    a, b = made.taken(p, op.lhs), made.taken(p, op.rhs)
    condition = p.expr(op.cond)
    made.name = p.new_name(op.result, "buffer")
    made.declare(p, f"{condition.at(EQUAL)} ? {a.text} : {b.text}")
    p.values[op.result] = made.value(p, False)


CALL_HANDLERS: dict[Any, Any] = {
    func.CallOp: call,
    func.ReturnOp: return_values,
    arith.ConstantOp: constant,
}
"""How calls, returns and constants are printed."""
