"""Runs passes one after another, checks the module after each, and lets instruments watch.

Instruments (passes/ir_printing.py, passes/timing.py) see the module before and after each pass.
What goes wrong is told with the pass's name: a UopcError for what input can cause, an
InternalError for a bug in a pass.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException, ShrinkException

from uopc.dialects.affine import forget_maps
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import clip_message
from uopc.dialects.verification import verify_module


class InternalError(Exception):
    """A bug in the compiler, met while `stage` ran; the cause is `__cause__`."""

    def __init__(self, stage: str, cause: BaseException, hint: str = "") -> None:
        super().__init__(stage)
        self.stage = stage
        self.hint = hint
        self.__cause__ = cause

    def __str__(self) -> str:
        cause = self.__cause__
        words = clip_message(f"{type(cause).__name__}: {cause}")
        lines = [f"internal error in {self.stage}: {words} [internal-error]"]
        hint = "this is a bug in the compiler; --show-traceback shows where"
        lines.append(f"  hint: {hint}" + (f"; {self.hint}" if self.hint else ""))
        return "\n".join(lines)


class Instrument:
    """Watches a pipeline run. The default methods do nothing.

    Of several instruments the last sits closest to the pass: `before_` methods are called in
    order, `after_` methods in reverse.
    """

    def phase(self, label: str) -> AbstractContextManager[object]:
        """Around work that is no pass, such as the C compiler's."""
        return nullcontext()

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called when the pass is about to run."""

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called when the pass has run, before its result is verified."""

    def before_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called when the result of the pass is about to be verified."""

    def after_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called when the result of the pass is known to be valid."""

    def after_failure(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called when the pass failed, or left a module that does not verify."""


@contextmanager
def garbage_collector_off() -> Generator[None]:
    """No garbage collection inside the block; afterwards it is as it was.

    A compile makes many objects that live; searching them for garbage takes half of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def run_passes(
    context: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    *,
    verify: bool = True,
    instruments: Sequence[Instrument] = (),
) -> None:
    """Run the passes on the module, in place, with the garbage collector off.

    After each pass the module is verified, and that its ops are legal at the level which the
    pass declares as `level_after` (unless `verify` is false).

    Raises UopcError with `pass_name` set for a failure that input can cause, and InternalError
    for any other exception in a pass.
    """
    with garbage_collector_off():
        try:
            for module_pass in passes:
                for instrument in instruments:
                    instrument.before_pass(module_pass, module)
                try:
                    _apply(context, module, module_pass)
                    for instrument in reversed(instruments):
                        instrument.after_pass(module_pass, module)
                    for instrument in instruments:
                        instrument.before_verify(module_pass, module)
                    if verify:
                        _verify_after(module, module_pass)
                except (UopcError, InternalError):
                    for instrument in reversed(instruments):
                        instrument.after_failure(module_pass, module)
                    raise
                for instrument in reversed(instruments):
                    instrument.after_verify(module_pass, module)
        finally:
            forget_maps()  # they hold what the passes made of kernels


def _apply(context: Context, module: ModuleOp, module_pass: ModulePass) -> None:
    name = module_pass.name
    try:
        module_pass.apply(context, module)
    except UopcError as error:
        error.pass_name = error.pass_name or name
        raise
    except ShrinkException:
        raise
    except DiagnosticException as error:
        raise UopcError(
            "pass-failed", clip_message(str(error)) or "the pass failed", pass_name=name
        ) from error
    except RecursionError as error:
        raise UopcError(
            "nesting-too-deep",
            "the program nests too deep for this pass",
            pass_name=name,
            hint=f"split it into several functions; --print-ir-before={name} shows it",
        ) from error
    except MemoryError as error:
        raise UopcError("out-of-memory", "memory ran out", pass_name=name) from error
    except OSError as error:
        raise UopcError("pass-failed", clip_message(str(error)), pass_name=name) from error
    except Exception as error:
        if str(error).endswith("mlir-opt is not available"):  # xDSL has no kind of its own for it
            raise UopcError(
                "missing-dependency",
                f"the pass runs a program that is not there: {clip_message(str(error))}",
                pass_name=name,
                hint="install MLIR so that mlir-opt is on PATH, or leave the pass out",
            ) from error
        raise InternalError(
            f"pass {name}", error, hint=f"--print-ir-before={name} shows what the pass got"
        ) from error


def _verify_after(module: ModuleOp, module_pass: ModulePass) -> None:
    name = module_pass.name
    try:
        verify_module(module, level=getattr(module_pass, "level_after", ""))
    except UopcError as error:
        error.pass_name = name
        dump = f"see what the pass got and left: --print-ir-before={name} --print-ir-after={name}"
        error.hint = f"{error.hint}; {dump}" if error.hint else dump
        raise
