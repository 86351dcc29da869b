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
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Block, Region

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, as_expr, at_least
from uopc.passes.linearizer import Linearizer
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_placement import Placement, Statement
from uopc.passes.loop_scopes import Scope, Scopes
from uopc.passes.scalar_builder import CMPI, INDEX
from uopc.passes.whole_steps import whole_steps


def linearize_parts(dag: LoopDag) -> list[func.FuncOp] | None:
    """The two functions of a kernel that threads share; None for one that has no such range.

    The range has to be the outermost loop of everything, and end at a number or at sizes.
    """
    linearizer = _PartLinearizer(dag)
    if linearizer.range is None:
        return None
    part = linearizer.function()
    part.sym_name = StringAttr(f"{dag.kernel.sym_name.data}$part")
    return [part, _all_parts(dag, part, linearizer.end)]


class _PartLinearizer(Linearizer):
    """Builds the function of one part: the step of the thread range is its first argument."""

    def __init__(self, dag: LoopDag) -> None:
        super().__init__(dag)
        self.placed = Placement(self.dag).statements
        self.range = self._thread_range()
        self.end = as_expr(0) if self.range is None else self.dag.end_of(self.range)
        if self.range is not None:
            self.part = self.entry.insert_arg(INDEX, 0)
            self.part.name_hint = self.range.result.name_hint or "part"

    def _thread_range(self) -> loop.RangeOp | None:
        first = [s.path[0] if s.path else None for s in self.placed]
        if not first or first[0] is None or any(r is not first[0] for r in first):
            return None
        found = first[0]
        if found.kind.data != "thread" or self.dag.free_in([self.dag.end_of(found)]):
            return None
        bound = [s for s in self.placed if not s.home]
        alone = all(isinstance(s.op, loop.StoreOp) for s in bound)
        return found if alone else None

    def function(self) -> func.FuncOp:
        assert self.range is not None
        whole = self._whole_steps()
        if whole is None or at_least(whole, self.end) is True:
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

    def _whole_steps(self) -> Expr | None:
        """How many first steps need no guard; None where it is not known that some do not."""
        assert self.range is not None
        if self.end.as_int() is not None:
            return as_expr(self.unguarded_steps(self.range, self.end))
        return whole_steps(self.scopes, self.range, self.end)

    def _step(self, group: list[Statement], block: Block) -> None:
        assert self.range is not None
        self.scopes.stack.append(Scope(self.range, self.part, block))
        self.done.difference_update(group)
        self.guarded(group, [], 1)
        self.scopes.stack.pop()

    def _guarded_step(self, whole: Expr) -> None:
        """The steps that need no guard, and the others, as two branches."""
        assert self.range is not None
        properties: dict[str, Attribute] = {"predicate": CMPI["slt"]}
        limit = self.scopes.index(whole)
        inside = self.scopes.root.builder.op(
            arith.CmpiOp, self.part, limit, result=i1, properties=properties
        )
        plain, rest = Block(), Block()
        if whole.as_int() != 0:
            self.scopes.shorten(self.range, whole)
            self._step(self.placed, plain)
            self.scopes.forget(self.range)
        first = whole.as_int()
        if first is not None and (self.end - whole).as_int() == 1:
            self.scopes.fix(self.range, first)
        self._step(self.placed, rest)
        self.scopes.forget(self.range)
        plain.add_op(scf.YieldOp())
        rest.add_op(scf.YieldOp())
        self.entry.add_op(scf.IfOp(inside, [], Region(plain), Region(rest)))


def _all_parts(dag: LoopDag, part: func.FuncOp, end: Expr) -> func.FuncOp:
    """The function that takes the kernel's place and runs all parts."""
    op = dag.kernel
    types = [a.type for a in part.body.block.args][1:]
    block = Block(arg_types=types)
    for argument, original in zip(block.args, op.block.args, strict=True):
        argument.name_hint = original.name_hint
    scopes = Scopes(dag, block)
    scopes.symbols.update(zip(op.symbol_vars, block.args, strict=False))
    zero, last, one = (scopes.index(e) for e in (as_expr(0), end, as_expr(1)))
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
