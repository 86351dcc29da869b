"""Control flow: loops, branches, calls and returns.

A loop's carried values are variables declared before it and assigned where its body ends; the
loop's results are the same variables. Where a carried value starts from a variable that nobody
else reads, that variable is taken over, so an accumulator keeps one name through a loop nest.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from uopc.lowering import c_helpers as helpers
from uopc.lowering.c_carried import Carried
from uopc.lowering.c_guards import keep_loads_alone
from uopc.lowering.c_integer import constant_value
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_threads import run_parts
from uopc.lowering.c_types import (
    COMPARE,
    INDEX,
    PRIMARY,
    UNARY,
    Expr,
    is_memref,
)

COUNTER_LIMIT = 1 << 48
"""A loop from a small start cannot count further in practice: at a nanosecond each, three days."""

_COUNTERS = ("i", "j", "k", "l", "m", "n")


def _owned(p: FunctionPrinter, init: SSAValue) -> str:
    """The variable to take over for a loop that starts from `init`, or nothing.

    Only a loop-carried variable that this loop alone reads, in the block that carries it.
    """
    if p.live.uses.get(init) != 1:
        return ""
    held = p.values.get(init)
    if not isinstance(held, Expr) or held.mutable != frozenset((held.text,)):
        return ""
    if isinstance(init, OpResult) and isinstance(init.op, scf.ForOp):
        return held.text if init.op.parent is p.block else ""
    if isinstance(init, BlockArgument) and isinstance(init.owner.parent_op(), scf.ForOp):
        return held.text if init.owner is p.block and init.index else ""
    return ""


# ---- scf.for


def for_loop(p: FunctionPrinter, op: scf.ForOp) -> None:
    """scf.for."""
    body = op.body.block
    carried: dict[int, Carried] = {}
    inits: list[tuple[Carried, Expr]] = []
    for index, init in enumerate(op.iter_args):
        if not p.live.is_carried(op, index):
            continue
        argument = body.args[index + 1]
        owned = _owned(p, init)
        if owned:
            carried[index] = Carried(p, argument, owned, op)
            continue
        hint = argument.name_hint or op.results[index].name_hint
        made = Carried(p, argument, "", op)
        inits.append((made, made.taken(p, init)))
        made.name = p.names.take(p.base_name(hint, "acc"))
        carried[index] = made
    lower, upper, step = p.expr(op.lb), p.expr(op.ub), p.expr(op.step)
    p.flush_reads()
    upper = p.settle(upper, "end") if upper.reads else upper
    if not step.is_literal:
        step = p.settle(step, "step")
    for made, start in inits:
        made.declare(p, start.text)
    for index, made in carried.items():
        p.values[body.args[index + 1]] = made.value(p, True)
        _settle_early(p, body, index, made)
    _open_loop(p, op, body.args[0], lower, upper, step)
    last = p.run_block(body)
    p.assign_all(
        [(made.name, made.taken(p, last.operands[index])) for index, made in carried.items()]
    )
    _close_loop(p)
    for index, made in carried.items():
        p.values[op.results[index]] = made.value(p, True)


def _settle_early(p: FunctionPrinter, body: Block, index: int, made: Carried) -> None:
    """A vector accumulator is assigned where its new value is computed, not at the loop's end.

    There nobody else reads the old value. Compilers keep the order of vector operations that the
    source has, and one that loads everything first runs out of registers.
    """
    last = body.last_op
    if last is None or made.lanes is None or made.lanes.is_mask:
        return
    new, old = last.operands[index], body.args[index + 1]
    if not isinstance(new, OpResult) or new.op.parent is not body or new.op.regions:
        return
    users = [use.operation for use in old.uses]
    home = made.value(p, True)
    if users == [new.op] and p.live.uses.get(new) == 1 and isinstance(home, Expr):
        p.homes[new] = home


def _open_loop(
    p: FunctionPrinter, op: Operation, counter: SSAValue, lower: Expr, upper: Expr, step: Expr
) -> None:
    """`for (int64_t i = 0; i < n; i++) {`, with a counter that cannot overflow."""
    t = p.scalar(counter.type, op)
    p.names.open()
    fallback = _COUNTERS[p.loop_depth] if p.loop_depth < len(_COUNTERS) else "i"
    name = p.new_name(counter, fallback)
    bound = Expr(name, PRIMARY, t, lower.low, max(lower.low, upper.high - 1))
    small = abs(lower.low) <= COUNTER_LIMIT
    if t is INDEX and small and bound.high > COUNTER_LIMIT:
        bound.high = COUNTER_LIMIT
    bound.sizelike = t is INDEX
    if step.is_literal and step.low == 1:
        advance = f"{name}++"
    elif step.is_literal and step.low > 0 and bound.high + step.low <= t.high:
        advance = f"{name} += {step.text}"
    else:
        upper = p.settle(upper, "end")
        function = helpers.loop_step(p.prelude, t)
        advance = f"{name} = {function}({name}, {step.text}, {upper.text})"
    head = (
        f"{p.variable_type(t)} {name} = {lower.text}; {name} < {upper.at(COMPARE + 1)}; {advance}"
    )
    p.open(f"for ({head})")
    p.values[counter] = bound
    p.loop_depth += 1


def _close_loop(p: FunctionPrinter) -> None:
    p.loop_depth -= 1
    p.close()
    p.names.close()


# ---- scf.parallel and scf.reduce


def parallel(p: FunctionPrinter, op: scf.ParallelOp) -> None:
    """scf.parallel: calls that any thread pool may run, else one after the other in order."""
    if run_parts(p, op):
        return
    body = op.body.block
    results: dict[int, Carried] = {}
    for index, (init, result) in enumerate(zip(op.initVals, op.results, strict=True)):
        if not p.live.uses.get(result):
            continue
        results[index] = made = Carried(p, result, "", op)
        start = made.taken(p, init)
        made.name = p.new_name(result, "acc")
        made.declare(p, start.text)
    bounds = [
        (p.atom(a), p.atom(b), p.atom(c))
        for a, b, c in zip(op.lowerBound, op.upperBound, op.step, strict=True)
    ]
    p.flush_reads()
    for counter, (lower, upper, step) in zip(body.args, bounds, strict=True):
        _open_loop(p, op, counter, lower, upper, step)
    last = p.run_block(body)
    for index, made in results.items():
        _combine(p, made, last.operands[index], last.regions[index].block)
    for _ in body.args:
        _close_loop(p)
    for index, made in results.items():
        p.values[op.results[index]] = made.value(p, True)


def _combine(p: FunctionPrinter, made: Carried, operand: SSAValue, combiner: Block) -> None:
    """One step of an scf.reduce: the combiner's text, between the variable and the operand."""
    if is_memref(operand.type):
        p.values[combiner.args[1]] = p.buffer(operand)
    else:
        p.values[combiner.args[1]] = p.atom(operand)
    p.values[combiner.args[0]] = made.value(p, True)
    last = p.run_block(combiner)
    p.flush_reads()
    p.assign_all([(made.name, made.taken(p, last.operands[0]))])


# ---- scf.while


def while_loop(p: FunctionPrinter, op: scf.WhileOp) -> None:
    """scf.while: `for (;;) { before; if (!condition) break; after; }`, or `while (condition)`."""
    before, after = op.before_region.block, op.after_region.block
    carried: dict[int, Carried] = {}
    for index, (argument, init) in enumerate(zip(before.args, op.arguments, strict=True)):
        if p.live.is_carried(op, index):
            carried[index] = made = Carried(p, argument, "", op)
            start = made.taken(p, init)
            made.name = p.new_name(argument, "acc")
            made.declare(p, start.text)
            p.values[argument] = made.value(p, True)
    results = _forwarded(p, op, carried)
    p.flush_reads()
    head = len(p.lines)
    p.open("for (;;)")
    p.loop_depth += 1
    last = p.run_block(before)
    targets = [(m.name, m.taken(p, last.operands[i + 1])) for i, m in results.items()]
    targets = [(name, e) for name, e in targets if e.text != name]
    condition = p.expr(last.operands[0])
    if targets:
        condition = p.settle(condition, "more")
        p.assign_all(targets)
    elif len(p.lines) == head + 1:
        p.lines[head] = f"{p.lines[head][: -len('for (;;) {')]}while ({condition.text}) {{"
    if not p.lines[head].lstrip().startswith("while"):
        p.statement(f"if (!{condition.at(UNARY)})")
        p.statement("    break;")
    last = p.run_block(after)
    p.assign_all([(m.name, m.taken(p, last.operands[i])) for i, m in carried.items()])
    p.loop_depth -= 1
    p.close()
    for index, made in results.items():
        p.values[op.results[index]] = made.value(p, True)


def _forwarded(
    p: FunctionPrinter, op: scf.WhileOp, carried: dict[int, Carried]
) -> dict[int, Carried]:
    """The variables of what scf.condition hands on.

    A carried value handed on as it is needs no second variable: it changes at the end of the
    second region only.
    """
    before, after = op.before_region.block, op.after_region.block
    last = before.last_op
    free = dict(carried)
    results: dict[int, Carried] = {}
    for index, (argument, result) in enumerate(zip(after.args, op.results, strict=True)):
        if not p.live.is_forwarded(op, index):
            continue
        source = last.operands[index + 1] if last is not None else None
        if isinstance(source, BlockArgument) and source.owner is before and source.index in free:
            results[index] = free.pop(source.index)
        else:
            hint = argument.name_hint or result.name_hint
            results[index] = made = Carried(p, result, p.names.take(p.base_name(hint, "next")), op)
            made.declare(p)
        p.values[argument] = results[index].value(p, True)
    return results


# ---- branches


def _results(p: FunctionPrinter, op: Operation) -> dict[int, Carried]:
    """Variables for the results that matter, declared without a value."""
    found: dict[int, Carried] = {}
    for index, result in enumerate(op.results):
        if p.live.uses.get(result):
            found[index] = made = Carried(p, result, p.new_name(result, "v"), op)
            made.declare(p)
    return found


def _branch(p: FunctionPrinter, region: Region, results: dict[int, Carried]) -> None:
    last = p.run_block(region.block)
    p.assign_all([(made.name, made.taken(p, last.operands[i])) for i, made in results.items()])


def _publish(p: FunctionPrinter, op: Operation, results: dict[int, Carried]) -> None:
    for index, made in results.items():
        p.values[op.results[index]] = made.value(p, False)


def if_else(p: FunctionPrinter, op: scf.IfOp) -> None:
    """scf.if; of a condition that the bounds decide, the region that is taken."""
    condition = p.expr(op.cond)
    p.flush_reads()
    results = _results(p, op)
    if condition.text in ("0", "1"):
        taken = op.true_region if condition.text == "1" else op.false_region
        if taken.blocks:
            _branch(p, taken, results)
        _publish(p, op, results)
        return
    p.open(f"if ({condition.text})")
    keep_loads_alone(p, op)
    _branch(p, op.true_region, results)
    if op.false_region.blocks and (results or _has_live(p, op.false_region.block)):
        p.close("} else {")
        p.indent += "    "
        p.names.open()
        _branch(p, op.false_region, results)
    p.close()
    _publish(p, op, results)


def _has_live(p: FunctionPrinter, block: Block) -> bool:
    return any(op in p.live.live for op in block.ops)


def index_switch(p: FunctionPrinter, op: scf.IndexSwitchOp) -> None:
    """scf.index_switch."""
    argument = p.expr(op.arg)
    p.flush_reads()
    results = _results(p, op)
    p.open(f"switch ({argument.text})")
    regions = [*zip(op.cases.get_values(), op.case_regions, strict=True)]
    for value, region in regions:
        _case(
            p, f"case {constant_value(IntegerAttr(int(value), 64), INDEX).text}:", region, results
        )
    _case(p, "default:", op.default_region, results)
    p.close()
    _publish(p, op, results)


def _case(p: FunctionPrinter, label: str, region: Region, results: dict[int, Carried]) -> None:
    p.open(label)
    _branch(p, region, results)
    p.statement("break;")
    p.close()


def execute_region(p: FunctionPrinter, op: Any) -> None:
    """scf.execute_region and memref.alloca_scope of one block."""
    region = op.regions[0]
    if len(region.blocks) != 1:
        p.fail(op, "has several blocks", "use scf.if and scf.while instead of branches")
    p.flush_reads()
    results = _results(p, op)
    p.lines.append(f"{p.indent}{{")
    p.indent += "    "
    p.names.open()
    _branch(p, region, results)
    p.close()
    _publish(p, op, results)


CONTROL_HANDLERS: dict[Any, Any] = {
    scf.ForOp: for_loop,
    scf.ParallelOp: parallel,
    scf.WhileOp: while_loop,
    scf.IfOp: if_else,
    scf.IndexSwitchOp: index_switch,
    scf.ExecuteRegionOp: execute_region,
    memref.AllocaScopeOp: execute_region,
}
"""How each op of control flow is printed."""
