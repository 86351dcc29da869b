"""Computing lazy nodes: one plan for all that is asked at a time (several if that is very long),
found by structure or compiled.

    realize([a, b])        # afterwards a.realized and b.realized are buffers

On a hit no IR is touched: the graph is walked once for its key, and one C call does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uopc.dialects.errors import UopcError
from uopc.frontend.debugging import debug_level
from uopc.frontend.extents import any_symbolic
from uopc.frontend.graph import Array, Node, buffer, evaluation_order, resolved
from uopc.frontend.plan_cache import CachedPlan, Key, plans
from uopc.frontend.segments import segments
from uopc.runtime.buffers import address
from uopc.runtime.environment import compile_settings

if TYPE_CHECKING:
    from uopc.lowering.plan import Program

PLAN_NAME = "realize"


def realize(nodes: Sequence[Node]) -> None:
    """Compute nodes; the `realized` of each is its buffer afterwards, if it is no buffer itself.

    Raises UopcError [donated-tensor] if a value is needed that a jitted function has used up,
    [value-while-tracing] if a value depends on an input of a function that is
    being traced, and what compiling raises.
    """
    start = time.perf_counter()
    wanted = dict.fromkeys(nodes)
    roots: list[Node] = []
    for node in wanted:
        target = resolved(node)
        if target.op == "buffer":
            if target.array is None:
                raise no_value_yet(target)
            if node is not target:
                node.realized = target
        elif not _is_view(target):
            roots.append(target)
    if roots:
        _run(list(dict.fromkeys(roots)), start)
    for node in wanted:
        if (target := resolved(node)) is not node:
            node.realized = target


def no_value_yet(node: Node) -> UopcError:
    """What is said where a buffer without data is read: that of a jitted function's input exists
    only when the function runs, and one that was donated is gone."""
    if node.attributes == ("donated",):
        return UopcError(
            "donated-tensor",
            "this tensor was donated to a jitted function (donate_argnums), which has used it up",
            hint="use what the function returned, or donate a clone()",
        )
    return UopcError(
        "value-while-tracing",
        "this value is an input of the function that uopc.jit traces, or depends on one: "
        "it is not known yet",
        hint="inside of a jitted function use tensor ops (where, not if), or return the tensor "
        "and read it outside",
    )


def _is_view(node: Node) -> bool:
    """A reshape of a buffer is the same array in another shape: no kernel, no copy."""
    source = node
    while source.op == "reshape":
        source = resolved(source.sources[0])
    if source is node or source.op != "buffer" or source.array is None:
        return False
    node.realized = buffer(source.array.reshape(node.shape), node.type)
    return True


def structure_key(order: Sequence[Node], roots: Sequence[Node]) -> Key:
    """The structure of a graph in evaluation order: see plan_cache.py."""
    positions: dict[Node, int] = {}
    key: list[object] = []
    for position, node in enumerate(order):
        positions[node] = position
        key.append(node.kind)
        for source in node.sources:
            # Mostly a source stands for itself.
            at = positions.get(source) if source.realized is None else None
            key.append(positions[resolved(source)] if at is None else at)
    key.append(len(order))
    key += [positions[resolved(root)] for root in roots]
    return tuple(key)


def find_plan(
    order: Sequence[Node],
    roots: Sequence[Node],
    name: str = PLAN_NAME,
    donated: Sequence[int] = (),
) -> CachedPlan:
    """The compiled plan from the buffers of `order`, in its order, to `roots`.

    `donated` are the positions of buffers that it may write over.
    """

    key = structure_key(order, roots)

    def make(miss: str) -> CachedPlan:
        from uopc.frontend.compile import CompileRequest, target_flags
        from uopc.frontend.progress import progress
        from uopc.runtime import debug as debug_output
        from uopc.runtime.compiler import CompileOptions
        from uopc.runtime.executable import load_program
        from uopc.runtime.stepper import with_visible_kernels

        if debug_level():
            debug_output.say(f"{name}: compiling {len(order)} nodes; {miss}")
        with progress(f"{len(order)} nodes") as shown:
            program = _program(key, order, roots, name, donated)
            shown.enter("the C compiler")
            executable = load_program(
                program,
                name,
                options=CompileOptions(target_flags=target_flags(CompileRequest())),
                debug=debug_level(),
                debug_program=lambda: with_visible_kernels(program),
            )
        executable.schedule_seconds = 0.0
        return CachedPlan(executable, executable.prepared() if not executable.symbols else None)

    # Not part of the structure, which also names what another process may keep.
    return plans.get((*key, (*compile_settings(), *donated)), make)


def _program(
    key: Key, order: Sequence[Node], roots: Sequence[Node], name: str, donated: Sequence[int]
) -> Program:
    """What a graph becomes: found where an earlier process kept it, else made and kept."""
    from uopc.frontend.kept_programs import find_program, keep_program, program_key

    # Another process has other lines; sizes of symbols are not kept.
    if any(node.place is not None or any_symbolic(node.shape) for node in order):
        return _lowered(order, roots, name, donated)
    place = program_key((*key, ("donated", *donated)), name)
    program = find_program(place)
    if program is None:
        program = _lowered(order, roots, name, donated)
        keep_program(place, program)
    return program


def _lowered(
    order: Sequence[Node], roots: Sequence[Node], name: str, donated: Sequence[int]
) -> Program:
    from uopc.frontend.build import build_module
    from uopc.frontend.compile import CompileRequest, lower
    from uopc.frontend.progress import passes_watched
    from uopc.passes.manager import InternalError
    from uopc.passes.pipelines import PIPELINES

    request = CompileRequest()
    watched = passes_watched(len(PIPELINES[request.pipeline]))
    try:
        module = build_module(order, roots, name, donated=donated)
        return lower(module, request, watched, verify=False).program()
    except InternalError:
        # Once more with the checks between passes, which name the pass that went wrong.
        lower(build_module(order, roots, name, donated=donated), request)
        raise


def _run(roots: list[Node], start: float) -> None:
    order = evaluation_order(roots)
    for segment in segments(order, roots):
        if segment.wanted:
            _compute(segment.wanted, evaluation_order(segment.wanted), start)
            start = time.perf_counter()
        for node in segment.done:
            node.realized = None
        order = []
    rest = [root for root in roots if root.realized is None]
    if rest:
        _compute(rest, order or evaluation_order(rest), start)


def _compute(roots: list[Node], order: list[Node], start: float) -> None:
    inputs: list[Array] = []
    for node in order:
        if node.op == "buffer":
            if node.array is None:
                raise no_value_yet(node)
            inputs.append(node.array)
    plan = find_plan(order, roots)
    for root, array in zip(roots, run_plan(plan, inputs, start), strict=True):
        root.realized = buffer(array, root.type)


def run_plan(plan: CachedPlan, inputs: Sequence[Array], start: float) -> Sequence[Array]:
    """Call a plan on row-major arrays; `start` is when the work for this call began."""
    level = debug_level()
    if level == 0:
        assert plan.call is not None, "without symbols there is one"
        return plan.call(inputs, [address(array) for array in inputs])
    executable = plan.executable
    executable.debug = level
    executable.schedule_seconds = time.perf_counter() - start
    results: Any = executable(*inputs)
    return [results] if len(executable.plan.outputs) == 1 else list(results)


def run_sized_plan(
    plan: CachedPlan, inputs: Sequence[Array], sizes: Mapping[str, int], start: float
) -> Sequence[Array]:
    """`run_plan` of a plan with symbolic sizes, whose values are given by name."""
    executable = plan.executable
    executable.debug = debug_level()
    executable.schedule_seconds = time.perf_counter() - start
    free = {name: sizes[name] for name in executable.free_symbols}
    results: Any = executable(*inputs, **free)
    return [results] if len(executable.plan.outputs) == 1 else list(results)
