"""The arguments of a function, as the names that its statements use."""

from __future__ import annotations

from uopc.lowering.c_address import argument_buffer
from uopc.lowering.c_module import Signature
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import INDEX, PRIMARY, Expr, is_memref


def bind_arguments(p: FunctionPrinter, signature: Signature) -> None:
    """Give each argument of a function its parameter: a buffer, or a number with its range.

    Raises UopcError [unsupported-in-c], or -in-cuda, for an argument of a type without a form.
    """
    op = signature.op
    for argument, parameter in zip(op.body.block.args, signature.parameters, strict=True):
        name = p.names.take(parameter.name)
        if is_memref(argument.type):
            buffer = argument_buffer(p, op, argument.type, name)
            buffer.is_const, buffer.unsigned = parameter.is_const, parameter.is_unsigned
            p.values[argument] = buffer
        else:
            t = p.scalar(argument.type, op)
            low, high = (0, 0) if t.is_float else (t.low, t.high)
            made = Expr(name, PRIMARY, t, low, high)
            made.sizelike = t is INDEX
            p.values[argument] = made
