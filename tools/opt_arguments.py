"""The arguments of uopc-opt beside xdsl-opt's, and a parser that answers typing mistakes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from uopc.dialects.errors import UopcError
from uopc.passes.ir_printing import PrintRequest
from uopc.passes.pipelines import PIPELINES
from uopc.passes.resolve import did_you_mean, find_name

DESCRIPTION = """\
Reads MLIR text, runs passes over it and prints the result; all of xdsl-opt's options work.

  uopc-opt program.mlir -p uopc-cpu -t c -o program.c
  uopc-opt program.mlir --pass-pipeline "uopc-canonicalize,kernelize{fuse-reduce=all}"
  uopc-opt program.mlir -p uopc-cpu --print-ir-after-change --timing
"""

EPILOG = """\
Pass names and option names may be written with - or _. In MLIR's form
builtin.module(a,func.func(b)) the nested passes run on the whole module, in the order written.
Exit status: 0 good, 1 the input is at fault, 2 a bug in the compiler.
"""


def add_own_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what xdsl-opt does not have."""
    pipeline = parser.add_argument_group("pipelines")
    pipeline.add_argument(
        "--pass-pipeline",
        metavar="PIPELINE",
        help="as -p, e.g. 'a,b{x=1 y=true}', also in MLIR's form builtin.module(a,func.func(b)), "
        "where all passes run on the module. Named pipelines: " + ", ".join(PIPELINES),
    )
    pipeline.add_argument(
        "--target-cpu",
        metavar="NAME",
        help="the CPU family that the pass schedule shapes kernels for: native (default), "
        "avx512bf16, avx512, avx2, sse2, neon or portable",
    )
    pipeline.add_argument(
        "--beam",
        type=int,
        metavar="N",
        help="let the pass schedule search by measuring, with the N best varied in each round",
    )
    pipeline.add_argument(
        "--show-pipeline", metavar="NAME", help="print the passes of a named pipeline, and leave"
    )
    pipeline.add_argument(
        "--list-passes",
        action="store_true",
        help="print all passes with a summary and their options, and leave",
    )
    _add_printing_arguments(parser.add_argument_group("printing the IR, to standard error"))
    other = parser.add_argument_group("finding out")
    other.add_argument(
        "--check-values",
        nargs="?",
        const="0",
        metavar="SEED|FILE.npz",
        help="interpret the module before and after each pass and stop at the first that changes "
        "a value; on inputs made from a seed (default 0), or on the arrays of a file",
    )
    other.add_argument(
        "--reproducer",
        metavar="FILE",
        help="where --check-values writes the smallest program that it can reach (default "
        "NAME.reproducer.mlir next to the input)",
    )
    other.add_argument("--timing", action="store_true", help="print a table of where the time goes")
    other.add_argument(
        "--show-traceback", action="store_true", help="with an error, show Python's stack too"
    )


def _add_printing_arguments(group: Any) -> None:
    """The options --print-ir-..., each also under mlir-opt's name --mlir-print-ir-..."""
    switches = {
        "before-all": "print the module before each pass",
        "after-all": "print the module after each pass",
        "after-change": "print the module after each pass that changed it",
        "after-failure": "print the module that a failing pass leaves",
    }
    for name, help_text in switches.items():
        group.add_argument(
            f"--print-ir-{name}", f"--mlir-print-ir-{name}", action="store_true", help=help_text
        )
    for name in ("before", "after"):
        group.add_argument(
            f"--print-ir-{name}",
            f"--mlir-print-ir-{name}",
            metavar="P,Q",
            default="",
            help=f"print the module {name} these passes",
        )


def print_request(args: argparse.Namespace, known_passes: Sequence[str]) -> PrintRequest:
    """Which dumps the arguments ask for. Raises UopcError [unknown-pass] for a mistyped pass."""
    return PrintRequest(
        before_all=args.print_ir_before_all,
        after_all=args.print_ir_after_all,
        after_change=args.print_ir_after_change,
        after_failure=args.print_ir_after_failure,
        before=_pass_names(args.print_ir_before, "--print-ir-before", known_passes),
        after=_pass_names(args.print_ir_after, "--print-ir-after", known_passes),
        generic=args.print_op_generic,
        locations=args.print_debuginfo,
    )


def _pass_names(text: str, flag: str, known: Sequence[str]) -> frozenset[str]:
    names: set[str] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        name = find_name(part, known)
        if name is None:
            raise UopcError(
                "unknown-pass",
                f"{flag}: there is no pass named '{part}'",
                hint=f"{did_you_mean(part, known)} --list-passes lists all".strip(),
            )
        names.add(name)
    return frozenset(names)


def note_absent_passes(request: PrintRequest, pipeline: Sequence[str]) -> None:
    """Say so if a dump is asked for a pass that does not run: silence would look like a bug."""
    for name in sorted((request.before | request.after) - set(pipeline)):
        print(f"note: pass '{name}' does not run here, so nothing is printed", file=sys.stderr)
