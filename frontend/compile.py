"""From a program to something that runs: what `uopc.compile` and `uopc.run` do.

    exe = uopc.compile(text)                         # MLIR text, or a module
    y = exe(x)                                       # numpy arrays in and out
    exe = uopc.compile(text, fuse_reduce="all")      # other kernels
    y = uopc.run(text, [x])                          # both in one step

A program is a function on tensors. The passes of a pipeline run up to plan-memory; there the plan
is read off (lowering/describe.py), and the rest turns it into loops that the emitter prints.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uopc.dialects.errors import UopcError
from uopc.runtime import environment

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from uopc.lowering.plan import Plan, Program
    from uopc.passes.manager import Instrument
    from uopc.runtime.executable import Executable, PlanExecutable

LEVELS = ("utensor", "ukernel", "uloop", "linear")
TARGETS = ("c", "cuda", "interpreter", *(f"interpreter:{level}" for level in LEVELS))
FUSE_REDUCE = ("none", "all", "auto")
DEFAULT_PIPELINE = "uopc-cpu-native"
CUDA_PIPELINE = "uopc-cuda"


@dataclass(frozen=True)
class CompileRequest:
    """Everything that decides what a program becomes."""

    target: str = "c"
    """`c`, `cuda`, or `interpreter` for the reference semantics on numpy; `interpreter:ukernel`,
    `interpreter:uloop` and `interpreter:linear` lower the program to that level and interpret what
    came of it."""
    function: str | None = None
    """The program's name, where the module has several."""
    pipeline: str = DEFAULT_PIPELINE
    """A pipeline's name (`uopc-cpu`, `uopc-cpu-native`, `uopc-cuda`), or passes with options; it
    ends in upstream loops. The default is uopc-cuda where the target is `cuda`."""
    fuse_reduce: str | None = None
    """Which reductions run inside the kernels that read them: none, all or auto; None leaves it to
    the pipeline."""
    opt_level: int = 2
    """The C compiler's -O: 0 to 3."""
    debug: int | None = None
    """Debug level 0 to 4; None asks UOPC_DEBUG."""
    target_cpu: str | None = None
    """The CPU family that kernels are for: `native`, this machine, or one by name; None asks
    UOPC_TARGET_CPU."""
    beam: int | None = None
    """How many schedules a search by measuring keeps from round to round, 0 for no search; None
    asks UOPC_BEAM."""

    @property
    def chosen_cpu(self) -> str:
        """The CPU family: the request's, else that of the environment."""

        return environment.target_cpu() if self.target_cpu is None else self.target_cpu

    @property
    def chosen_beam(self) -> int:
        """The beam: the request's, else that of the environment."""

        return environment.beam() if self.beam is None else self.beam

    def passes(self) -> str:
        """The pipeline with the options written in."""
        text = self.pipeline
        if self.target == "cuda" and text == DEFAULT_PIPELINE:
            text = CUDA_PIPELINE
        if self.fuse_reduce is not None:
            from uopc.passes.pipelines import PIPELINES

            if text not in PIPELINES:
                raise UopcError(
                    "bad-option",
                    f"fuse_reduce={self.fuse_reduce} goes with a named pipeline, not '{text}'",
                    hint="write kernelize{fuse-reduce=…} into the pipeline",
                )
            names = PIPELINES[text]
            if self.fuse_reduce == "all":  # that asks for no large intermediate: no stages
                names = tuple(name for name in names if not name.startswith("stage-"))
            fused = f"kernelize{{fuse-reduce={self.fuse_reduce}}}"
            return ",".join(fused if name.startswith("kernelize") else name for name in names)
        return text


def compile(  # the name that users of torch and JAX expect
    program: str | Path | ModuleOp,
    target: str = "c",
    *,
    function: str | None = None,
    pipeline: str = DEFAULT_PIPELINE,
    fuse_reduce: str | None = None,
    opt_level: int = 2,
    debug: int | None = None,
    target_cpu: str | None = None,
    beam: int | None = None,
) -> Executable | Any:
    """Compile a program and load it; the result is called on numpy arrays.

    `program` is MLIR text, the path of a file of it, or a module, which is not changed.

    See CompileRequest for the options.

    Raises UopcError for a program or an option that is wrong.
    """
    request = CompileRequest(
        target, function, pipeline, fuse_reduce, opt_level, debug, target_cpu, beam
    )
    return compile_request(program, request)


def run(
    program: str | Path | ModuleOp,
    inputs: Sequence[object] | Mapping[str, object] = (),
    target: str = "c",
    **options: Any,
) -> Any:
    """Compile a program and call it once; inputs in order, or by name.

    Returns an array, or a tuple of them for several results.
    """
    executable = compile(program, target, **options)
    if isinstance(inputs, Mapping):
        return executable(**inputs)
    if not isinstance(inputs, list | tuple):
        raise UopcError(
            "wrong-type",
            f"the inputs are of type {type(inputs).__name__}",
            hint="expected a list or tuple of arrays, [x] for one, or a dict of them by name",
        )
    return executable(*inputs)


def compile_request(
    program: str | Path | ModuleOp,
    request: CompileRequest,
    instruments: Sequence[Instrument] = (),
) -> Executable | Any:
    """`compile` with the options in one object."""
    from uopc.passes.manager import garbage_collector_off

    check_request(request)
    start = time.perf_counter()
    with garbage_collector_off():
        return compile_own(in_own_ops(read_program(program)), request, instruments, start=start)


def in_own_ops(module: ModuleOp) -> ModuleOp:
    """A module that has linalg, arith or math on tensors, converted in place; others as they are.

    Raises UnsupportedError for what has no conversion.
    """
    from xdsl.dialects.builtin import TensorType
    from xdsl.dialects.func import FuncOp

    foreign = any(
        (op.name.startswith(("linalg.", "tensor.")) and op.name != "tensor.extract")
        or (
            op.name.startswith(("arith.", "math."))
            and any(isinstance(v.type, TensorType) for v in op.results)
        )
        for function in module.body.block.ops
        if isinstance(function, FuncOp) and function.body.blocks
        for op in function.body.blocks[0].ops
    )
    if foreign:
        from uopc.dialects.registry import make_context
        from uopc.passes.convert_linalg_to_utensor import ConvertLinalgToUtensorPass

        ConvertLinalgToUtensorPass().apply(make_context(), module)
    return module


def compile_made(make: Callable[[], ModuleOp], request: CompileRequest) -> Executable | Any:
    """Compile a module that uopc makes itself: it is checked between passes only if one fails.

    `make` is called again for that, so that the message names the pass that went wrong.
    """
    from uopc.passes.manager import InternalError, garbage_collector_off

    check_request(request)
    start = time.perf_counter()
    with garbage_collector_off():
        try:
            return compile_own(make(), request, verify=False, start=start)
        except InternalError:
            compile_own(make(), request)
            raise


def compile_own(
    module: ModuleOp,
    request: CompileRequest,
    instruments: Sequence[Instrument] = (),
    *,
    verify: bool = True,
    start: float = 0.0,
) -> Executable | Any:
    """`compile_request` of a module that may be changed."""
    target, _, level = request.target.partition(":")
    if target == "interpreter":
        from uopc.frontend.interpreted import InterpretedExecutable

        executable = InterpretedExecutable(module, request.function, debug=request.debug)
        if level not in ("", "utensor"):
            lowered = lower(module, request, instruments, level=level, verify=verify)
            executable.use(lowered.module, lowered.plans)
        return executable
    from uopc.frontend.progress import progress
    from uopc.runtime.compiler import CompileOptions
    from uopc.runtime.executable import load_program
    from uopc.runtime.threads import warm_up

    if request.target == "c":
        warm_up()
    with progress("a program") as shown:
        lowered = lower(module, request, instruments or _watched(request), verify=verify)
        shown.enter("the C compiler")
        if request.target == "cuda":
            return _load_for_cuda(lowered, request, start)
        with phases(instruments, "print C"):
            program = lowered.program()
        options = CompileOptions(opt_level=request.opt_level, target_flags=target_flags(request))
        with phases(instruments, f"C compiler -O{request.opt_level}, load"):
            executable = load_program(
                program,
                lowered.chosen(request.function),
                options=options,
                debug=request.debug,
                debug_program=lambda: lowered.program(static_kernels=False),
            )
    executable.schedule_seconds = time.perf_counter() - start
    return executable


@contextmanager
def phases(instruments: Sequence[Instrument], label: str) -> Generator[None]:
    """A phase of each instrument, around work that is no pass."""
    with ExitStack() as stack:
        for instrument in instruments:
            stack.enter_context(instrument.phase(label))
        yield


def _watched(request: CompileRequest) -> Sequence[Instrument]:
    """Instruments that tell a terminal which of the passes is at work."""
    from uopc.frontend.progress import passes_watched
    from uopc.passes.pipelines import PIPELINES

    passes = request.passes()
    return passes_watched(len(PIPELINES.get(passes) or passes.split(",")))


def target_flags(request: CompileRequest) -> tuple[str, ...] | None:
    """What the C compiler is told of the CPU family; None where it is this very machine.

    Raises UopcError [unknown-target], and [other-machine] for a family that this one is not of.
    """
    name = request.chosen_cpu
    if name == "native":
        return None
    from uopc.passes.cpu_targets import cpu_target

    target = cpu_target(name)
    if missing := target.misses():
        raise UopcError(
            "other-machine",
            f"this machine cannot run code for the CPU target '{name}': {missing}",
            hint=f"for its C write: uopc-opt -p uopc-cpu-native --target-cpu {name} -t c",
        )
    return target.compiler_flags


def _load_for_cuda(lowered: Lowered, request: CompileRequest, start: float) -> PlanExecutable:
    from uopc.runtime.cuda_executable import load_cuda_program

    chosen = lowered.chosen(request.function)
    executable = load_cuda_program(lowered.cuda_program(), chosen, debug=request.debug)
    executable.schedule_seconds = time.perf_counter() - start
    return executable


def check_choices(target_cpu: str | None, beam: int | None) -> None:
    """Refuse a wrong CPU target or beam whether or not a pass will look at it.

    Raises UopcError [unknown-target] or [bad-option].
    """
    if beam is not None:
        from uopc.passes.schedule_search import check_beam

        check_beam(beam)
    if target_cpu is not None and target_cpu != "native":
        from uopc.passes.cpu_targets import cpu_target

        cpu_target(target_cpu)


def check_request(request: CompileRequest) -> None:
    """Raise UopcError [bad-option] for an option of a wrong type or value."""
    _check("target", request.target, TARGETS)
    if request.fuse_reduce is not None:
        _check("fuse_reduce", request.fuse_reduce, FUSE_REDUCE)
    _check("pipeline", type(request.pipeline).__name__, ("str",))
    if request.beam is not None and type(request.beam) is not int:
        _check("beam", repr(request.beam), ("a number from 0 on", "None"))
    check_choices(request.target_cpu, request.beam)
    if type(request.opt_level) is not int:
        _check("opt_level", repr(request.opt_level), ("0", "1", "2", "3"))
    if request.debug is not None and (
        type(request.debug) is not int or not 0 <= request.debug <= 4
    ):
        _check("debug", repr(request.debug), ("0", "1", "2", "3", "4", "None"))


def _check(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UopcError(
            "bad-option", f"{what} is '{value}'", hint=f"expected one of: {', '.join(known)}"
        )


def read_program(program: str | Path | ModuleOp) -> ModuleOp:
    """A verified module of one's own. Raises UopcError for text that is none."""
    from xdsl.dialects.builtin import ModuleOp

    from uopc.dialects.locations import parse_file, parse_text
    from uopc.dialects.verification import verify_module

    if isinstance(program, ModuleOp):
        module = program.clone()
    elif isinstance(program, Path):
        module = parse_file(str(program))
    elif isinstance(program, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may not check
        if program.endswith(".mlir") and "\n" not in program:
            raise UopcError(
                "wrong-type",
                f"'{program}' was given as the text of a program",
                hint=f'for the file of that name write pathlib.Path("{program}")',
            )
        module = parse_text(program)
    else:
        raise UopcError(
            "wrong-type",
            f"the program is of type {type(program).__name__}",
            hint="expected MLIR text, a pathlib.Path, or an xDSL module",
        )
    verify_module(module)
    return module


class Lowered:
    """A module of upstream loops, and the plans it was made from."""

    def __init__(self, module: ModuleOp, plans: tuple[Plan, ...]) -> None:
        self.module = module
        self.plans = plans

    def program(self, *, static_kernels: bool = True) -> Program:
        """The C source; with kernels that can be called one by one unless they are static."""
        from uopc.dialects.gpu_kernels import gpu_kernels
        from uopc.lowering.c import emit_c
        from uopc.lowering.plan import Program
        from uopc.runtime.environment import available_processors

        if gpu_kernels(self.module):
            raise UopcError(
                "bad-option",
                "the pipeline makes kernels of a GPU, and the target is c",
                hint="choose target='cuda', or a pipeline without gpu-map",
            )
        source = emit_c(self.module, static_kernels=static_kernels)
        return Program(
            source.text,
            "c",
            self.plans,
            source.names,
            use_threads=source.use_threads,
            units=source.file.units(available_processors()),
        )

    def cuda_program(self) -> Program:
        """The CUDA source of the kernels, and how they are launched."""
        from uopc.lowering.cuda_program import cuda_program

        return cuda_program(self.module, self.plans)

    def chosen(self, function: str | None) -> str:
        """The name of the plan that is meant. Raises UopcError if that is not clear."""
        names = [p.name for p in self.plans]
        if function is None and len(names) == 1:
            return names[0]
        if function in names:
            assert function is not None
            return function
        from uopc.frontend.resume import nothing_left

        if not names and (error := nothing_left(self.module)) is not None:
            raise error
        raise UopcError(
            "no-such-function",
            f"there is no program @{function}"
            if function is not None
            else f"the module has {len(names)} programs",
            hint=f"choose one with function=…: {', '.join(names)}"
            if names
            else "expected a func.func on tensors",
        )


_ENDS = {"ukernel": "rangeify", "uloop": "linearize"}
"""The pass that leads away from a level."""


def lower(
    module: ModuleOp,
    request: CompileRequest,
    instruments: Sequence[Instrument] = (),
    *,
    level: str = "linear",
    verify: bool = True,
) -> Lowered:
    """Run a pipeline on a module, in place, and read the plans off on the way.

    With a level other than `linear`, only the passes before the one that leads away from it.
    Without `verify` nothing is checked between passes: for modules that uopc made itself.
    """
    from uopc.dialects.kernel import PlanOp
    from uopc.dialects.registry import make_context
    from uopc.frontend.resume import check_start, kernels_are_linear
    from uopc.lowering.describe import describe_plan
    from uopc.passes.manager import run_passes
    from uopc.passes.registry import pass_factories
    from uopc.passes.resolve import resolve_pipeline, with_defaults

    passes: list[ModulePass] = resolve_pipeline(request.passes(), pass_factories())
    check_start(module, passes)
    options = {"target": request.chosen_cpu, "beam": request.chosen_beam}
    passes = with_defaults(passes, "schedule", **options)
    if any(getattr(each, "beam", 0) for each in passes):
        from uopc.frontend import measuring

        measuring.install()
    names = [p.name for p in passes]
    # What is linear already needs no linearize; its plan is read before lower-plan as well.
    end = "lower-plan" if kernels_are_linear(module) else "linearize"
    if end not in names:
        raise UopcError(
            "incomplete-pipeline",
            f"the pipeline '{request.passes()}' does not end in loops",
            hint="expected it to have linearize and lower-plan, as uopc-cpu has",
        )
    if level in _ENDS and _ENDS[level] in names:
        passes = passes[: names.index(_ENDS[level])]
    cut = names.index(end)
    context = make_context()
    run_passes(context, module, passes[:cut], verify=verify, instruments=instruments)
    plans = tuple(
        describe_plan(op, module) for op in module.body.block.ops if isinstance(op, PlanOp)
    )
    run_passes(context, module, passes[cut:], verify=verify, instruments=instruments)
    return Lowered(module, plans)
