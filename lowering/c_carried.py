"""Variables that carry a value across a border: of a loop, a branch, a call."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from uopc.lowering.c_address import argument_buffer, pointer_type
from uopc.lowering.c_lanes import converted
from uopc.lowering.c_style import FunctionPrinter, typed
from uopc.lowering.c_types import PRIMARY, Buffer, Expr, Lanes, is_memref, is_vector


class Carried:
    """A variable for a loop-carried value or a region's result: a number, vector or pointer."""

    def __init__(self, p: FunctionPrinter, value: SSAValue, name: str, op: Operation) -> None:
        self.name = name
        self.type = value.type
        self.op = op
        self.lanes: Lanes | None = None
        if is_memref(value.type):
            self.scalar = pointer_type(p.scalar(value.type.element_type, op))
        elif is_vector(value.type):
            self.lanes = p.vector(value.type, op)
            self.scalar = self.lanes.element
        else:
            self.scalar = p.scalar(value.type, op)

    def declare(self, p: FunctionPrinter, value: str = "") -> None:
        """Print the variable's declaration, with a value unless it gets one later."""
        ctype = p.variable_type(self.scalar) if self.lanes is None else p.lanes_name(self.lanes)
        p.declaration(self.name, f"{typed(ctype, self.name)}{f' = {value}' if value else ''};")

    def value(self, p: FunctionPrinter, mutable: bool) -> Expr | Buffer:
        """What the value is while the variable holds it."""
        names = frozenset((self.name,)) if mutable else frozenset[str]()
        if is_memref(self.type):
            buffer = argument_buffer(p, self.op, self.type, self.name)
            if buffer.base_offset != 0:  # the type's offset, and not of this pointer
                buffer.base_offset = None
            buffer.mutable = names
            return buffer
        t = self.scalar
        low, high = (0, 0) if t.is_float else (t.low, t.high)
        made = Expr(self.name, PRIMARY, t, low, high, self.lanes)
        made.mutable = names
        return made

    def taken(self, p: FunctionPrinter, value: SSAValue) -> Expr:
        """The expression of an SSA value, in this variable's type."""
        if is_memref(self.type):
            buffer = p.buffer(value)
            if buffer.is_local or buffer.is_const:
                p.fail(
                    self.op,
                    f"'{buffer.pointer}' leaves its block or loses its const",
                    "pass buffers of memref.alloc or of arguments that are not read-only",
                )
            made = Expr(buffer.pointer, PRIMARY, self.scalar)
            made.mutable = buffer.mutable
            return made
        e = p.expr(value)
        if self.lanes is not None and self.lanes.is_mask:
            return converted(p, e, self.lanes)
        return e
