"""`uopc-opt --check-values`: which pass changes a value, and the smallest program that shows it.

The module is interpreted before the first pass and after each, on the same inputs, at whatever
level it is. The first pass after which a result differs by more than docs/numerics.md allows
(value_rules.py) is blamed:

    softmax.mlir:5:8: error: pass wrong-tail changes a value of @softmax: result 0 at [0, 127] is
    0.0, expected 0.0081 (64 of 8192 elements differ) [value-changed]
      op: "utensor.sub" …
      in pass: wrong-tail

and what is left of the module after reduction (value_reducer.py) is written to a file with the
command that repeats the error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.interpreters.linear_core import TimeLimit
from uopc.interpreters.programs import Launch, Outcome, Program, Shapes, programs
from uopc.passes.manager import Instrument
from uopc.tools.value_cases import Case, Source
from uopc.tools.value_reducer import Reduced, Reducer
from uopc.tools.value_rules import Difference, Rule, difference, first_difference, rules_of

NOT_RUN = frozenset(
    ("not-interpreted", "cannot-make-inputs", "index-unbound", "no-function", "nesting-too-deep")
)
"""Kinds of errors that say that a module cannot be interpreted, not that it is wrong."""


RUN_SECONDS = 120.0
"""How long loops may run in one case: a pass may make one that never ends."""


@dataclass
class Subject:
    """A program under watch: its cases, and what it last gave for each."""

    name: str
    cases: list[Case]
    outcomes: list[Outcome | UopcError]
    unseen: list[str] = field(default_factory=list[str])
    """Passes that ran since then, after which the module could not be interpreted."""


def run_case(program: Program, case: Case, shapes: Shapes) -> Outcome | UopcError:
    """The outcome of one case, or the error it ends in."""
    try:
        with TimeLimit.seconds(RUN_SECONDS):
            return program.run(case.inputs, case.symbols, shapes)
    except UopcError as error:
        return error
    except RecursionError:
        return UopcError("nesting-too-deep", "the program nests too deep to be interpreted")


def shapes_of(outcome: Outcome | UopcError) -> Shapes:
    if isinstance(outcome, UopcError):
        return {}
    return {n: a.shape for n, a in outcome.results.items()}


class CheckValues(Instrument):
    """Interprets the module before and after each pass.

    Raises UopcError [value-changed] at the first pass that changes a value; it is what ends the
    run. `reproducer` is the file for the smallest program, none for None.
    """

    def __init__(self, context: Context, source: Source, reproducer: str | None) -> None:
        self.context = context
        self.source = source
        self.reproducer = reproducer
        self._module: ModuleOp | None = None
        self._before: ModuleOp | None = None
        self._subjects: dict[str, Subject] = {}

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        if module is not self._module:
            self._module = module
            self._subjects = {}
            found = programs(module)
            for program in found:
                self._start(program)
            if not found:
                _note("nothing is checked: there is no function or ukernel.plan to call")
        self._before = module.clone()

    def _start(self, program: Program) -> None:
        try:
            cases = self.source.cases(program)
        except UopcError as error:
            if error.kind not in NOT_RUN:
                raise
            _note(f"@{program.name} is not checked: {error.message}")
            return
        outcomes = [run_case(program, case, {}) for case in cases]
        kept = [
            (case, outcome)
            for case, outcome in zip(cases, outcomes, strict=True)
            if isinstance(outcome, Outcome)
        ]
        for outcome in outcomes:
            if isinstance(outcome, UopcError):
                _note(f"@{program.name} is not checked on a case: {outcome.message}")
        if kept:
            self._subjects[program.name] = Subject(
                program.name, [c for c, _ in kept], [o for _, o in kept]
            )

    def after_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        for program in programs(module):
            subject = self._subjects.get(program.name)
            if subject is not None:
                self._compare(module_pass, module, program, subject)

    def _compare(
        self, module_pass: ModulePass, module: ModuleOp, program: Program, subject: Subject
    ) -> None:
        assert self._before is not None
        name = module_pass.name
        before = next((p for p in programs(self._before) if p.name == program.name), None)
        rules = {} if before is None else rules_of(self._before, before, name, module)
        after: list[Outcome | UopcError] = []
        for case, old in zip(subject.cases, subject.outcomes, strict=True):
            new = run_case(program, case, shapes_of(old))
            if isinstance(new, UopcError) and new.kind in NOT_RUN:
                _note(f"@{program.name} cannot be interpreted after {name}: {new.message}")
                subject.unseen.append(name)
                return
            found = compare(old, new, rules)
            if found is not None:
                raise self._blamed(module_pass, module, subject, (case, old, new), found)
            after.append(new)
        subject.outcomes, subject.unseen = after, []

    def _blamed(
        self,
        module_pass: ModulePass,
        module: ModuleOp,
        subject: Subject,
        run: tuple[Case, Outcome | UopcError, Outcome | UopcError],
        found: Difference,
    ) -> UopcError:
        assert self._before is not None
        case, old, new = run
        blamed = " or ".join([*subject.unseen, module_pass.name])
        launch = _first_launch(old, new)
        reducer = Reducer(self.context, module_pass, self.source)
        reduced = reducer.reduce(self._before, subject.name, case, launch)
        message = f"pass {blamed} changes a value of @{subject.name}: {found}"
        if launch is not None:
            message += f"; the first kernel that differs is @{launch.kernel}"
        hints = [f"on {case.name}"]
        if found.tolerance:
            hints.append(f"differences up to {found.tolerance:.2g} of the largest number are right")
        op = reduced.culprit
        error = UopcError(
            "value-changed",
            message,
            op_text="" if op is None else op_text(op),
            location=nearest_location(self._before if op is None else op),
            pass_name=module_pass.name,
        )
        if self.reproducer is not None:
            path = self._write(reduced, error)
            hints.append(f"{reduced.size} ops are left of the program in {path}, with the command")
        error.hint = "; ".join(hints)
        return error

    def _write(self, reduced: Reduced, error: UopcError) -> str:
        assert self.reproducer is not None
        from uopc.tools.output_file import write_output
        from uopc.tools.value_reducer import reproducer_text

        write_output(self.reproducer, reproducer_text(reduced, error, self.reproducer))
        return self.reproducer


def compare(
    old: Outcome | UopcError, new: Outcome | UopcError, rules: Mapping[int, Rule]
) -> Difference | None:
    """What a pass changed in one case."""
    if isinstance(old, UopcError):
        return None
    if isinstance(new, UopcError):
        words = f"running it fails: {new.message}"
        return Difference(0, (), None, None, 0, 0, 0.0, words)
    return first_difference(old.results, new.results, rules)


def _first_launch(old: Outcome | UopcError, new: Outcome | UopcError) -> Launch | None:
    """The first kernel of the old run whose buffers differ in the new one, if both ran the same."""
    if not isinstance(old, Outcome) or not old.launches:
        return None
    launches: Sequence[Launch] = new.launches if isinstance(new, Outcome) else ()
    if isinstance(new, Outcome) and [x.kernel for x in old.launches] != [
        x.kernel for x in new.launches
    ]:
        return None
    for a, b in zip(old.launches, launches, strict=False):
        for x, y in zip(a.outputs, b.outputs, strict=False):
            if difference(0, x, y, Rule(1)) is not None:
                return a
    return None


def default_reproducer(input_name: str | None) -> str:
    """Where the smallest program goes if nobody says: next to the input."""
    if input_name in (None, "-"):
        return "stdin.reproducer.mlir"
    path = Path(str(input_name))
    return str(path.with_name(f"{path.stem}.reproducer.mlir"))


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
