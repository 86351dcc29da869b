"""Programs on their way out: as StableHLO, read back by uopc, and run by XLA where it is."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from uopc.dialects.registry import make_context
from uopc.passes.convert_stablehlo_to_utensor import ConvertStablehloToUtensorPass
from uopc.passes.convert_utensor_to_stablehlo import ConvertUtensorToStablehloPass

Array = np.ndarray[Any, np.dtype[Any]]


def exported(module: ModuleOp) -> ModuleOp:
    """The module as StableHLO, verified."""
    out = module.clone()
    ConvertUtensorToStablehloPass().apply(make_context(), out)
    out.verify()
    return out


def imported(module: ModuleOp) -> ModuleOp:
    """StableHLO as utensor again."""
    back = module.clone()
    ConvertStablehloToUtensorPass().apply(make_context(), back)
    back.verify()
    return back


def generic_text(module: ModuleOp) -> str:
    """The text that other tools read."""
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def run_by_xla(text: str, inputs: Sequence[Array]) -> list[Array]:
    """Run @main on the CPU by XLA. Raises ImportError where there is no JAX."""
    import jax
    from jax._src.interpreters import mlir as jax_mlir
    from jax._src.lib.mlir import ir

    jax.config.update("jax_enable_x64", True)
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        backend = jax.devices("cpu")[0].client
        from jax._src import compiler
        from jax._src.lib import xla_client

        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
        program = backend.compile_and_load(module, devices, options)
    given = [jax.device_put(np.asarray(x)) for x in inputs]
    results = program.execute_sharded(given).disassemble_into_single_device_arrays()
    return [np.asarray(each[0]) for each in results]
