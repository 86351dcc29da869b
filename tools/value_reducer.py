"""Makes a program that a pass breaks smaller, as long as the pass still breaks it.

A function on tensors is cut to the earliest op whose value is wrong, what that op reads becomes
arguments, and axes are shortened. Of a plan, or of loops that call kernels, one kernel is left.
Then ops of its body are dropped one by one, a result replaced by an operand of its type, or by a
constant. Every step is kept only if the pass, run on the smaller program, still changes a value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from uopc.dialects.errors import UopcError
from uopc.dialects.rounding import Array
from uopc.dialects.source_text import printable
from uopc.interpreters.linear_core import TimeLimit
from uopc.interpreters.programs import Launch, Outcome, Program, Shapes, programs
from uopc.passes.manager import InternalError, run_passes
from uopc.tools.value_cases import Case, Source, case_of
from uopc.tools.value_cuts import (
    Inputs,
    Smaller,
    in_helper,
    kernel_only,
    program_only,
    smaller_functions,
    without_op,
)
from uopc.tools.value_rules import first_difference, rules_of
from uopc.tools.value_shapes import shorter

SECONDS = 8.0
"""How long a reduction may take."""

CANDIDATE_SECONDS = 0.3
"""How long a loop of a smaller program may run: a cut may leave one that never ends."""


@dataclass(frozen=True)
class Candidate:
    """A module with one program in it that may still show the error."""

    module: ModuleOp
    inputs: tuple[Array, ...] | None = None
    """Inputs that show it; None where those of the seed do."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The values of sizes that such inputs do not tell."""

    @property
    def size(self) -> int:
        """How many ops it has."""
        return sum(1 for _ in self.module.walk()) - 1


@dataclass(frozen=True)
class Reduced:
    """The smallest program found, and the pass that breaks it."""

    candidate: Candidate
    pass_text: str
    source: Source
    culprit: Operation | None
    """The op that makes the first result, where there is one."""

    @property
    def size(self) -> int:
        """How many ops are left in the bodies of functions, kernels and plans."""
        return self.candidate.size


class Reducer:
    """Reduces programs that one pass breaks."""

    def __init__(self, context: Context, module_pass: ModulePass, source: Source) -> None:
        self.context = context
        self.module_pass = module_pass
        self.source = source
        self._until = 0.0

    def reduce(self, module: ModuleOp, name: str, case: Case, launch: Launch | None) -> Reduced:
        """The smallest program found. `module` is as it was before the pass."""
        self._until = time.monotonic() + SECONDS
        best = Candidate(module.clone(), case.inputs, case.symbols)
        if launch is not None:
            best = self._first(_of_launch(module, launch)) or best
        best = self._first(iter([replace(best, module=program_only(best.module, name))])) or best
        if best.inputs is not None:
            best = self._first(iter([replace(best, inputs=None)])) or best
        best = self._repeated(best, smaller_functions)
        best = self._without_ops(best)
        best = self._repeated(best, shorter)
        if best.inputs is not None:
            best = self._first(iter([replace(best, inputs=None)])) or best
        text = str(self.module_pass.pipeline_pass_spec())
        return Reduced(best, text, self.source, _culprit(best.module))

    def _repeated(self, best: Candidate, step: Callable[[ModuleOp, Inputs], Smaller]) -> Candidate:
        """Take smaller programs of one kind as long as one of them still shows the error."""
        while time.monotonic() < self._until:
            smaller = (Candidate(m, i, best.sizes) for m, i in step(best.module, best.inputs))
            found = self._first(smaller)
            if found is None:
                return best
            best = found
        return best

    def _without_ops(self, best: Candidate) -> Candidate:
        """Drop ops one by one, the last first, until none can be spared."""
        progress = True
        while progress:
            progress, position = False, best.size
            while position > 0 and time.monotonic() < self._until:
                position -= 1
                if in_helper(best.module, position):
                    continue
                smaller = (replace(best, module=m) for m in without_op(best.module, position))
                found = self._first(smaller)
                if found is not None:
                    # Functions that nobody calls any more go too.
                    (program,) = programs(found.module)
                    best = replace(found, module=program_only(found.module, program.name))
                    progress, position = True, min(position, best.size)
        return best

    def _first(self, candidates: Iterator[Candidate]) -> Candidate | None:
        for candidate in candidates:
            if time.monotonic() > self._until:
                return None
            if self.is_wrong(candidate):
                return candidate
        return None

    def is_wrong(self, candidate: Candidate) -> bool:
        """Whether the pass changes a value of a candidate's program."""
        try:
            with TimeLimit.seconds(CANDIDATE_SECONDS):
                return self._changes(candidate)
        except (UopcError, InternalError):
            return False  # no program that the pass takes, or that can be run
        except Exception:
            # A cut may leave what no verifier and no interpreter was made for; such a program is
            # not smaller, it is none.
            return False

    def _changes(self, candidate: Candidate) -> bool:
        candidate.module.verify()
        before = programs(candidate.module)
        if len(before) != 1:
            return False
        cases = self._cases(before[0], candidate)
        changed = candidate.module.clone()
        run_passes(self.context, changed, [self.module_pass])
        after = [p for p in programs(changed) if p.name == before[0].name]
        if not after:
            return False
        rules = rules_of(candidate.module, before[0], self.module_pass.name, changed)
        for case in cases:
            old = before[0].run(case.inputs, case.symbols)
            shapes = {n: a.shape for n, a in old.results.items()}
            new = _run(after[0], case, shapes)
            if new is None or first_difference(old.results, new.results, rules) is not None:
                return True
        return False

    def _cases(self, program: Program, candidate: Candidate) -> list[Case]:
        if candidate.inputs is None:
            return self.source.cases(program)
        sizes = {
            name: candidate.sizes[name] for name, _, _ in program.symbols if name in candidate.sizes
        }
        return [case_of(program, candidate.inputs, "given arrays", sizes)]


def _run(program: Program, case: Case, shapes: Shapes) -> Outcome | None:
    """The outcome; None where running fails though it did not before."""
    try:
        return program.run(case.inputs, case.symbols, shapes)
    except UopcError as error:
        if error.kind in ("out-of-bounds", "read-only", "bad-cast", "bad-step"):
            return None
        raise


def _of_launch(module: ModuleOp, launch: Launch) -> Iterator[Candidate]:
    """Programs of the one kernel that a launch ran."""
    made = kernel_only(module, launch.kernel)
    if made is not None:
        yield Candidate(made)
        (program,) = programs(made)
        names = [name for name, _, _ in program.symbols]
        yield Candidate(made, launch.inputs, dict(zip(names, launch.sizes, strict=False)))


def _culprit(module: ModuleOp) -> Operation | None:
    """The op that makes the first result of a module's program."""
    for program in programs(module):
        last = program.op.regions[0].block.last_op
        for value in () if last is None else last.operands:
            if isinstance(value.owner, Operation) and value.owner.name.startswith("utensor."):
                return value.owner
        for op in reversed(list(module.walk())):
            if op.name in _WRITES:
                owner = op.operands[0].owner
                if isinstance(owner, Operation) and "constant" not in owner.name:
                    return owner
                return op
    return None


_WRITES = ("uloop.store", "uloop.update", "memref.store", "vector.store", "ukernel.write")


def reproducer_text(reduced: Reduced, error: UopcError, path: str) -> str:
    """The reduced module as a file that says how to run it; inputs it needs go next to it."""
    argument = reduced.source.text
    if reduced.candidate.inputs is not None:
        argument = f"{Path(path).stem}.npz"
        _write_inputs(Path(path).with_name(argument), reduced.candidate)
        argument = f"%S/{argument}"
    message = printable(error.message)
    stream = StringIO()
    Printer(stream=stream).print_op(reduced.candidate.module)
    command = f'uopc-opt %s -p "{reduced.pass_text}" --check-values={argument}'
    return (
        f"// RUN: not {command} 2>&1 | filecheck %s\n"
        f"// {message}\n"
        f"// CHECK: [value-changed]\n\n{stream.getvalue()}\n"
    )


def _write_inputs(path: Path, candidate: Candidate) -> None:
    (program,) = programs(candidate.module)
    arrays = {
        i.name: a.view(np.uint16) if a.dtype.name == "bfloat16" else a
        for i, a in zip(program.inputs, candidate.inputs or (), strict=True)
    }
    try:
        np.savez(path, allow_pickle=False, **arrays)
    except OSError as error:
        raise UopcError("cannot-write", f"'{path}' cannot be written: {error}") from error
