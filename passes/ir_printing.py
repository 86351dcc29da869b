"""Prints the module before and after passes, as mlir-opt's --mlir-print-ir-... options do."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from uopc.passes.manager import Instrument


@dataclass(frozen=True)
class PrintRequest:
    """Which dumps are wanted. `before` and `after` hold pass names."""

    before_all: bool = False
    after_all: bool = False
    after_change: bool = False
    after_failure: bool = False
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    generic: bool = False
    locations: bool = False

    def __bool__(self) -> bool:
        everywhere = self.before_all or self.after_all or self.after_change or self.after_failure
        return everywhere or bool(self.before or self.after)


class IRPrinting(Instrument):
    """Writes the dumps that a request asks for to a stream, under MLIR's banner.

    After a pass the module is printed before it is verified, so a broken one can be seen too.
    """

    def __init__(self, request: PrintRequest, stream: IO[str]) -> None:
        self.request = request
        self.stream = stream
        self._text_before = ""

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Print if asked to, and remember the text if changes are looked for."""
        request = self.request
        if request.after_change:
            self._text_before = self._text(module)
        if request.before_all or module_pass.name in request.before:
            self._dump("Before", module_pass, self._text_before or self._text(module))

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Print if asked to; with `after_change` alone, only what differs from before."""
        request = self.request
        named = module_pass.name in request.after
        if not (request.after_all or request.after_change or named):
            return
        text = self._text(module)
        if request.after_change and not named and text == self._text_before:
            return
        self._dump("After", module_pass, text)

    def after_failure(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Print the module that a failed pass left, if asked to."""
        if self.request.after_failure:
            self._dump("After", module_pass, self._text(module), " Failed")

    def _dump(self, when: str, module_pass: ModulePass, text: str, how: str = "") -> None:
        banner = f"// -----// IR Dump {when} {module_pass.name}{how} //----- //"
        self.stream.write(f"{banner}\n{text}\n\n")
        self.stream.flush()

    def _text(self, module: ModuleOp) -> str:
        """The module's text; of one too broken for its custom form, the generic form."""
        try:
            return module_text(module, self.request.generic, self.request.locations)
        except Exception as error:
            try:
                generic = module_text(module, generic=True, locations=False)
            except Exception as second:
                return f"// the module cannot be printed: {type(second).__name__}: {second}"
            return f"// generic form, since printing failed: {type(error).__name__}\n{generic}"


def module_text(module: ModuleOp, generic: bool = False, locations: bool = False) -> str:
    """The module as text, without a newline at the end."""
    stream = StringIO()
    printer = Printer(stream=stream, print_generic_format=generic, print_debuginfo=locations)
    printer.print_op(module)
    return stream.getvalue()


class PrintBetweenPasses(Instrument):
    """xDSL's --print-between-passes: to standard output, between any two passes."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._previous: ModulePass | None = None

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Print what the previous pass left."""
        if self._previous is not None:
            text = module_text(module)
            self.stream.write(f"IR after {self._previous.name}:\n{text}\n\n\n\n\n")

    def after_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Remember the pass, for the title."""
        self._previous = module_pass
