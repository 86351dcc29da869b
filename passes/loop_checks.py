"""What a kernel over ranges may not ask for: said in words before linearize meets it.

A schedule can be well formed and still have no meaning. These checks run after apply-schedule has
carried one out, and again on every kernel that linearize takes, whoever wrote it.
"""

from __future__ import annotations

from uopc.dialects import loop
from uopc.dialects.x86vector import DOT_LANES
from uopc.passes.loop_dag import LoopDag, Ranges, is_inline, is_loop, length_of, own_ranges
from uopc.passes.reductions import is_merging

MAX_COPIES_OF_A_VALUE = 4096


def problem_of(dag: LoopDag) -> tuple[str, str] | None:
    """What is wrong with a kernel, and what would be right; None if nothing is."""
    for value, free in dag.free.items():
        name = value.name_hint or "a value"
        vectors = [_name(r) for r in free if r.kind.data == "vector"]
        if len(vectors) > 1:
            return (
                f"'{name}' varies along the vectors {', '.join(vectors)}",
                "expected at most one range of kind vector around a value",
            )
        if _copies(free) > MAX_COPIES_OF_A_VALUE:
            return (
                f"'{name}' would be written out {_copies(free)} times",
                f"expected at most {MAX_COPIES_OF_A_VALUE} unrolled copies of a value",
            )
    for free in dag.free_of_statement.values():
        vectors = [_name(r) for r in free if r.kind.data == "vector"]
        if len(vectors) > 1:
            return (
                f"what is stored varies along the vectors {', '.join(sorted(vectors))}",
                "expected at most one range of kind vector around a store",
            )
    for op in dag.position:
        found = _problem_of_op(dag, op)
        if found is not None:
            return found
    return None


def _problem_of_op(dag: LoopDag, op: object) -> tuple[str, str] | None:
    match op:
        case loop.RangeOp() if op.kind.data == "vector":
            lanes = length_of(op)
            if lanes < 1 or lanes & (lanes - 1):
                return f"'{_name(op)}' is a vector of {lanes} lanes", "expected a power of two"
        case loop.TileOp():
            copied = _not_loops(dag.free[op.result])
            if copied:
                return (
                    f"the tile '{op.result.name_hint or 'tile'}' would be filled for each copy of "
                    f"'{copied}' in one buffer",
                    "expected the tile to be over that range too: capture it",
                )
        case loop.ValueOp():
            copied = _not_loops(dag.free[op.result])
            if copied:
                return (
                    f"a computed index varies along '{copied}', which is no loop",
                    "expected a range of kind loop: there are no gathers by lanes",
                )
        case loop.ReduceOp():
            return _problem_of_reduction(op) or _problem_of_pairs(dag, op)
        case _:
            pass
    return None


def _problem_of_reduction(op: loop.ReduceOp) -> tuple[str, str] | None:
    own = own_ranges(op)
    name = (op.results[0].name_hint if op.results else None) or "a reduction"
    threads = [_name(r) for r in own if r.kind.data == "thread"]
    if threads:
        return (
            f"'{name}' runs across the threads of '{threads[0]}'",
            "expected a range of the result for threads: a part writes places of its own",
        )
    lanes = [_name(r) for r in own if r.kind.data == "vector"]
    if lanes and not is_inline(op):
        return (
            f"'{name}' runs along the lanes of '{lanes[0]}' and a loop with one accumulator",
            "expected an accumulator for each lane: split without chain",
        )
    if lanes and op.kind is None and not is_merging(op):
        return (
            f"'{name}' combines by a region, whose order lanes would change",
            "expected its ranges to be loops, or unrolled in order",
        )
    if is_inline(op) and op.kind is not None and op.kind.data in loop.PRODUCT_KINDS:
        return (
            f"'{name}' is a contracted sum without a loop",
            "expected its range to be a loop at least in part, or no contract",
        )
    return None


def _problem_of_pairs(dag: LoopDag, op: loop.ReduceOp) -> tuple[str, str] | None:
    if op.kind is None or op.kind.data != "dot":
        return None
    lanes = [length_of(r) for r in dag.free[op.results[0]] if r.kind.data == "vector"]
    if not lanes or lanes[0] in DOT_LANES:
        return None
    name = op.results[0].name_hint or "a reduction"
    return (
        f"'{name}' adds pairs of bf16 in {lanes[0]} lanes",
        f"expected {', '.join(map(str, DOT_LANES[:-1]))} or {DOT_LANES[-1]} lanes, or no vector",
    )


def _copies(free: Ranges) -> int:
    count = 1
    for range_op in free:
        if range_op.kind.data == "unroll":
            count *= max(length_of(range_op), 1)
    return count


def _not_loops(free: Ranges) -> str:
    """The name of a range among some that is copies or lanes, or nothing."""
    return next((_name(r) for r in free if not is_loop(r)), "")


def _name(op: loop.RangeOp) -> str:
    return op.result.name_hint or "a range"
