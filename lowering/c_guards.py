"""Loads under a condition that GCC before 14 must not turn into masked vector loads.

Of neighbours loaded under conditions, `if (c) { a = x[2*i]; b = x[2*i + 1]; }`, unrolled or
in a short loop, it takes the mask of the wrong lanes (GCC bug 114375, mended in 12.4, 13.3
and 14); and a loop over the lanes of a mask becomes a masked load whose address moves on with the
loop around it. Nothing but an asm statement keeps its vectorizer from them, and costs nothing
else: loops of which every step loads under a condition once are left alone, and so are other
compilers.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from uopc.lowering.c_style import FunctionPrinter

MOST_PEELED = 16
"""GCC unrolls loops of up to so many steps wholly, and vectorizes the one around."""

_NAME = "load_alone"
_TEXT = f"""\
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 14
#define {_NAME}() __asm__ volatile("") /* GCC bug 114375 */
#else
#define {_NAME}() ((void)0)
#endif"""


def load_alone(p: FunctionPrinter) -> str:
    """The name of what keeps the statements around it from that vectorizer."""
    return p.prelude.need(_NAME, lambda _: _TEXT)


def keep_loads_alone(p: FunctionPrinter, op: scf.IfOp) -> None:
    """Print, as the first statement under a condition, what loads there need."""
    loaded = {load.memref for load in _loads(op)}
    if not loaded:
        return
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    if around is None:
        return
    if _is_short(around) or any(_repeats(around, buffer) for buffer in loaded):
        p.statement(f"{load_alone(p)}();")


def _repeats(around: scf.ForOp, buffer: SSAValue) -> bool:
    """Whether a buffer is loaded from under a condition more than once a step."""
    found = 0
    for load in _loads(around):
        if load.memref is buffer and _is_guarded(load, around):
            found += 1
            if found > 1:
                return True
    return False


def _is_guarded(op: Operation, around: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not around:
        if isinstance(parent, scf.IfOp):
            return True
        parent = parent.parent_op()
    return False


def _loads(op: Operation) -> list[memref.LoadOp]:
    return [inner for inner in op.walk() if isinstance(inner, memref.LoadOp)]


def _is_short(op: scf.ForOp) -> bool:
    lower, upper, step = map(_known, (op.lb, op.ub, op.step))
    if lower is None or upper is None or step is None:
        return False
    return upper - lower <= MOST_PEELED * step


def _known(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None
