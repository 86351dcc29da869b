"""The target `-t c`: prints a module as one C11 file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target


@dataclass(frozen=True)
class CTarget(Target):
    """`-t c{static-kernels=false}`: C11, also valid C++17.

    Raises UopcError [unsupported-in-c], before anything is written.
    """

    name = "c"

    static_kernels: bool = True
    """Whether private functions are static; if not, other files may call them."""
    header: bool = False
    """Print the header that declares the public functions instead."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from uopc.lowering.c import emit_c, emit_header

        if self.header:
            output.write(emit_header(module))
        else:
            output.write(emit_c(module, static_kernels=self.static_kernels).text)
