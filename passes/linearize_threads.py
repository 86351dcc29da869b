"""A kernel whose outermost range is of kind thread: one part of it, and all parts side by side.

    func.func private @r_64_64$part(%part: index, %a: …, %o: …) { the loops inside of one step }
    func.func private @r_64_64(%a: …, %o: …) {
      scf.parallel (%part) = (%c0) to (%c25) step (%c1) {
        func.call @r_64_64$part(%part, %a, %o) : …
        scf.reduce
      }
    }

Each part writes places of its own and no sum crosses parts, so the results do not depend on how
many threads there are, nor on their order.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.index_expr import as_expr
from uopc.passes.linearizer import Linearizer
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_placement import Placement, Statement
from uopc.passes.loop_scopes import Scope
from uopc.passes.scalar_builder import CMPI, INDEX, ScalarBuilder


def linearize_parts(dag: LoopDag) -> list[func.FuncOp] | None:
    """The two functions of a kernel that threads share; None for one that has no such range.

    The range has to be the outermost loop of everything, and of a known number of steps.
    """
    op, linearizer = dag.kernel, _PartLinearizer(dag)
    if linearizer.range is None:
        return None
    part = linearizer.function()
    part.sym_name = StringAttr(f"{op.sym_name.data}$part")
    return [part, _all_parts(op, part, linearizer.steps)]


class _PartLinearizer(Linearizer):
    """Builds the function of one part: the step of the thread range is its first argument."""

    def __init__(self, dag: LoopDag) -> None:
        super().__init__(dag)
        self.placed = Placement(self.dag).statements
        self.range = self._thread_range()
        self.steps = 0 if self.range is None else self.range.constant_end or 0
        if self.range is not None:
            self.part = self.entry.insert_arg(INDEX, 0)
            self.part.name_hint = self.range.result.name_hint or "part"

    def _thread_range(self) -> loop.RangeOp | None:
        first = [s.path[0] if s.path else None for s in self.placed]
        if not first or first[0] is None or any(r is not first[0] for r in first):
            return None
        found = first[0]
        if found.kind.data != "thread" or found.constant_end is None:
            return None
        bound = [s for s in self.placed if not s.home]
        alone = all(isinstance(s.op, loop.StoreOp) for s in bound)
        return found if alone else None

    def function(self) -> func.FuncOp:
        assert self.range is not None
        end = self.dag.end_of(self.range)
        whole = self.unguarded_steps(self.range, end)
        if whole >= self.steps:
            self._step(self.placed, self.entry)
        else:
            self._guarded_step(whole)
        self.entry.add_op(func.ReturnOp())
        types = [a.type for a in self.entry.args]
        attributes = [DictionaryAttr({}), *self.argument_attributes()]
        return func.FuncOp(
            self.kernel.sym_name.data,
            FunctionType.from_lists(types, []),
            Region(self.entry),
            visibility="private",
            arg_attrs=ArrayAttr(attributes),
        )

    def _step(self, group: list[Statement], block: Block) -> None:
        assert self.range is not None
        self.scopes.stack.append(Scope(self.range, self.part, block))
        self.done.difference_update(group)
        self.guarded(group, [], 1)
        self.scopes.stack.pop()

    def _guarded_step(self, whole: int) -> None:
        """The steps that need no guard, and the others, as two branches."""
        assert self.range is not None
        properties: dict[str, Attribute] = {"predicate": CMPI["slt"]}
        limit = self.scopes.index(as_expr(whole))
        inside = self.scopes.root.builder.op(
            arith.CmpiOp, self.part, limit, result=i1, properties=properties
        )
        plain, rest = Block(), Block()
        if whole:
            self.scopes.shorten(self.range, as_expr(whole))
            self._step(self.placed, plain)
            self.scopes.forget(self.range)
        if self.steps - whole == 1:
            self.scopes.fix(self.range, whole)
        self._step(self.placed, rest)
        self.scopes.forget(self.range)
        plain.add_op(scf.YieldOp())
        rest.add_op(scf.YieldOp())
        self.entry.add_op(scf.IfOp(inside, [], Region(plain), Region(rest)))


def _all_parts(op: kernel.KernelOp, part: func.FuncOp, steps: int) -> func.FuncOp:
    """The function that takes the kernel's place and runs all parts."""
    types = [a.type for a in part.body.block.args][1:]
    block = Block(arg_types=types)
    for argument, original in zip(block.args, op.block.args, strict=True):
        argument.name_hint = original.name_hint
    builder = ScalarBuilder(block)
    zero, last, one = (_index(builder, n) for n in (0, steps, 1))
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = part.body.block.args[0].name_hint
    body.add_op(func.CallOp(part.sym_name.data, [body.args[0], *block.args], []))
    body.add_op(scf.ReduceOp())
    block.add_op(scf.ParallelOp([zero], [last], [one], Region(body)))
    block.add_op(func.ReturnOp())
    attributes = list(part.arg_attrs.data[1:]) if part.arg_attrs is not None else []
    function = func.FuncOp(
        op.sym_name.data,
        FunctionType.from_lists(types, []),
        Region(block),
        visibility="private",
        arg_attrs=ArrayAttr(attributes),
    )
    if op.doc is not None:
        function.attributes["uopc.doc"] = StringAttr(op.doc.data)
    return function


def _index(builder: ScalarBuilder, value: int) -> SSAValue:
    return builder.attribute_constant(IntegerAttr(value, INDEX), INDEX)
