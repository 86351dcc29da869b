"""A compiled plan that can be called on numpy arrays.

    exe = load_program(program)
    result = exe(a, b)                      # one output: the array; several: a tuple
    result = exe(a, weight=w, length=7)     # inputs and free sizes by name
    exe.run_into([out], [a, b])             # into arrays that exist

What a call promises:

* Inputs are never written. One that is strided, misaligned or in column-major order is copied.
* Outputs are fresh arrays on 64-byte boundaries. An output that is an input, or another output,
  unchanged is a copy of it: writing to a result changes nothing else.
* Calls from several threads run at the same time, each with a workspace of its own.
* At debug level 0 a call is one C call; levels 2 and above call the kernels one by one.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Plan, Program, alias_sources
from uopc.runtime import debug as debug_output
from uopc.runtime import environment
from uopc.runtime.buffers import (
    C_CONTIGUOUS_AND_ALIGNED,
    Array,
    Shape,
    Workspaces,
    address,
    aligned_copy,
    fresh_output,
    numpy_dtype,
)
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.library import Library, load_library
from uopc.runtime.packed_call import MAX_ARGUMENTS, packed_entry, packed_name, packed_source
from uopc.runtime.prepared import PreparedCall
from uopc.runtime.shapes import Binding, ShapeBinder
from uopc.runtime.signature import Signature
from uopc.runtime.stepper import KernelStepper
from uopc.runtime.threads import use_pool

_BYTE = np.dtype(np.uint8)


class PlanExecutable:
    """What every call of a plan does, on whatever it runs: arguments in, results out."""

    def __init__(self, program: Program, plan_name: str | None, debug: int | None) -> None:
        """`debug` is the level of runtime/debug.py; None asks UOPC_DEBUG, once, here.

        Raises `unknown-plan`.
        """
        self.program = program
        self.plan: Plan = chosen_plan(program, plan_name)
        self.source: str = program.source
        self.debug: int = environment.debug_level() if debug is None else debug
        self._aliases = alias_sources(self.plan)
        self._changed = [k for k, buffer in enumerate(self.plan.inputs) if buffer.changed]
        self._binder = ShapeBinder(self.plan)
        self._signature = Signature(self.plan, self._binder.free)
        self._single = len(self.plan.outputs) == 1
        self.schedule_seconds: float = 0.0
        """Work that preceded the next run, told in its debug line and then forgotten."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the plan's symbolic sizes."""
        return tuple(symbol.name for symbol in self.plan.symbols)

    @property
    def free_symbols(self) -> tuple[str, ...]:
        """Those that are no input's extent by themselves, and are passed by name."""
        return self._binder.free

    def _launch(self, binding: Binding, pointers: list[int | None], start: float) -> None:
        """Run all kernels. `pointers`: of the inputs, then of the outputs that are no alias."""
        raise NotImplementedError

    def _constant(self, index: int, shape: Shape) -> Array:
        """A constant of the plan, for outputs that are one."""
        raise NotImplementedError

    def _say_run(
        self, lines: list[str], kernels: list[debug_output.KernelTime], start: float, began: float
    ) -> None:
        """Print `lines`, a line a kernel and the line of a run that ends now."""
        ended = time.perf_counter()
        again = sum(kernel.again or 0.0 for kernel in kernels)
        schedule = began - start + self.schedule_seconds
        self.schedule_seconds = 0.0
        lines = [*lines, *(debug_output.kernel_line(kernel) for kernel in kernels)]
        count = len(self.plan.kernels)
        lines.append(debug_output.run_line(self.plan.name, count, schedule, ended - began - again))
        debug_output.say(*lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.plan.name}: {len(self.plan.kernels)} kernels>"

    def __call__(self, *arrays: object, **named: object) -> Any:
        """Run on arrays given in the plan's order or by name; sizes that no input has, by name.

        Returns the array of the one output, or a tuple of arrays.

        Raises `wrong-input-count`, `wrong-type`, `wrong-dtype`, `byte-order`, `unknown-argument`
        and what ShapeBinder.bind raises.
        """
        start = time.perf_counter() if self.debug else 0.0
        sizes: dict[str, int] | None = None
        values: Sequence[object] = arrays
        if named:
            values, sizes = self._signature.by_name(arrays, named)
        inputs, shapes, pointers = self._signature.admit(values)
        self._keep_arguments(inputs, pointers)
        binding = self._binder.bind(shapes, sizes)
        outputs: list[Array | None] = [None] * len(binding.outputs)
        for position, shape, dtype, size in binding.written:
            outputs[position], pointer = fresh_output(shape, dtype, size)
            pointers.append(pointer)
        self._launch(binding, pointers, start)
        results = self._completed(outputs, inputs, binding.outputs) if self._aliases else outputs
        return results[0] if self._single else tuple(results)

    def run_into(self, outputs: Sequence[Array], inputs: Sequence[object], **sizes: object) -> None:
        """Run and write the results into `outputs`, arrays of the right dtype and shape.

        They may be strided, and may overlap inputs or each other's memory: results then go
        through a fresh array. Raises what a call raises, `wrong-output-count`,
        `wrong-output-shape` and `read-only-output`.
        """
        start = time.perf_counter() if self.debug else 0.0
        given: dict[str, int] | None = None
        values: Sequence[object] = inputs
        if sizes:
            values, given = self._signature.by_name(inputs, sizes)
        arrays, shapes, pointers = self._signature.admit(values)
        self._keep_arguments(arrays, pointers)
        binding = self._binder.bind(shapes, given)
        self._signature.check_outputs(outputs, binding)
        direct: list[Array | None] = [None] * len(outputs)
        for position, shape, dtype, size in binding.written:
            target = outputs[position]
            others = [*arrays, *outputs[:position], *outputs[position + 1 :]]
            if not writable_in_place(target, others):
                target, _ = fresh_output(shape, dtype, size)
            direct[position] = target
            pointers.append(address(target))
        self._launch(binding, pointers, start)
        # All results are read before any is copied: an output may share an input's memory.
        results = self._completed(direct, arrays, binding.outputs)
        for target, result in zip(outputs, results, strict=True):
            if target is not result:
                target[...] = result

    def _keep_arguments(self, inputs: list[Array], pointers: list[int | None]) -> None:
        """Let the program write over copies of the inputs that it writes over."""
        for position in self._changed:
            copy = inputs[position] = aligned_copy(inputs[position])
            pointers[position] = address(copy)

    def _completed(
        self, outputs: Sequence[Array | None], inputs: Sequence[Array], shapes: Sequence[Shape]
    ) -> list[Array]:
        """The outputs, with those that are other buffers unchanged filled in as copies."""
        results = list(outputs)
        for position, kind, source in self._aliases:
            origin: Array | None
            if kind == "in":
                origin = inputs[source]
            elif kind == "out":
                origin = results[source]
            else:
                origin = self._constant(source, shapes[position])
            assert origin is not None
            results[position] = aligned_copy(origin.reshape(shapes[position]))
        return results  # pyright: ignore[reportReturnType] (every output is written or an alias)


class Executable(PlanExecutable):
    """One plan of a program, compiled and loaded."""

    def __init__(
        self,
        program: Program,
        plan_name: str | None = None,
        *,
        options: CompileOptions | None = None,
        debug: int | None = None,
        debug_program: Callable[[], Program] | None = None,
    ) -> None:
        """Compile `program` unless the cache has it, and load it.

        `plan_name` may be left out where the program has one plan. `debug` is the level of
        runtime/debug.py; None asks UOPC_DEBUG, once, here. `debug_program` makes the same program
        with kernels that can be called from outside; levels 2 and above need it.

        Raises `unknown-plan`, `wrong-language` and what `load_library` raises.
        """
        start = time.perf_counter()
        if program.language != "c":
            raise UopcError(
                "wrong-language",
                f"the program is in {program.language}; this runtime takes c",
            )
        super().__init__(program, plan_name, debug)
        plan = self.plan
        self._options = options
        self._debug_program = debug_program
        self._stepper: KernelStepper | None = None
        self._workspaces = Workspaces(plan.workspace_bytes) if plan.workspace_bytes > 0 else None
        written = sum(not buffer.alias for buffer in plan.outputs)
        pointers = len(plan.inputs) + written + (self._workspaces is not None)
        entry, integers = program.names.get(plan.name, plan.name), len(plan.symbols)
        self.library: Library
        self._entry: Callable[..., object]
        if integers + pointers <= MAX_ARGUMENTS:
            self.library = load_library(program.source, options, program.units)
            self._entry = self.library.function(entry, integers, pointers)
        else:
            name = packed_name(entry, program.source)
            packed = packed_source(name, entry, integers, pointers)
            units = (program.units[0] + packed, *program.units[1:]) if program.units else ()
            self.library = load_library(program.source + packed, options, units)
            self._entry = packed_entry(self.library, name, integers, pointers)
        if program.use_threads:
            use_pool(self.library, program.use_threads)
        self.schedule_seconds = time.perf_counter() - start

    # -- running -----------------------------------------------------------------------------------

    def _launch(self, binding: Binding, pointers: list[int | None], start: float) -> None:
        workspaces = self._workspaces
        if workspaces is None:
            if self.debug:
                self._launch_aloud(binding, pointers, start)
            else:
                self._entry(*binding.sizes, *pointers)
            return
        workspace = workspaces.take()
        pointers.append(address(workspace))
        if self.debug:
            self._launch_aloud(binding, pointers, start)
        else:
            self._entry(*binding.sizes, *pointers)
        workspaces.give(workspace)

    def _launch_aloud(self, binding: Binding, pointers: list[int | None], start: float) -> None:
        """Run, and print what the debug level asks for."""
        kernels: list[debug_output.KernelTime] = []
        lines: list[str] = []
        stepper = self._steps(lines) if self.debug >= 2 else None
        began = time.perf_counter()
        if stepper is None:
            self._entry(*binding.sizes, *pointers)
        else:
            kernels = stepper.run(binding.sizes, pointers, again=self.debug >= 3)
        self._say_run(lines, kernels, start, began)

    def _steps(self, lines: list[str]) -> KernelStepper | None:
        """The kernels one by one; None, with a line that says so, where they cannot be called."""
        if self._stepper is not None:
            return self._stepper
        program, library = self.program, self.library
        if self._debug_program is not None:
            program = self._debug_program()
            library = load_library(program.source, self._options, program.units)
            if program.use_threads:
                use_pool(library, program.use_threads)
        try:
            stepper = KernelStepper(program, chosen_plan(program, self.plan.name), library)
        except UopcError as error:
            lines.append(f"  (no line a kernel: {error.message})")
            return None
        if self.debug >= 4:
            lines += stepper.sources()
        self._stepper = stepper
        return stepper

    def prepared(self) -> PreparedCall:
        """The shortest way to call this plan, which has no symbols, again and again."""
        inputs = [tuple(map(int, map(str, buffer.shape))) for buffer in self.plan.inputs]
        binding = self._binder.bind(inputs)
        return PreparedCall(
            self.plan,
            self._entry,
            self._workspaces,
            binding.written,
            binding.outputs,
            self._aliases,
            self._constant,
        )

    def _constant(self, index: int, shape: Shape) -> Array:
        buffer = self.plan.constants[index]
        where = self.library.address(self.program.names.get(buffer.ref, buffer.ref))
        dtype = numpy_dtype(buffer.dtype)
        raw = ctypes.string_at(where, math.prod(shape) * dtype.itemsize)
        return np.frombuffer(raw, dtype)


def load_program(
    program: Program,
    plan_name: str | None = None,
    *,
    options: CompileOptions | None = None,
    debug: int | None = None,
    debug_program: Callable[[], Program] | None = None,
) -> Executable:
    """Compile and load one plan of `program`; see Executable. Safe from any thread."""
    return Executable(program, plan_name, options=options, debug=debug, debug_program=debug_program)


def chosen_plan(program: Program, plan_name: str | None) -> Plan:
    """The plan of that name, or the only one. Raises `unknown-plan`."""
    plans = {plan.name: plan for plan in program.plans}
    if plan_name is None and len(plans) == 1:
        return program.plans[0]
    if plan_name is not None and plan_name in plans:
        return plans[plan_name]
    names = ", ".join(debug_output.printable(name)[:60] for name in list(plans)[:10])
    raise UopcError(
        "unknown-plan",
        f"the program has no plan {plan_name!r}"
        if plan_name is not None
        else f"the program has {len(plans)} plans",
        hint=f"name one of: {names}" if names else "a public function becomes a plan",
    )


def writable_in_place(target: Array, others: Sequence[Array]) -> bool:
    """Whether results may go straight into `target`: it is contiguous and no other's memory."""
    if target.flags.num & C_CONTIGUOUS_AND_ALIGNED != C_CONTIGUOUS_AND_ALIGNED:
        return False
    return not any(np.may_share_memory(target, other) for other in others)
