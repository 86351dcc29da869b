"""plan-memory: where in the workspace each temporary lies, so that storage is used again.

    %tmp0 = ukernel.temp : memref<64xf32>             %tmp0 = ukernel.temp at 0 : memref<64xf32>
    launch @a ins(%x) outs(%tmp0)                     launch @a ins(%x) outs(%tmp0)
    %tmp1 = ukernel.temp : memref<64xf32>             %tmp1 = ukernel.temp at 256 : memref<64xf32>
    launch @b ins(%tmp0) outs(%tmp1)             =>   launch @b ins(%tmp0) outs(%tmp1)
    %tmp2 = ukernel.temp : memref<64xf32>             %tmp2 = ukernel.temp at 0 : memref<64xf32>
    launch @c ins(%tmp1) outs(%tmp2)                  launch @c ins(%tmp1) outs(%tmp2)

and the plan's `workspace` is 512 bytes, not 768. A temp **lives** from the first launch that
touches it to the last, both included: a kernel never reads and writes the same bytes. One that a
loop uses and that is not its own lives as long as the loop. The
largest temps are placed first, each into the smallest gap between those that live at the same
time and are already placed. Symbolic sizes count at their upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import LaunchOp, PlanOp, ReturnOp, TempOp
from uopc.dialects.kernel_control import ConditionOp, IfOp, WhileOp
from uopc.dialects.locations import nearest_location
from uopc.dialects.source_text import printable
from uopc.passes.plan_storage import storage_bytes, storages_of
from uopc.passes.range_input import check_no_tensor_function

WORKSPACE_LIMIT = 1 << 46
"""No machine gives a plan more bytes than this."""
SMALLEST_ALIGNMENT = 8
"""The alignment of the widest element type."""


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Place temporaries in the workspace; those that do not live together share bytes.

    Raises UopcError [bad-option], [workspace-too-large], or [not-over-ranges] for a function on
    tensors.
    """

    name = "plan-memory"
    level_after: ClassVar[str] = ""

    alignment: int = 64
    """Bytes: each temp starts at a multiple of it. A power of two, at least 8."""
    reuse: bool = True
    """Whether temps may share storage; without it each has its own."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.alignment < SMALLEST_ALIGNMENT or self.alignment & (self.alignment - 1):
            raise UopcError(
                "bad-option",
                f"alignment: expected a power of two that is at least {SMALLEST_ALIGNMENT}, got "
                f"{self.alignment}",
                hint="64 is the size of a cache line",
            )
        check_no_tensor_function(op, "kernelize", self.name)
        for plan in op.body.block.ops:
            if isinstance(plan, PlanOp):
                self._place(plan)

    def _place(self, plan: PlanOp) -> None:
        spans = live_spans(plan, self.alignment)
        total = place_spans(spans) if self.reuse else _one_after_another(spans)
        if total > WORKSPACE_LIMIT:
            raise UopcError(
                "workspace-too-large",
                f"the temporaries of @{printable(plan.sym_name.data)} need {total} bytes, more "
                f"than {WORKSPACE_LIMIT}",
                location=nearest_location(plan),
                hint="use smaller sizes or tighter bounds, or cut the program into several",
            )
        for span in spans:
            span.temp.properties["offset"] = IntegerAttr(span.offset, i64)
        plan.properties["workspace"] = IntegerAttr(total, i64)


@dataclass(eq=False)
class Span:
    """A temp with the launches at which it lives, `first` and `last` included."""

    temp: TempOp
    size: int
    """Bytes, rounded up to the alignment."""
    first: int
    last: int
    offset: int = -1
    together: list[Span] = field(default_factory=list["Span"])
    """Those that live at the same time, at some launch."""


def live_spans(plan: PlanOp, alignment: int) -> list[Span]:
    """The plan's temps with their sizes and lives, in order."""
    lives = _Lives(alignment)
    lives.block(plan.block)
    return list(lives.spans.values())


class _Lives:
    """Numbers the launches of a plan, those of loops and branches among them."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.spans: dict[SSAValue, Span] = {}
        self.launches = 0

    def block(self, block: Block) -> set[SSAValue]:
        """Go through a block; the temps that it uses and that are not its own."""
        used: set[SSAValue] = set()
        own: set[SSAValue] = set()
        for op in block.ops:
            if isinstance(op, TempOp):
                # One of no elements has an address too, so that every temp is a place.
                size = max(1, -(-storage_bytes(op) // self.alignment)) * self.alignment
                self.spans[op.result] = Span(op, size, -1, -1)
                own.add(op.result)
            elif isinstance(op, WhileOp | IfOp):
                used |= self._region(op)
            elif isinstance(op, LaunchOp | ReturnOp | ConditionOp):
                used |= self._touch(op.operands, self.launches)
                self.launches += 1
        return used - own

    def _region(self, op: WhileOp | IfOp) -> set[SSAValue]:
        """What is used from outside lives all through a loop: each step may need it again."""
        first = self.launches
        used = self._touch(op.operands, first)
        for region in op.regions:
            used |= self.block(region.block)
        self.launches += 1
        self._touch(used, first)
        self._touch(used, self.launches - 1)
        return used

    def _touch(self, values: Iterable[SSAValue], at: int) -> set[SSAValue]:
        found: set[SSAValue] = set()
        for value in values:
            for storage in storages_of(value):
                span = self.spans.get(storage)
                if span is not None:
                    found.add(storage)
                    span.first = at if span.first < 0 else min(span.first, at)
                    span.last = max(span.last, at)
        return found


def place_spans(spans: Sequence[Span]) -> int:
    """Give each span an offset; the bytes needed in all.

    Greedy by size, best fit: the order and the fit that do best on the memory plans of neural
    networks (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
    """
    _find_together(spans)
    for span in sorted(spans, key=lambda s: (-s.size, s.first)):
        span.offset = _best_gap(span)
    return max((s.offset + s.size for s in spans), default=0)


def _find_together(spans: Iterable[Span]) -> None:
    """Link each span to those that live at the same time."""
    living: list[Span] = []
    for span in sorted((s for s in spans if s.first >= 0), key=lambda s: s.first):
        living = [other for other in living if other.last >= span.first]
        for other in living:
            other.together.append(span)
            span.together.append(other)
        living.append(span)


def _best_gap(span: Span) -> int:
    """The start of the smallest gap that the span fits in, or the end of all that is placed."""
    taken = sorted((s.offset, s.size) for s in span.together if s.offset >= 0)
    best, best_size = -1, 0
    end = 0
    for offset, size in taken:
        gap = offset - end
        if gap >= span.size and (best < 0 or gap < best_size):
            best, best_size = end, gap
        end = max(end, offset + size)
    return end if best < 0 else best


def _one_after_another(spans: Iterable[Span]) -> int:
    end = 0
    for span in spans:
        span.offset = end
        end += span.size
    return end
