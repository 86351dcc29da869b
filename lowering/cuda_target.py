"""The target `-t cuda`: prints the kernels of a module as one CUDA file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target


@dataclass(frozen=True)
class CudaTarget(Target):
    """`-t cuda`: CUDA C++17 for nvcc, NVRTC and the emulator.

    Raises UopcError [unsupported-in-cuda], before anything is written.
    """

    name = "cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from uopc.lowering.cuda import emit_cuda

        output.write(emit_cuda(module).text)
