"""uopc-opt: reads MLIR text, runs passes, prints MLIR or what a target makes of it.

A superset of xdsl-opt (all of its options work) that verifies more, tells where an error is, and
ends with a message instead of a traceback. What is added: tools/opt_arguments.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import PurePath
from typing import IO, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import DiagnosticException, ShrinkException
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_extensions import install as extend_gpu
from uopc.dialects.locations import clip_message, parse_text
from uopc.dialects.memref_extensions import install as extend_memref
from uopc.dialects.registry import dialect_factories, extended_linalg, foreign_factories
from uopc.dialects.source_text import decode_source, read_source
from uopc.dialects.upstream_fixes import install
from uopc.dialects.verification import verify_module
from uopc.lowering.registry import target_factories
from uopc.passes.ir_printing import IRPrinting, PrintBetweenPasses
from uopc.passes.listing import list_passes, show_pipeline
from uopc.passes.manager import Instrument, InternalError, garbage_collector_off, run_passes
from uopc.passes.options import instantiate
from uopc.passes.pipeline_text import parse_single
from uopc.passes.pipelines import pipeline_factories
from uopc.passes.registry import pass_factories
from uopc.passes.resolve import did_you_mean, find_name, resolve_pipeline, with_defaults
from uopc.passes.timing import TimePasses, Timing, count_ops
from uopc.tools.argument_parser import ToolArgumentParser
from uopc.tools.expected_diagnostics import check_expectations, find_expectations
from uopc.tools.opt_arguments import (
    DESCRIPTION,
    EPILOG,
    add_own_arguments,
    note_absent_passes,
    print_request,
)
from uopc.tools.output_file import write_output
from uopc.tools.reporting import report, run_guarded, use_utf8

SPLIT_MARK = "// -----"
_SPLIT_LINE = re.compile(rb"^[ \t]*// -----[ \t]*\r?$\n?", re.MULTILINE)


class UopcOptMain(xDSLOptMain):
    """The tool as an object, for tests and for downstream tools that add passes or dialects.

    `args` are the command line's words without the program's name; None takes sys.argv.
    Raises UopcError for wrong arguments.
    """

    version_format = "uopc-opt built from xdsl version {xdsl_version}"

    def __init__(
        self,
        description: str = DESCRIPTION,
        args: Sequence[str] | None = None,
        *,
        extra_passes: Iterable[type[ModulePass]] = (),
    ) -> None:
        self.available_frontends = {}
        self.available_passes = {}
        self.available_targets = {}
        self.ctx = Context()
        self.register_all_dialects()
        self.register_all_frontends()
        self.register_all_passes()
        self.register_all_targets()
        for pass_class in extra_passes:
            self.register_pass(pass_class.name, _constant(pass_class))
        parser = ToolArgumentParser(
            "uopc-opt",
            description=description,
            epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.register_all_arguments(parser)
        self.args = parser.parse_args(args)
        self.ctx.allow_unregistered = self.args.allow_unregistered_dialect
        self.timing = Timing()
        self.instruments: list[Instrument] = []
        self.status = 0
        self.setup_pipeline()

    # Registration: xDSL's multiverse has uopc's own things only where uopc is installed.

    def register_all_dialects(self) -> None:
        """Register the environment's dialects and uopc's; arith takes vectors, gpu
        shuffles, memref prefetches."""
        install()
        extend_gpu()
        extend_memref()
        super().register_all_dialects()
        for name, factory in {**foreign_factories(), **dialect_factories()}.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)
        # xDSL has no way to take a dialect's place; here it is the one with more ops.
        cast(Any, self.ctx)._registered_dialects["linalg"] = extended_linalg

    def register_all_passes(self) -> None:
        """Register the passes of the environment, and uopc's."""
        super().register_all_passes()
        for name, factory in {**pipeline_factories(), **pass_factories()}.items():
            self.register_pass(name, factory)

    def register_all_frontends(self) -> None:
        """Register the frontends of the environment, and ONNX."""
        super().register_all_frontends()
        self.available_frontends["onnx"] = _onnx_frontend

    def register_all_targets(self) -> None:
        """Register the targets of the environment, and uopc's."""
        super().register_all_targets()
        self.available_targets.update(target_factories())

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Register xdsl-opt's arguments and uopc-opt's."""
        super().register_all_arguments(arg_parser)
        add_own_arguments(arg_parser)

    def setup_pipeline(self) -> None:
        """Find the passes and prepare what watches them. Raises UopcError for wrong names."""
        args = self.args
        target = parse_single(args.target).name
        _find("target", target, self.available_targets)
        if args.pass_pipeline is not None and args.passes:
            raise UopcError(
                "bad-argument",
                "-p and --pass-pipeline are both given",
                hint="put all passes into one of them, separated by commas",
            )
        text = args.passes if args.pass_pipeline is None else args.pass_pipeline
        if not text and _is_model(args):
            text = _MODEL_PIPELINES.get(target.replace("_", "-"), "")
        passes = resolve_pipeline(text, self.available_passes)
        from uopc.frontend.compile import check_choices

        check_choices(args.target_cpu, args.beam)
        if args.target_cpu is not None:
            passes = with_defaults(passes, "schedule", target=args.target_cpu)
        if args.beam is not None:
            passes = with_defaults(passes, "schedule", beam=args.beam)
        if any(getattr(each, "beam", 0) for each in passes):
            from uopc.frontend import measuring

            measuring.install()
        self.pipeline = PassPipeline(tuple(passes))
        request = print_request(args, list(self.available_passes))
        if args.print_between_passes:
            self.instruments.append(PrintBetweenPasses(sys.stdout))
        if request:
            note_absent_passes(request, [each.name for each in self.pipeline.passes])
            self.instruments.append(IRPrinting(request, sys.stderr))
        if args.time_passes:
            self.instruments.append(TimePasses(sys.stdout))
        if args.check_values is not None:
            # Late: its interpreters cost what no other run needs.
            from uopc.tools.check_values import CheckValues, default_reproducer
            from uopc.tools.value_cases import parse_source

            source = parse_source(args.check_values)
            reproducer = args.reproducer or default_reproducer(args.input_file)
            self.instruments.append(CheckValues(self.ctx, source, reproducer))
        if args.timing:
            self.instruments.append(self.timing)

    # Running

    def run_to_status(self) -> int:
        """Do what the arguments say and return the exit status.

        Errors in the input are written to standard error. Raises UopcError for what stops the
        whole run (a file that cannot be read or written), and InternalError for a bug.
        """
        if self.args.show_pipeline is not None:
            print(show_pipeline(self.args.show_pipeline))
            return 0
        if self.args.list_passes:
            print(list_passes(self.available_passes, pass_factories()), end="")
            return 0
        with garbage_collector_off(), _attribute_checks(not self.args.disable_verify):
            try:
                self._run_chunks()
            except ShrinkException:
                if not self.args.shrink:
                    raise
                print("Success, can shrink")
                return 0
            finally:
                if self.args.timing:
                    self.timing.write_table(sys.stderr)
        if self.args.shrink:
            print("Failure, can't shrink")
            return 1
        return self.status

    def run(self) -> None:
        """As `run_to_status`, for callers of xDSLOptMain: leaves with SystemExit if it failed."""
        if status := self.run_to_status():
            sys.exit(status)

    def _run_chunks(self) -> None:
        """Run every chunk, and write the output unless one of them failed.

        To standard output the good chunks are written even if others failed, as they come.
        """
        data, frontend = self._read_input()
        outputs: list[str] = []
        to_file = self.args.output_file not in (None, "-")
        for index, (chunk, first_line) in enumerate(self._split(data)):
            output = self._run_chunk(chunk, first_line, frontend)
            if output is None:
                continue
            output = f"{SPLIT_MARK}\n{output}" if index else output
            if to_file:
                outputs.append(output)
            else:
                write_output(None, output)
        if to_file and not self.status:
            write_output(self.args.output_file, "".join(outputs))

    def _run_chunk(self, chunk: bytes, first_line: int, frontend: str) -> str | None:
        """The output for one chunk; None, and `self.status` set, if it failed."""
        errors: list[UopcError] = []
        output: str | None = None
        try:
            output = self.process(chunk, first_line, frontend)
        except UopcError as error:
            errors.append(error)
        except InternalError as error:
            self.status = max(self.status, report(error, self.args.show_traceback))
            return None
        if self.args.verify_diagnostics:
            text = chunk.decode("utf-8", "replace")
            name = self.get_input_name()
            expectations = find_expectations(text, name, first_line)
            wrong = list(check_expectations(expectations, errors, name))
        elif self.args.parsing_diagnostics and errors and errors[0].kind == "parse-error":
            print(errors[0])
            wrong = []
        else:
            wrong = errors
        for error in wrong:
            self.status = max(self.status, report(error, self.args.show_traceback))
        return output

    def process(self, chunk: bytes, first_line: int = 1, frontend: str = "mlir") -> str:
        """Parse, verify, transform and print one module given as source text.

        Raises UopcError for what is wrong with it, InternalError for a bug.
        """
        timing, verify = self.timing, not self.args.disable_verify
        timing.start_module()
        with timing.phase("parse") as row:
            module = self._parse(chunk, first_line, frontend)
        if self.args.timing:
            row.ops = (row.ops or 0) + count_ops(module)
        if verify:
            with timing.phase("  verify"):
                verify_module(module)
        self.apply_passes(module)
        with timing.phase("print"):
            return self.output_resulting_program(module)

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the pipeline, verifying after each pass unless --disable-verify."""
        run_passes(
            self.ctx,
            prog,
            self.pipeline.passes,
            verify=not self.args.disable_verify,
            instruments=self.instruments,
        )

    # Reading

    def get_input_name(self) -> str:
        """The name of the input in messages."""
        return "<stdin>" if self.args.input_file in (None, "-") else self.args.input_file

    def _read_input(self) -> tuple[bytes, str]:
        """The input's bytes and the name of the frontend for it."""
        path = self.args.input_file
        if path in (None, "-"):
            return sys.stdin.buffer.read(), self.args.frontend or "mlir"
        extension = PurePath(path).suffix.removeprefix(".")
        by_extension = extension if extension in self.available_frontends else "mlir"
        return read_source(path), self.args.frontend or by_extension

    def _split(self, data: bytes) -> list[tuple[bytes, int]]:
        """The chunks of the input, each with the number of its first line."""
        if not self.args.split_input_file:
            return [(data, 1)]
        chunks: list[tuple[bytes, int]] = []
        start, line = 0, 1
        for match in [*_SPLIT_LINE.finditer(data), None]:
            end = match.start() if match else len(data)
            chunks.append((data[start:end], line))
            if match:
                line += data.count(b"\n", start, match.end())
                start = match.end()
        return chunks

    def _parse(self, chunk: bytes, first_line: int, frontend_text: str) -> ModuleOp:
        request = parse_single(frontend_text)
        name = _find("frontend", request.name, self.available_frontends)
        entry = self.available_frontends[name]
        if name == "mlir":
            implicit_module = not self.args.no_implicit_module
            if request.options:
                frontend = instantiate(cast("Any", entry)(), request, "frontend")
                implicit_module = implicit_module and not frontend.no_implicit_module
            return parse_text(
                decode_source(chunk, self.get_input_name(), first_line),
                self.get_input_name(),
                context=self.ctx,
                first_line=first_line,
                allow_implicit_module=implicit_module,
            )
        with _stage(f"frontend {name}"):
            stream = BytesIO(chunk)
            if inspect.signature(entry).parameters:
                return cast("Callable[[IO[bytes]], ModuleOp]", entry)(stream)
            frontend = instantiate(cast("Any", entry)(), request, "frontend")
            return frontend.parse(self.ctx, stream, self.get_input_name())

    # Writing

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The program in the form of the target that -t names."""
        request = parse_single(self.args.target)
        name = _find("target", request.name, self.available_targets)
        entry = self.available_targets[name]
        output = StringIO()
        with _stage(f"target {name}", foreign=name not in target_factories()):
            if inspect.signature(entry).parameters:
                cast("Callable[[ModuleOp, IO[str]], None]", entry)(prog, output)
            else:
                target = instantiate(cast("Callable[[], type[Target]]", entry)(), request, "target")
                self._with_print_options(target).emit(self.ctx, prog, output)
        return output.getvalue()

    def _with_print_options(self, target: Target) -> Target:
        if target.name != "mlir":
            return target
        changes: dict[str, Any] = {
            "print_generic_format": self.args.print_op_generic,
            "print_properties_as_attributes": self.args.print_no_properties,
            "print_debuginfo": self.args.print_debuginfo,
            "syntax_highlight": self.args.syntax_highlight,
        }
        return dataclasses.replace(target, **{key: True for key, on in changes.items() if on})


def _find(what: str, name: str, table: Iterable[str]) -> str:
    found = find_name(name, table)
    if found is None:
        raise UopcError(
            f"unknown-{what}",
            f"there is no {what} named '{name}'",
            hint=f"{did_you_mean(name, table)} There are: {', '.join(table)}".strip(),
        )
    return found


_MODEL_PIPELINES = {"c": "uopc-cpu", "cuda": "uopc-cuda"}
"""What `uopc-opt model.onnx -t TARGET` runs: a model is tensors, and has no other way to C."""


def _is_model(args: Any) -> bool:
    """Whether the input is a model's file, not IR."""
    if args.frontend is not None:
        return parse_single(args.frontend).name == "onnx"
    return str(args.input_file or "").endswith(".onnx")


def _onnx_frontend() -> Any:
    from uopc.frontend.onnx_frontend import OnnxFrontend

    return OnnxFrontend


def _constant(pass_class: type[ModulePass]) -> Callable[[], type[ModulePass]]:
    return lambda: pass_class


@contextmanager
def _stage(name: str, *, foreign: bool = False) -> Generator[None]:
    """Turn exceptions of a frontend or target into UopcError or InternalError.

    A target that is `foreign` (xDSL's) asserts that it got what it can print.
    """
    try:
        yield
    except (UopcError, ShrinkException):
        raise
    except RecursionError as error:
        raise UopcError(
            "nesting-too-deep",
            f"an attribute or a region nests too deep for {name}",
            hint="split the program into functions, or the attribute into several",
        ) from error
    except MemoryError as error:
        raise UopcError("out-of-memory", f"memory ran out in {name}") from error
    except ModuleNotFoundError as error:
        raise UopcError(
            "missing-dependency",
            f"{name} needs the Python package '{error.name}'",
            hint=f"pip install {error.name}",
        ) from error
    except (DiagnosticException, ImportError, OSError, ValueError, NotImplementedError) as error:
        words = clip_message(str(error)) or type(error).__name__
        raise UopcError("cannot-translate", f"{name}: {words}") from error
    except Exception as error:
        if foreign and isinstance(error, AssertionError):
            raise UopcError(
                "cannot-translate",
                f"{name} does not take this program",
                hint="run passes that lower it to the ops which the target prints",
            ) from error
        raise InternalError(name, error) from error


@contextmanager
def _attribute_checks(enabled: bool) -> Generator[None]:
    """Within the block, attributes check themselves when made, or (--disable-verify) do not."""
    if enabled:
        yield
        return
    original = Attribute.__post_init__
    Attribute.__post_init__ = _no_check
    try:
        yield
    finally:
        Attribute.__post_init__ = original


def _no_check(self: Attribute) -> None:
    """Stands in for Attribute.__post_init__."""


def main(
    args: Sequence[str] | None = None, *, extra_passes: Iterable[type[ModulePass]] = ()
) -> int:
    """Run uopc-opt with the command line's words and return its exit status.

    A downstream tool gives its own passes as `extra_passes`.
    """
    use_utf8()
    words = sys.argv[1:] if args is None else list(args)

    def run() -> int:
        return UopcOptMain(args=words, extra_passes=extra_passes).run_to_status()

    return run_guarded(run, "--show-traceback" in words)


if __name__ == "__main__":
    sys.exit(main())
