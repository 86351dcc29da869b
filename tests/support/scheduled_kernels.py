"""A kernel over ranges with a schedule of a test's own, run as C and by the interpreter.

    result = run_scheduled(KERNEL, "split k = k0 k1:4", x)

The kernel is text, `ukernel.kernel @k ins(…) outs(%o : …) {…}`; a plan around it is made here. The
C has to have the bits of the interpreter of the same linear IR.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from compiled_programs import bits, compiler
from hypothesis import settings
from sanitized import Call, run_sanitized

from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.interpreters.programs import programs
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import Executable, load_program

Array = np.ndarray[Any, np.dtype[Any]]

PIPELINE = "apply-schedule,linearize,lower-plan,expand-math"
_HEAD = re.compile(r"@(\w+) (sizes\(.*?\) )?ins\((.*?)\) outs\((.*?)\) \{", re.DOTALL)


def with_plan(kernel: str, schedule: str) -> str:
    """A kernel with a schedule, and a plan @run that launches it once."""
    head = _HEAD.search(kernel)
    assert head is not None, kernel
    name, sizes, inputs, output = head[1], head[2] or "", head[3], head[4]
    scheduled = kernel.replace(
        head[0], head[0][:-1] + f'attributes {{schedule = "{schedule}"}} {{', 1
    )
    operands = ", ".join(part.split(":")[0].strip() for part in re.split(r",\s*(?=%)", inputs))
    plain = [re.sub(r" of \[.*?\]$", "", t.split(":", 1)[1].strip())
             for t in re.split(r",\s*(?=%)", inputs)]  # fmt: skip
    out, out_type = (part.strip() for part in output.split(":", 1))
    size_names = re.findall(r"%(\w+) =", sizes)
    launch_sizes = f"sizes({', '.join('%' + n for n in size_names)}) " if sizes else ""
    out_plain = re.sub(r" of \[.*?\]$", "", out_type)
    result = f"{out} : {out_plain}"
    return f"""
    {scheduled}
    ukernel.plan @run {sizes}ins({inputs}) {{
      {out} = ukernel.output : {out_type}
      ukernel.launch @{name} {launch_sizes}ins({operands} : {", ".join(plain)}) outs({result})
      ukernel.return {result}
    }}"""


OTHER_WAYS = (("gcc", 0), ("gcc", 3), ("clang", 2))
"""Beside gcc -O2: one of them in turn, all with `--hypothesis-profile=long`, and the sanitizers."""
LONG = settings.get_current_profile_name() == "long"


class Scheduled:
    """A scheduled kernel, compiled once for any number of calls."""

    def __init__(self, kernel: str, schedule: str, opt_level: int = 2) -> None:
        request = CompileRequest(pipeline=PIPELINE)
        lowered = lower(read_program(with_plan(kernel, schedule)), request)
        self.program, self.name = lowered.program(), lowered.chosen(None)
        options = CompileOptions(opt_level=opt_level)
        self.compiled = load_program(self.program, self.name, options=options)
        turn = zlib.crc32(f"{kernel}{schedule}".encode()) % len(OTHER_WAYS)
        self.others: dict[str, Executable] = {}
        for name, level in OTHER_WAYS if LONG else OTHER_WAYS[turn : turn + 1]:
            if shutil.which(name) is not None:  # CI has both
                with compiler(name):
                    options = CompileOptions(opt_level=level)
                    other = load_program(self.program, self.name, options=options)
                self.others[f"{name} -O{level}"] = other
        (self.linear,) = programs(lowered.module)

    def __call__(self, *arrays: Array, **sizes: int) -> Array:
        """The C's result, after all of it was found equal to the interpreter's."""
        result = self.compiled(*arrays, **sizes)
        outcome = self.linear.run(arrays, sizes, {0: result.shape})
        np.testing.assert_array_equal(bits(outcome.results[0]), bits(result))
        for way, other in self.others.items():
            np.testing.assert_array_equal(bits(other(*arrays, **sizes)), bits(result), way)
        if LONG:
            with tempfile.TemporaryDirectory() as folder:
                call = Call(self.name, [np.asarray(a) for a in arrays], sizes)
                ((checked,),) = run_sanitized(self.program, [call], Path(folder))
            assert checked is not None
            np.testing.assert_array_equal(bits(checked.reshape(result.shape)), bits(result))
        return result


def run_scheduled(kernel: str, schedule: str, *arrays: Array) -> Array:
    """Apply a schedule to a kernel, and run it on both paths."""
    return Scheduled(kernel, schedule)(*arrays)
