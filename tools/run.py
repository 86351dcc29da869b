"""uopc-run: compile a program, run it, and show what it became.

uopc-run softmax.mlir                           random inputs; prints the results
uopc-run softmax.mlir --input x.npz -o y.npz    arrays from and to files
uopc-run softmax.mlir --show all --check        plan, C, result against numpy, time
uopc-run model.onnx --input x.npz               an ONNX model
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uopc.dialects.errors import UopcError
from uopc.tools.argument_parser import ToolArgumentParser

if TYPE_CHECKING:
    import numpy as np

    from uopc.lowering.plan import Plan

    Array = np.ndarray[Any, np.dtype[Any]]

SHOWN = ("plan", "c", "cuda", "resources", "all", "none")
TIMED_SECONDS = 0.2


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = ToolArgumentParser(
        prog="uopc-run",
        description="Compile a program of tensor ops, run it and print its results.",
    )
    add = parser.add_argument
    add(
        "file",
        help="MLIR text: a func.func on tensors, or StableHLO (- is standard input); or a .onnx",
    )
    add(
        "--input",
        "-i",
        action="append",
        default=[],
        metavar="FILE",
        help="inputs: an .npz with the arguments' names (or arr_0, …), or one .npy an argument",
    )
    add("--seed", type=_seed, default=0, help="seed of the random inputs (default 0)")
    add(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="the value of a size that is a symbol (default: its upper bound, at most 64)",
    )
    add("--function", metavar="NAME", help="which function, where the file has several")
    add(
        "--target",
        default="c",
        help="c (default), cuda, interpreter, or interpreter:LEVEL, which lowers the program to "
        "utensor, ukernel, uloop or linear and interprets that",
    )
    add(
        "--fuse-reduce",
        choices=("none", "all", "auto"),
        help="which reductions run inside the kernels that read them (default as the pipeline has "
        "it: auto for uopc-cpu-native, else none)",
    )
    add(
        "--pass-pipeline",
        default="uopc-cpu-native",
        metavar="PASSES",
        help="the passes to run (default uopc-cpu-native, for cuda uopc-cuda; uopc-cpu makes plain "
        "loops)",
    )
    add(
        "--target-cpu",
        metavar="NAME",
        help="the CPU family that kernels are for: native (this machine), avx512bf16, "
        "avx512, avx2, sse2, neon or portable (default: UOPC_TARGET_CPU, else native)",
    )
    add(
        "--beam",
        type=int,
        metavar="N",
        help="search for fast schedules by measuring, with the N best varied in each round "
        "(default: UOPC_BEAM, else 0, no search)",
    )
    add("--opt-level", "-O", type=int, default=2, choices=range(4), help="the C compiler's -O")
    add(
        "--debug",
        type=int,
        choices=range(5),
        help="1 a line a run, 2 a line a kernel, 3 warm runs too, 4 the C too (standard error)",
    )
    add(
        "--show",
        default="none",
        choices=SHOWN,
        help="print the plan, the source, what kernels take of a GPU (resources), or all but that",
    )
    add("--check", action="store_true", help="compare with the reference semantics on numpy")
    add("--output", "-o", metavar="FILE", help="write the results to an .npz, or a .npy for one")
    add("--quiet", "-q", action="store_true", help="do not print the results")
    add("--timing", action="store_true", help="write where the time goes to standard error")
    add("--show-traceback", action="store_true", help="show where an error was raised")
    return parser  # fmt: skip


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0 on, got '{text}'")
    return int(text)


def run_file(options: argparse.Namespace) -> int:
    """Do what the options say; the exit status. Raises UopcError."""
    try:
        return _run_file(options)
    except UopcError as error:
        error.hint = _for_a_command_line(error.hint)
        raise


def _for_a_command_line(hint: str) -> str:
    """A hint that speaks of arguments of uopc.compile, with the options of this tool instead."""
    hint = hint.replace("function=…", "--function=…")
    hint = re.sub(r"\bpipeline=\"", '--pass-pipeline "', hint)
    return re.sub(r"\btarget='(\w+)'", r"--target \1", hint)


def _run_file(options: argparse.Namespace) -> int:
    from uopc.frontend.compile import CompileRequest, compile_request, read_program
    from uopc.frontend.stablehlo import read_stablehlo, speaks_stablehlo
    from uopc.passes.timing import Timing

    timing = Timing()
    loaded = _onnx(options) if options.file.endswith(".onnx") else None
    with timing.phase("read"):
        module = read_program(_program(options.file)) if loaded is None else loaded[0]
        if speaks_stablehlo(module):
            module, options.function = read_stablehlo(module, options.function)
    request = CompileRequest(
        target=options.target,
        function=options.function,
        pipeline=options.pass_pipeline,
        fuse_reduce=options.fuse_reduce,
        opt_level=options.opt_level,
        debug=options.debug,
        target_cpu=options.target_cpu,
        beam=options.beam,
    )
    executable = compile_request(module, request, [timing] if options.timing else ())
    plan: Plan = executable.plan
    if options.show in ("plan", "all"):
        from uopc.lowering.plan_text import plan_table

        print(plan_table(plan))
    if options.show in ("c", "cuda", "all") and executable.source:
        print(executable.source, end="")
    sizes = _sizes(plan, options.size) if loaded is None else {}
    if options.show == "resources":
        print(_resources(executable, sizes))
    inputs = _inputs(plan, sizes, options) if loaded is None else loaded[1]
    with timing.phase("first call"):
        results = _call(executable, inputs, sizes)
    if options.timing:
        timing.write_table(sys.stderr)
    for name, value in results.items():
        if not options.quiet:
            _print_result(name, value)
    status = 0
    if options.check:
        status = _check(module, request, inputs, sizes, results)
    if options.show == "all":
        print(f"time: {_best_time(executable, inputs, sizes) * 1e6:,.1f} us a call, warm")
    if options.output:
        _write(options.output, results)
    return status


def _resources(executable: Any, sizes: dict[str, int]) -> str:
    from uopc.runtime.cuda_executable import CudaExecutable
    from uopc.tools.resources import resources_table

    if not isinstance(executable, CudaExecutable):
        raise UopcError("bad-option", "--show resources is about a GPU's", hint="add --target cuda")
    architecture = executable.device.architecture
    return resources_table(executable.program, executable.plan, architecture, sizes)


def _program(file: str) -> Any:
    if file == "-":
        return sys.stdin.read()
    return Path(file)


def _onnx(options: argparse.Namespace) -> tuple[Any, Sequence[Array]]:
    """The module of an ONNX model, and its arguments: inputs from files or random, and weights."""
    from uopc.tools import onnx_model

    imported, arguments = onnx_model.load(
        options.file, options.size, lambda plan: _inputs(plan, {}, options), bool(options.input)
    )
    return imported.module, arguments


def _call(executable: Any, inputs: Sequence[Array], sizes: dict[str, int]) -> dict[str, Array]:
    free = _free_sizes(executable.plan, sizes)
    results = executable(*inputs, **free)
    outputs = executable.plan.outputs
    values = (results,) if len(outputs) == 1 else results
    return {b.ref: v for b, v in zip(outputs, values, strict=True)}


def _free_sizes(plan: Plan, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes that no input's shape tells."""
    told = {str(s) for b in plan.inputs for s in b.shape if not isinstance(s, int)}
    return {name: value for name, value in sizes.items() if name not in told}


def _sizes(plan: Plan, given: Sequence[str]) -> dict[str, int]:
    sizes = {s.name: min(s.upper, max(s.lower, 64)) for s in plan.symbols}
    for text in given:
        name, _, number = text.partition("=")
        if name not in sizes:
            raise UopcError(
                "unknown-size",
                f"the program has no size '{name}'",
                hint=f"it has: {', '.join(sizes) or 'none'}",
            )
        try:
            sizes[name] = int(number)
        except ValueError:
            raise UopcError("bad-option", f"--size {text}: expected NAME=NUMBER") from None
    return sizes


# Inputs.


def _inputs(plan: Plan, sizes: dict[str, int], options: argparse.Namespace) -> list[Array]:
    """The arrays of the program's inputs: from files, or random ones."""
    import numpy as np

    if not options.input:
        rng = np.random.default_rng(options.seed)
        return [_random(rng, b.dtype, _shape(b.shape, sizes, b.name)) for b in plan.inputs]
    arrays: dict[str, Array] = {}
    ordered: list[Array] = []
    for file in options.input:
        loaded = _read(file)
        if isinstance(loaded, np.ndarray):
            ordered.append(loaded)
        else:
            arrays.update(loaded)
    if arrays and ordered:
        raise UopcError("mixed-inputs", "give either one .npz or .npy files, not both")
    if ordered:
        return [_as_declared(plan, k, a) for k, a in enumerate(ordered)]
    names = [b.name for b in plan.inputs]
    numbered = [f"arr_{k}" for k in range(len(names))]
    chosen = numbered if set(numbered) == set(arrays) else names
    missing = [n for n in chosen if n not in arrays]
    unknown = [n for n in arrays if n not in chosen]
    if missing or unknown:
        raise UopcError(
            "wrong-input-names",
            f"the file has arrays {', '.join(sorted(arrays)) or 'none'}",
            hint=f"expected {', '.join(names) or 'none'}",
        )
    return [_as_declared(plan, k, arrays[n]) for k, n in enumerate(chosen)]


def _as_declared(plan: Plan, position: int, array: Array) -> Array:
    """bf16 has no dtype in numpy's files: two raw bytes or uint16 hold it."""
    import numpy as np

    if position < len(plan.inputs) and plan.inputs[position].dtype == "bf16":
        import ml_dtypes

        if array.dtype in (np.dtype(np.uint16), np.dtype("V2")):
            return array.view(ml_dtypes.bfloat16)
    return array


def _read(file: str) -> Array | dict[str, Array]:
    import numpy as np

    path = Path(file)
    if path.suffix not in (".npy", ".npz"):
        raise UopcError("bad-input-file", f"'{file}' is neither .npy nor .npz")
    try:
        loaded = np.load(path, allow_pickle=False)
        return loaded if path.suffix == ".npy" else {n: loaded[n] for n in loaded.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UopcError("bad-input-file", f"'{file}' cannot be read: {reason}") from error
    except Exception as error:  # zipfile's own errors have no common base
        raise UopcError("bad-input-file", f"'{file}' is damaged: {error}") from error


def _shape(shape: Sequence[Any], sizes: dict[str, int], name: str) -> tuple[int, ...]:
    found = tuple(s if isinstance(s, int) else s.evaluate_named(sizes) for s in shape)
    count = 1
    for s in found:
        count *= s
    if count > 1 << 32:
        raise UopcError("too-large", f"input '{name}' has {count:,} elements", hint="use --input")
    return found


def _random(rng: Any, dtype: str, shape: tuple[int, ...]) -> Array:
    import numpy as np

    from uopc.dialects.element_types import element_type_named

    row = element_type_named(dtype)
    if row.is_float:
        return rng.standard_normal(shape).astype(np.float32).astype(row.numpy)
    if row.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    low, high = row.limits
    return rng.integers(max(low, -100), min(high, 100), shape, endpoint=True).astype(row.numpy)


# Results.


def _print_result(name: str, value: Array) -> None:
    import numpy as np

    shape = "x".join(map(str, value.shape)) or "scalar"
    with np.printoptions(threshold=64, precision=6, suppress=False):
        print(f"{name}: {value.dtype} {shape}\n{value}")


def _write(file: str, results: dict[str, Array]) -> None:
    """Write results as a whole or not at all."""
    import numpy as np

    path = Path(file)
    if path.suffix not in (".npy", ".npz"):
        raise UopcError("bad-output-file", f"'{file}' is neither .npy nor .npz")
    if path.suffix == ".npy" and len(results) != 1:
        raise UopcError("bad-output-file", f"{len(results)} results do not fit one .npy: use .npz")
    plain = {n: v.view(np.uint16) if v.dtype.name == "bfloat16" else v for n, v in results.items()}
    part = path.with_name(path.name + f".part{path.suffix}")
    try:
        if path.suffix == ".npy":
            np.save(part, next(iter(plain.values())))
        else:
            np.savez(part, allow_pickle=False, **plain)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        reason = error.strerror or error
        raise UopcError("bad-output-file", f"'{file}' cannot be written: {reason}") from error


def _check(
    module: Any, request: Any, inputs: Sequence[Array], sizes: dict[str, int],
    results: dict[str, Array],
) -> int:  # fmt: skip
    """Compare with the reference, print how they differ; 1 if they do beyond rounding."""
    from dataclasses import replace

    import numpy as np

    from uopc.frontend.compile import compile_request

    reference = compile_request(module, replace(request, target="interpreter", debug=0))
    expected = _call(reference, inputs, sizes)
    status = 0
    for name, value in results.items():
        wide, truth = (np.asarray(a).astype(np.float64) for a in (value, expected[name]))
        bits = np.asarray(value).dtype
        step = _rounding_step(bits)
        tolerance = 0.0 if step == 0 else max(1e-5, 64 * step)
        scale = float(np.max(np.abs(truth), initial=0.0, where=np.isfinite(truth)))
        # Pairs of bf16 take denormals for zeros: docs/numerics.md.
        lost = wide.size * 2.0**-126 if bits.name == "bfloat16" else 0.0
        near = tolerance * scale + lost
        close = np.isclose(wide, truth, rtol=tolerance, atol=near, equal_nan=True)
        with np.errstate(invalid="ignore"):
            difference = np.abs(wide - truth)
        worst = float(np.nanmax(difference, initial=0.0)) if wide.size else 0.0
        if close.all():
            print(f"check: {name} agrees with numpy, largest difference {worst:.3g}")
        else:
            where = tuple(int(k) for k in np.argwhere(~close)[0])
            status = 1
            print(
                f"check: {name} differs from numpy at {list(where)}: "
                f"expected {expected[name][where]}, got {value[where]}"
            )
    return status


def _rounding_step(dtype: Any) -> float:
    import numpy as np

    if dtype.name == "bfloat16":
        return 2.0**-8
    return float(np.finfo(dtype).eps) if np.issubdtype(dtype, np.floating) else 0.0


def _best_time(executable: Any, inputs: Sequence[Array], sizes: dict[str, int]) -> float:
    """The shortest of the calls that fit in a fifth of a second."""
    free = _free_sizes(executable.plan, sizes)
    best = float("inf")
    until = time.perf_counter() + TIMED_SECONDS
    while True:
        start = time.perf_counter()
        executable(*inputs, **free)
        end = time.perf_counter()
        best = min(best, end - start)
        if end > until:
            return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Run uopc-run with the command line's words and return its exit status."""
    from uopc.tools.reporting import run_guarded, use_utf8

    use_utf8()
    words = sys.argv[1:] if arguments is None else arguments
    show_traceback = "--show-traceback" in words  # known before the words are understood
    was_on = gc.isenabled()
    gc.disable()  # a quarter of the start: what is imported and compiled lives to the end
    try:
        return run_guarded(lambda: run_file(build_parser().parse_args(words)), show_traceback)
    finally:
        if was_on:
            gc.enable()


if __name__ == "__main__":
    sys.exit(main())
