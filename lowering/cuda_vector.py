"""Vectors of two to four elements in CUDA: loaded and stored at once, taken apart for all else.

    %v = vector.load %x[%i] : …, vector<4xf32>      float4 v = *(const float4 *)(x + i);
    %a = vector.extract %v[2]                       v.z

An access whose place is not proven to be aligned to all of the vector (passes/alignment.py) is one
access an element.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType

from uopc.lowering.c_access import writable
from uopc.lowering.c_address import element
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import PRIMARY, Expr, Scalar
from uopc.passes.alignment import MOST, alignment_of, place_of

MEMBERS = "xyzw"
_NAMES = {
    "float": "float", "double": "double", "int8_t": "char", "uint8_t": "uchar", "int16_t": "short",
    "uint16_t": "ushort", "int32_t": "int", "uint32_t": "uint", "int64_t": "longlong",
    "uint64_t": "ulonglong",
}  # fmt: skip


class Pack(Expr):
    """A vector as its elements."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Expr], t: Scalar) -> None:
        super().__init__("", PRIMARY, t)
        self.parts = parts


def _width(p: FunctionPrinter, op: Any, type_: Any) -> int:
    """The number of elements. Fails for a vector that CUDA has no type for."""
    shape = type_.get_shape() if isinstance(type_, VectorType) else ()
    if len(shape) != 1 or not 1 <= shape[0] <= len(MEMBERS):
        p.fail(op, f"{type_} has no form in CUDA", "use vectors of one axis and up to 4 elements")
    return int(shape[0])


def _aligned(op: Any, width: int, t: Scalar) -> str | None:
    """CUDA's vector type for an access that is proven to be aligned."""
    size = width * t.size
    place = place_of(op.base.type, list(op.indices))
    if width not in (2, 4) or size > MOST or place is None or alignment_of(op.base) % size:
        return None
    return None if place.number % width or place.multiple() % width else _NAMES.get(t.ctype)


def _elements(p: FunctionPrinter, op: Any, width: int) -> list[Expr]:
    """The elements of memory from the first on, each by its own index."""
    buffer = p.buffer(op.base)
    first = element(p, op, buffer, op.indices)
    return [Expr(f"(&{first.text})[{k}]", PRIMARY, buffer.element) for k in range(width)]


def load(p: FunctionPrinter, op: vector.LoadOp) -> None:
    """vector.load: a statement."""
    buffer, width = p.buffer(op.base), _width(p, op, op.result.type)
    t = buffer.element
    kind = _aligned(op, width, t)
    first = element(p, op, buffer, op.indices)
    name = p.new_name(op.result, "part")
    if kind is not None:
        whole = f"{kind}{width}"
        p.statement(f"{whole} {name} = *(const {whole} *)&{first.text};")
        texts = [f"{name}.{member}" for member in MEMBERS[:width]]
    else:
        values = ", ".join(e.text for e in _elements(p, op, width))
        p.statement(f"{t.ctype} {name}[{width}] = {{{values}}};")
        texts = [f"{name}[{k}]" for k in range(width)]
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    p.values[op.result] = Pack([Expr(text, PRIMARY, t, low, high) for text in texts], t)


def store(p: FunctionPrinter, op: vector.StoreOp) -> None:
    """vector.store."""
    buffer, width = p.buffer(op.base), _width(p, op, op.vector.type)
    writable(p, op, buffer)
    t = buffer.element
    parts = _parts(p, op, op.vector)
    kind = _aligned(op, width, t)
    p.flush_reads()
    if kind is None:
        for target, part in zip(_elements(p, op, width), parts, strict=True):
            p.statement(f"{target.text} = {part.text};")
        return
    whole, first = f"{kind}{width}", element(p, op, buffer, op.indices)
    values = ", ".join(part.text for part in parts)
    p.statement(f"*({whole} *)&{first.text} = make_{whole}({values});")


def _parts(p: FunctionPrinter, op: Any, value: Any) -> list[Expr]:
    held = p.values.get(value)
    if not isinstance(held, Pack):
        p.fail(op, f"a vector is made by '{value.owner.name}'", "load it, or insert its elements")
    return held.parts


def broadcast(p: FunctionPrinter, op: vector.BroadcastOp) -> None:
    """vector.broadcast of a number."""
    if isinstance(op.source.type, VectorType):
        p.fail(op, "broadcasts a vector", "broadcast a number")
    t, width = p.scalar(op.source.type, op), _width(p, op, op.vector.type)
    p.values[op.vector] = Pack([p.atom(op.source)] * width, t)


def _position(p: FunctionPrinter, op: Any) -> int:
    position = list(op.get_mixed_position())
    if len(position) != 1 or not isinstance(position[0], int):
        p.fail(op, "takes a part that is no constant place", "give one number")
    return position[0]


def extract(p: FunctionPrinter, op: vector.ExtractOp) -> None:
    """vector.extract of an element."""
    p.values[op.result] = _parts(p, op, op.vector)[_position(p, op)]


def insert(p: FunctionPrinter, op: vector.InsertOp) -> None:
    """vector.insert of an element."""
    parts = list(_parts(p, op, op.dest))
    parts[_position(p, op)] = p.atom(op.source)
    p.values[op.result] = Pack(parts, p.scalar(op.source.type, op))


VECTOR_HANDLERS: dict[Any, Any] = {
    vector.LoadOp: load,
    vector.StoreOp: store,
    vector.BroadcastOp: broadcast,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
}
"""How these ops are printed, by their class."""
