"""Which loops each statement of a kernel runs in.

A statement is a store, an update, a reduction or a tile. Its home is the loops around it, its own
loops are the ranges that it binds (for a store, all it depends on). Homes come from the
consumers: a reduction lives in the shortest prefix of its consumer's loops that binds its free
ranges, so that it is computed as rarely as the loop order allows, and where it is read. Two
consumers in different loops make two instances of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.passes.loop_dag import STATEMENTS, LoopDag, Ranges, is_inline, is_loop, own_ranges

Path = tuple[loop.RangeOp, ...]


@dataclass(eq=False)
class Statement:
    """One instance of a statement: an op at a place."""

    op: Operation
    home: Path
    own: Path
    needs: list[Statement] = field(default_factory=list["Statement"])
    users: list[Statement] = field(default_factory=list["Statement"])
    """Who reads what it computes."""

    @property
    def path(self) -> Path:
        """The loops around it, outermost first."""
        return self.home + self.own


class Placement:
    """The statements of a kernel with their loops, each after what it needs."""

    def __init__(self, dag: LoopDag) -> None:
        self.dag = dag
        self._needs: dict[Operation, list[Operation]] = {}
        self._instances: dict[Operation, dict[Path, Statement]] = {}
        wanted: dict[Operation, list[Statement]] = {}
        for op in reversed(dag.statements):
            for statement in self._place(op, wanted.get(op, [])):
                for needed in self.needs(op):
                    wanted.setdefault(needed, []).append(statement)
        self.statements = [s for op in dag.statements for s in self._instances.get(op, {}).values()]
        for statement in self.statements:
            self._connect(statement)

    def _place(self, op: Operation, consumers: list[Statement]) -> list[Statement]:
        instances = self._instances.setdefault(op, {})
        if isinstance(op, loop.StoreOp | loop.UpdateOp):
            instances[()] = Statement(op, (), self._sorted(self.dag.free_of_statement[op]))
        else:
            assert isinstance(op, loop.ReduceOp | loop.TileOp)
            free = self.dag.free[op.results[0]]
            own = self._sorted(own_ranges(op))
            for consumer in consumers:
                home = _prefix(consumer.path, free)
                if home not in instances:
                    instances[home] = Statement(op, home, own)
        return list(instances.values())

    def _sorted(self, ranges: Ranges) -> Path:
        loops = (r for r in ranges if is_loop(r))
        return tuple(sorted(loops, key=self.dag.position.__getitem__))

    def needs(self, op: Operation) -> list[Operation]:
        """The statements whose results an op reads through scalar ops, in order."""
        found = self._needs.get(op)
        if found is None:
            found = self._needs[op] = self._search(op)
        return found

    def _search(self, op: Operation) -> list[Operation]:
        seen: set[Operation] = set()
        found: set[Operation] = set()
        stack: list[SSAValue] = [*op.operands, *_captured(op)]
        while stack:
            owner = stack.pop().owner
            if not isinstance(owner, Operation) or owner in seen:
                continue
            if owner not in self.dag.position:  # inside the op's own region
                continue
            seen.add(owner)
            if isinstance(owner, STATEMENTS) and not (
                isinstance(owner, loop.ReduceOp) and is_inline(owner)
            ):
                found.add(owner)
            else:
                stack.extend(owner.operands)
                stack.extend(_captured(owner))
        return sorted(found, key=self.dag.position.__getitem__)

    def _connect(self, statement: Statement) -> None:
        """Link a statement to the instances that it reads, and an update to earlier writes."""
        for needed in self.needs(statement.op):
            free = self.dag.free[needed.results[0]]
            home = _prefix(statement.path, free)
            instance = self._instances[needed][home]
            statement.needs.append(instance)
            instance.users.append(statement)
        if isinstance(statement.op, loop.UpdateOp):
            own = self.dag.position[statement.op]
            for other in self.statements:
                if (
                    isinstance(other.op, loop.StoreOp | loop.UpdateOp)
                    and other.op.buffer is statement.op.buffer
                    and self.dag.position[other.op] < own
                ):
                    statement.needs.append(other)


def _prefix(path: Path, free: Ranges) -> Path:
    """The shortest prefix of a path that binds all of `free`."""
    length = 0
    for position, op in enumerate(path, 1):
        if op in free:
            length = position
    return path[:length]


def _captured(op: Operation) -> list[SSAValue]:
    """What the regions of an op use."""
    return [o for region in op.regions for inner in region.walk() for o in inner.operands]
