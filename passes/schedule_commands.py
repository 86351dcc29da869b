"""What each command of a schedule does to a kernel's DAG (the language: schedule_text.py)."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects import schedule_text as text
from uopc.dialects.index_expr import Expr, as_expr, minimum, same
from uopc.dialects.schedule_text import Command, bad_schedule
from uopc.passes.loop_builder import least_of
from uopc.passes.loop_dag import LoopDag, Ranges, is_loop, own_ranges
from uopc.passes.loop_rewriter import LoopRewriter
from uopc.passes.reductions import merging
from uopc.passes.schedule_bounds import ApplyBound, ApplyPad
from uopc.passes.schedule_facts import is_arg_reduction, product_of, widened_name
from uopc.passes.schedule_names import check_fresh, find_range
from uopc.passes.schedule_pairs import ApplyPair
from uopc.passes.schedule_prefetch import ApplyPrefetch
from uopc.passes.schedule_tiles import ApplyCapture, ApplyLayout, ApplyTile


def apply_command(dag: LoopDag, command: Command) -> None:
    """Apply one command to the kernel of a DAG, which is out of date then.

    Raises UopcError [bad-schedule] where it does not fit.
    """
    match command:
        case text.Contract():
            _Contract(dag).run()
        case text.Pair():
            ApplyPair(dag, command).run()
        case text.Split():
            _Split(dag, command).run()
        case text.Tile():
            ApplyTile(dag, command).run()
        case text.Capture():
            ApplyCapture(dag, command).run()
        case text.Layout():
            ApplyLayout(dag, command).run()
        case text.Merge():
            _Merge(dag, command).run()
        case text.Fuse():
            _Fuse(dag, command).run()
        case text.Bound():
            ApplyBound(dag, command).run()
        case text.Pad():
            ApplyPad(dag, command).run()
        case text.Stream():
            _stream(dag, command)
        case text.Prefetch():
            ApplyPrefetch(dag, command).run()
        case text.Mark():
            _Mark(dag, command).run()
        case text.Order():
            _order(dag, command)


class _Contract(LoopRewriter):
    """reduce add of a * b -> reduce fma of a, b (rounded once a step).

    Of extf(a * b), a and b halves: fma of extf(a), extf(b), whose product is not rounded.
    """

    def on_reduce(self, op: loop.ReduceOp) -> list[SSAValue]:
        over = [self.range_value(o) for o in op.over]
        product = product_of(op)
        if product is None:
            return self.reduce(op, over)
        wide = op.results[0].type
        return self.reduce(op, over, "fma", [self._widened(f, wide) for f in product.operands])

    def _widened(self, factor: SSAValue, wide: Attribute) -> SSAValue:
        value = self.values[factor]
        if value.type == wide:
            return value
        made = self.loops.scalars.op(arith.ExtFOp, value, result=wide)
        made.name_hint = widened_name(factor)
        return made


class _Split(LoopRewriter):
    """i -> i0 * f + i1 * g + …, with n - 1 - i >= 0 as a guard where f does not divide n."""

    def __init__(self, dag: LoopDag, command: text.Split) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.target = find_range(op, command.range, command)
        check_fresh(op, tuple(p.name for p in command.parts if p.name != command.range), command)
        self.command = command
        if command.chain and any(p.kind == "vector" for p in command.parts):
            raise bad_schedule(
                command, "a chain has no lanes", "a vector's lanes each have an accumulator"
            )
        self.parts: list[tuple[Expr, SSAValue, text.Part]] = []
        self.whole: Expr = as_expr(0)

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op is not self.target:
            return super().on_range(op)
        end = self.expr(self.leaf(op).end)
        factor = 1
        for part in self.command.parts[1:]:
            assert part.size is not None
            factor *= part.size
        rounded = [(e + (factor - 1)) // factor for e in least_of(end)]
        outer = rounded[0] if len(rounded) == 1 else minimum(*rounded)
        first, *inner = self.command.parts
        constant = outer.as_int()
        self._add(first, self.loops.range(first.name, constant if constant is not None else outer,
                                          first.kind or op.kind.data))  # fmt: skip
        for part in inner:
            assert part.size is not None
            self._add(part, self.loops.range(part.name, part.size, part.kind or "loop"))
        self.whole = as_expr(0)
        for expr, _, part in self.parts:
            self.whole = self.whole * (part.size or 1) + expr
        exact = constant is not None and (end - factor * constant) == as_expr(0)
        self.guard = None if exact else end - 1 - self.whole
        return self.whole

    def _add(self, part: text.Part, expr: Expr) -> None:
        assert expr.leaf is not None
        self.parts.append((expr, self.loops.leaf_values[expr.leaf], part))

    def at_end(self) -> None:
        if self.guard is not None:
            self.new.add_op(loop.GuardOp(*self.loops.map_of([self.guard])))

    def _is_copied(self, part: text.Part) -> bool:
        return part.kind in ("unroll", "vector") and not self.command.chain

    def on_reduce(self, op: loop.ReduceOp) -> list[SSAValue]:
        if self.target.result not in op.over:
            return super().on_reduce(op)
        over: list[SSAValue] = []
        for o in op.over:
            if o is not self.target.result:
                over.append(self.range_value(o))
            else:
                over.extend(v for _, v, part in self.parts if not self._is_copied(part))
        copied = [v for _, v, part in self.parts if self._is_copied(part)]
        if copied and op.kind is None and not is_arg_reduction(self.dag, op):
            raise bad_schedule(
                self.command,
                "the reduction combines by a region, whose order the copies would change",
                "write chain at the end, and no vector",
            )
        contracted = op.kind is not None and op.kind.data in loop.PRODUCT_KINDS
        if not over and contracted:
            raise bad_schedule(
                self.command,
                "a contracted sum would have no loop",
                "leave a part a loop, or leave contract out",
            )
        results = self.reduce(op, over) if over else [self.values[v] for v in op.values]
        kind = "add" if contracted else None
        for copies in copied:
            merge = merging(op) if op.kind is None else None
            results = self.reduce(op, [copies], kind, results, merge)
        return results

    def on_tile(self, op: loop.TileOp) -> SSAValue:
        if self.target.result not in op.over:
            return super().on_tile(op)
        over: list[SSAValue] = []
        shape: list[int] = []
        for o, length in zip(op.over, kernel.buffer_of(op.result).get_shape(), strict=True):
            if o is not self.target.result:
                over.append(self.range_value(o))
                shape.append(length)
                continue
            inner = 1
            for _, _, part in self.parts[1:]:
                inner *= part.size or 1
            over.extend(v for _, v, _ in self.parts)
            shape.append(-(-length // inner))
            shape.extend(part.size or 1 for _, _, part in self.parts[1:])
        return self.loops.scalars.append(
            loop.TileOp(self.values[op.value], over, shape, op.space.data)
        )

    def read_at(self, op: loop.ReadOp, at: list[Expr]) -> list[Expr]:
        tile = op.buffer.owner
        assert isinstance(tile, loop.TileOp)
        if self.target.result not in tile.over:
            return at
        result: list[Expr] = []
        for o, expr in zip(tile.over, at, strict=True):
            if o is not self.target.result:
                result.append(expr)
                continue
            digits: list[Expr] = []
            for _, _, part in reversed(self.parts[1:]):
                assert part.size is not None
                digits.append(expr % part.size)
                expr = expr // part.size
            result.extend([expr, *reversed(digits)])
        return result


class _Merge(LoopRewriter):
    """i, j -> m with i = m floordiv n and j = m mod n."""

    def __init__(self, dag: LoopDag, command: text.Merge) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.outer = find_range(op, command.outer, command)
        self.inner = find_range(op, command.inner, command)
        names = (command.outer, command.inner)
        check_fresh(op, () if command.name in names else (command.name,), command)
        self.name = command.name
        if self.outer is self.inner:
            raise bad_schedule(command, "a range cannot be merged with itself")
        for statement in self.dag.statements:
            around = self.dag.free_of_statement.get(statement)
            over = getattr(statement, "over", ())
            inside = [r.result in over if around is None else r in around
                      for r in (self.outer, self.inner)]  # fmt: skip
            if inside[0] != inside[1]:
                raise bad_schedule(command, "the ranges belong to different loops")
        for binder in self.dag.position:
            if isinstance(binder, loop.ReduceOp | loop.TileOp):
                own = own_ranges(binder)
                if (self.outer in own) != (self.inner in own):
                    raise bad_schedule(command, "the ranges belong to different loops")
        if isinstance(_tiles_over(op, self.outer.result), loop.TileOp):
            raise bad_schedule(command, "the ranges of a tile cannot be merged")
        if self.leaf(self.inner).end.bounds[0] < 1:
            raise bad_schedule(command, f"'{command.inner}' may have no steps at all")
        self.merged: Expr | None = None

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op not in (self.outer, self.inner):
            return super().on_range(op)
        length = self.expr(self.leaf(self.inner).end)
        if self.merged is None:
            end = self.expr(self.leaf(self.outer).end) * length
            constant = end.as_int()
            self.merged = self.loops.range(
                self.name, end if constant is None else constant, self.outer.kind.data
            )
        return self.merged // length if op is self.outer else self.merged % length

    def on_reduce(self, op: loop.ReduceOp) -> list[SSAValue]:
        if self.outer.result not in op.over:
            return super().on_reduce(op)
        assert self.merged is not None and self.merged.leaf is not None
        over = [self.loops.leaf_values[self.merged.leaf]]
        over += [
            self.range_value(o) for o in op.over if o not in (self.outer.result, self.inner.result)
        ]
        return self.reduce(op, over)


def _tiles_over(op: kernel.KernelOp, value: SSAValue) -> object:
    return next((u.operation for u in value.uses if isinstance(u.operation, loop.TileOp)), None)


class _Fuse(LoopRewriter):
    """Two ranges of equal ends are one."""

    def __init__(self, dag: LoopDag, command: text.Fuse) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.range = find_range(op, command.range, command)
        self.into = find_range(op, command.into, command)
        ends = [self.leaf(r).end for r in (self.range, self.into)]
        if same(*ends) is not True:
            raise bad_schedule(command, f"the ranges end at {ends[0]} and {ends[1]}")
        for inner in self.dag.position:
            around = ranges_of(self.dag, inner)
            if self.range in around and self.into in around and self.range is not self.into:
                raise bad_schedule(
                    command, "both ranges run around the same computation", "they are independent"
                )
        if self.range is not self.into:
            self._check_apart(command)
        self.first: Expr | None = None

    def _check_apart(self, command: text.Fuse) -> None:
        """Refuse where one range would run inside of itself, or under the other's guards."""
        pair = (self.range, self.into)
        leaves = {self.leaf(r) for r in pair}
        if any(condition.leaves & leaves for condition, _ in self.dag.guard_ranges):
            raise bad_schedule(
                command, "a guard says where one of the ranges has steps", "fuse before splitting"
            )
        for binder in self.dag.position:
            if not isinstance(binder, loop.ReduceOp | loop.TileOp):
                continue
            for own, other in (pair, pair[::-1]):
                if own in own_ranges(binder) and other in ranges_around_readers(self.dag, binder):
                    name = own.result.name_hint
                    raise bad_schedule(
                        command,
                        f"what runs over '{name}' is read inside of the other range",
                        "expected ranges of loops that stand beside one another",
                    )

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op not in (self.range, self.into):
            return super().on_range(op)
        if self.first is None:
            name = self.into.result.name_hint or "r"
            self.first = self.copy_range(op, name, self.into.kind.data)
        return self.first


def ranges_of(dag: LoopDag, op: Operation) -> Ranges:
    """All ranges that run around the computing of an op: free ones, and those that it binds."""
    found: set[loop.RangeOp] = set(dag.free_of_statement.get(op, ()))
    for result in op.results:
        found |= dag.free[result]
    if isinstance(op, loop.ReduceOp | loop.TileOp):
        found |= own_ranges(op)
    return frozenset(found)


def ranges_around_readers(dag: LoopDag, op: loop.ReduceOp | loop.TileOp) -> Ranges:
    """All ranges that run around what is computed from the results of an op."""
    found: Ranges = frozenset()
    pending: list[SSAValue] = list(op.results)
    seen: set[Operation] = set()
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            while user not in dag.position and (around := user.parent_op()) is not None:
                user = around  # in the region of a reduction
            if user not in seen:
                seen.add(user)
                found |= ranges_of(dag, user)
                pending += user.results
    return found


class _Mark(LoopRewriter):
    """The same range of another kind."""

    def __init__(self, dag: LoopDag, command: text.Mark) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.range = find_range(op, command.range, command)
        self.kind = command.kind
        end = self.range.constant_end
        if self.kind in ("unroll", "vector") and (end is None or end > text.MAX_COPIES):
            raise bad_schedule(command, f"a range of kind {self.kind} has at most "
                               f"{text.MAX_COPIES} steps")  # fmt: skip

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op is not self.range:
            return super().on_range(op)
        return self.copy_range(op, op.result.name_hint or "r", self.kind)


def _stream(dag: LoopDag, command: text.Stream) -> None:
    """The vectors of all stores are written past the caches."""
    op = dag.kernel
    written = [o for o in op.block.ops if isinstance(o, loop.StoreOp)]
    updated = {o.buffer for o in op.block.ops if isinstance(o, loop.UpdateOp)}
    if not written or any(o.buffer in updated for o in written):
        raise bad_schedule(
            command,
            "an update reads what the kernel stores" if written else "the kernel stores nothing",
            "expected stores that nothing reads",
        )
    for store in written:
        store.properties["nontemporal"] = UnitAttr()


def _order(dag: LoopDag, command: text.Order) -> None:
    """Put the named ranges first, in order: where ranges stand decides which loop is outer."""
    op = dag.kernel
    named = [find_range(op, name, command) for name in command.names]
    if len(set(named)) != len(named):
        raise bad_schedule(command, "a range stands in it twice")
    others = [o for o in op.block.ops if isinstance(o, loop.RangeOp) and o not in named]
    block: Block = op.block
    placed: list[loop.RangeOp] = []
    for range_op in [*named, *others]:
        if any(o.owner not in placed for o in range_op.operands_ if isinstance(
            o.owner, loop.RangeOp)):  # fmt: skip
            name = range_op.result.name_hint
            raise bad_schedule(command, f"'{name}' stands before the range that ends it")
        placed.append(range_op)
    _check_order(dag, command, placed)
    for range_op in placed:
        range_op.detach()
    first = block.first_op
    for range_op in placed:
        if first is None:
            block.add_op(range_op)
        else:
            block.insert_op_before(range_op, first)


def _check_order(dag: LoopDag, command: Command, placed: list[loop.RangeOp]) -> None:
    """A reduction's loops run inside of the loops around it: its accumulator is one value."""
    place = {range_op: k for k, range_op in enumerate(placed)}
    for statement in dag.statements:
        if not isinstance(statement, loop.ReduceOp):
            continue
        around = [r for r in dag.free[statement.results[0]] if is_loop(r)]
        for own in own_ranges(statement):
            outside = next((r for r in around if is_loop(own) and place[r] > place[own]), None)
            if outside is not None:
                raise bad_schedule(
                    command,
                    f"the reduction over '{own.result.name_hint}' would run around "
                    f"'{outside.result.name_hint}'",
                    "a reduction's range stands behind the ranges that its result depends on",
                )
