"""bound and pad: a range that ends earlier, and a tile with more places than it fills.

    bound k0 = q0 floordiv 2 + 1        %k0 = uloop.range 32 reduce
                                    →   %k0 = uloop.range %q0 floordiv 2 + 1 max 32 reduce

The steps from the new end to the old one are gone, so each of them has to have done nothing:

    a reduction     its value there is its identity (skipped_values.py), or a guard rules it out
    a tile          no read of it reaches what is not filled
    a store         a guard rules it out

Where a step is `0 * x` it is nothing for numbers only: NaN and infinity times 0 are NaN. `finite`
at the end of the command is the schedule's word that factors and summands like x are finite.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects import schedule_text as text
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Composite, Expr, Max, Min, at_least, atom_expr, new_range
from uopc.dialects.schedule_expression import evaluate, names_in, parse_expression
from uopc.dialects.schedule_text import bad_schedule
from uopc.passes.loop_builder import least_of
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_rewriter import LoopRewriter
from uopc.passes.schedule_names import find_range, find_value, ranges_by_name
from uopc.passes.skipped_values import SkippedSteps

MAX_TILE_BYTES = 1 << 28


class ApplyBound(LoopRewriter):
    """R's end becomes E, where nothing happens from E on."""

    def __init__(self, dag: LoopDag, command: text.Bound) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.command = command
        self.range = find_range(op, command.range, command)
        if self.range.kind.data not in ("loop", "reduce"):
            raise bad_schedule(
                command,
                f"'{command.range}' is a range of kind {self.range.kind.data}",
                "expected a range that is a loop: each of its steps can be left out",
            )
        self.end = self._end()
        old = self.leaf(self.range).end
        self._check_end(old)
        for start in _starts(self.end, old):
            self._check_steps(start, old)

    def _end(self) -> Expr:
        """The new end over the leaves of the old body."""
        named: dict[str, Expr] = {s.name: atom_expr(s) for s in self.kernel.symbol_vars}
        ranges = ranges_by_name(self.kernel)
        tree = parse_expression(self.command.end)
        for name in names_in(tree):
            if name in ranges:
                if self.dag.position[ranges[name]] >= self.dag.position[self.range]:
                    raise bad_schedule(
                        self.command,
                        f"'{name}' stands behind '{self.command.range}'",
                        "expected ranges that stand before it: order them first",
                    )
                named[name] = atom_expr(self.leaf(ranges[name]))
            elif name not in named:
                known = ", ".join((*ranges, *named)) or "none"
                raise bad_schedule(
                    self.command,
                    f"there is no range or size '{name}'",
                    f"the ranges and sizes are: {known}",
                )
        try:
            end = evaluate(tree, named)
        except UopcError as error:
            raise bad_schedule(self.command, error.message, error.hint) from error
        if any(_has_extremum(part) for part in least_of(end)):
            raise bad_schedule(
                self.command,
                "a minimum stands inside of other operators, or a maximum",
                "expected no min but around the whole, and no max",
            )
        return end

    def _check_end(self, old: Expr) -> None:
        if at_least(old, self.end) is not True:
            raise bad_schedule(
                self.command,
                f"the new end may lie behind the old one, {old}",
                f"write min({self.command.end}, {old}) if both are meant",
            )
        if at_least(self.end, 0) is not True:
            raise bad_schedule(
                self.command,
                f"the new end may be {self.end.bounds[0]}",
                "expected an end that is nowhere below 0",
            )

    def _check_steps(self, start: Expr, old: Expr) -> None:
        """Refuse the command unless every statement over the range does nothing from a start on."""
        at = start + new_range("skipped", old - start)
        steps = SkippedSteps(
            self.dag, self.leaf(self.range), self.end, at, finite=self.command.finite
        )
        if steps.ruled_out():
            return
        for statement in self.dag.position:
            problem: tuple[str, str] | None = None
            if isinstance(statement, loop.ReduceOp) and self.range.result in statement.over:
                problem = steps.problem_of_reduction(statement)
            elif isinstance(statement, loop.TileOp) and self.range.result in statement.over:
                problem = steps.problem_of_tile(statement)
            elif self.range in self.dag.free_of_statement.get(statement, ()):
                problem = (
                    f"the steps from {self.end} on store what they compute",
                    "expected a guard that rules them out: a store cannot be left out",
                )
            if problem is not None:
                raise bad_schedule(self.command, *problem)

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op is not self.range:
            return super().on_range(op)
        end = self.expr(self.end)
        constant = end.as_int()
        most = max(min(self.end.bounds[1], self.leaf(op).end.bounds[1]), 0)
        name = op.result.name_hint or "r"
        if constant is not None:
            return self.loops.range(name, constant, op.kind.data)
        return self.loops.range(name, end, op.kind.data, most)


def _starts(end: Expr, old: Expr) -> list[Expr]:
    """From where steps are skipped: of min(a, old) from a on, if at all."""
    return [o for o in least_of(end) if at_least(o, old) is not True]


def _has_extremum(expr: Expr) -> bool:
    """Whether a minimum or maximum stands in an expression, however deep."""
    stack = [expr]
    while stack:
        for term, _ in stack.pop().terms:
            for atom in term.factors:
                if isinstance(atom, Min | Max):
                    return True
                if isinstance(atom, Composite):
                    stack.extend(atom.operands)
    return False


class ApplyPad(LoopRewriter):
    """A tile's buffer has more places along one of its ranges than are filled."""

    def __init__(self, dag: LoopDag, command: text.Pad) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.tile = find_value(op, command.value, command).owner
        if not isinstance(self.tile, loop.TileOp):
            raise bad_schedule(command, f"'{command.value}' is not a tile")
        along = find_range(op, command.range, command)
        over = list(self.tile.over)
        if along.result not in over:
            names = " ".join(str(o.name_hint) for o in over)
            raise bad_schedule(command, f"the tile is not over '{command.range}'",
                               f"its ranges are: {names}")  # fmt: skip
        type_ = kernel.buffer_of(self.tile.result)
        self.shape = list(type_.get_shape())
        axis = over.index(along.result)
        if command.places < self.shape[axis]:
            raise bad_schedule(
                command,
                f"the tile has {self.shape[axis]} places along '{command.range}' already",
                "expected no fewer",
            )
        self.shape[axis] = command.places
        elements = 1
        for length in self.shape:
            elements *= length
        if elements > MAX_TILE_BYTES:
            raise bad_schedule(command, f"the tile would have {elements} places",
                               f"expected at most {MAX_TILE_BYTES}")  # fmt: skip

    def on_tile(self, op: loop.TileOp) -> SSAValue:
        if op is not self.tile:
            return super().on_tile(op)
        over = [self.range_value(o) for o in op.over]
        return self.loops.scalars.append(
            loop.TileOp(self.values[op.value], over, self.shape, op.space.data)
        )
