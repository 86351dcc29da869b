"""Find a C compiler, choose its flags, and compile a program's C into a shared object.

No shell is involved and no text of a user's program reaches a command line: the compiler runs in a
folder of its own on fixed names: `plan.c`, or `plan_0.c` and so on, and `plan.so`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.cache import FORMAT_VERSION, Cache

COMPILER_NAMES = ("cc", "gcc", "clang")
COMPILE_SECONDS = 900
"""After this long a compilation counts as hung."""
STDERR_LINES = 12
SANITIZERS = ("address", "undefined")

BASE_FLAGS = ("-std=c11", "-fPIC", "-shared")
# Each is asked for where the compiler takes it without a warning. fp-contract: fused multiply-add
# is an explicit op of the IR. Traps are not kept: with them gcc makes branches of selects, which do
# not vectorize. The last two: gcc -O2 leaves loops with calls scalar.
WANTED_FLAGS = (
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
)
# Tried in order; the first one accepted is used.
NATIVE_FLAGS = ("-march=native", "-mcpu=native")

# A compiler that ignores vector types (tcc) would compile wrong code without a word.
PROBE_SOURCE = """\
typedef float probe_vector __attribute__((vector_size(16), aligned(4), may_alias));
_Static_assert(sizeof(probe_vector) == 16, "vector types");
_Static_assert(sizeof(void *) == 8, "64-bit pointers");
int probe(const float *values, int count);
int probe(const float *values, int count) {
  int positive = 0;
  for (int i = 0; i < count; i++) positive += values[i] > 0.0f;
  return positive;
}
"""


@dataclass(frozen=True)
class CompileOptions:
    """How C becomes machine code; the result's bits do not depend on it."""

    opt_level: int = 2
    """0 to 3."""
    native: bool = True
    """Use all of this machine's instructions; False gives code for any machine of its kind."""
    target_flags: tuple[str, ...] | None = None
    """What says in place of `native` which machines the code is for."""
    sanitize: tuple[str, ...] = ()
    """Of `address` and `undefined`, for tests; `address` needs the process to preload libasan."""

    def __post_init__(self) -> None:
        if self.opt_level not in range(4):
            raise UopcError("bad-option", f"opt_level is {self.opt_level!r}; expected 0, 1, 2 or 3")
        for name in self.sanitize:
            if name not in SANITIZERS:
                raise UopcError(
                    "bad-option",
                    f"sanitize holds {name!r}; expected {' or '.join(SANITIZERS)}",
                )


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found to work, and which of the wanted flags it takes."""

    command: tuple[str, ...]
    """The program's full path, and leading arguments if UOPC_CC holds any."""
    version: str
    flags: tuple[str, ...]
    native_flag: str
    """How this compiler spells "for this very machine", or empty."""

    def arguments(self, options: CompileOptions) -> tuple[str, ...]:
        """Every flag of one compilation, but for the file names."""
        if options.target_flags is not None:
            native = options.target_flags
        else:
            native = (self.native_flag,) if options.native and self.native_flag else ()
        sanitize = ()
        if options.sanitize:
            names = ",".join(sorted(options.sanitize))
            sanitize = (f"-fsanitize={names}", f"-fno-sanitize-recover={names}", "-g")
        return (f"-O{options.opt_level}", *self.flags, *native, *sanitize)

    def key(self, source: str, options: CompileOptions) -> str:
        """The name under which the cache keeps what `source` compiles to: 64 hex digits."""
        arguments = self.arguments(options)
        parts = [source, *arguments, "", *self.command, self.version, machine()]
        if self.native_flag in arguments:
            parts.append(processor())
        return digest("shared object", str(FORMAT_VERSION), *parts)


def digest(*parts: str) -> str:
    """SHA-256 over the parts, each with its length, so that no two lists run together."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(b"%d:" % len(data))
        state.update(data)
    return state.hexdigest()


def machine() -> str:
    """The kind of machine and system."""
    return f"{sys.platform} {os.uname().machine}"


@cache
def processor() -> str:
    """What `-march=native` depends on: the processor's model and its instruction sets."""
    named = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part")
    facts: list[str] = []
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return " ".join(os.uname())
    for line in text.split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        if name.strip() in named:
            facts.append(f"{name.strip()}={' '.join(sorted(value.split()))}")
    return "\n".join(facts)


# -- finding ---------------------------------------------------------------------------------------


def find_compiler(store: Cache) -> Compiler:
    """The compiler of UOPC_CC, else the first of cc, gcc and clang on PATH that works.

    What probing it found out is kept in `store`, by the program's path, size and time of change.
    Raises `no-compiler`.
    """
    chosen = environment.compiler_command()
    if chosen:
        command = _command(chosen)
        if command is None:
            raise _no_compiler(f"{environment.CC.name} is {chosen!r}, which names no program")
        found = _probed(command, store)
        if isinstance(found, Compiler):
            return found
        raise _no_compiler(f"{environment.CC.name} is {chosen!r}, which does not work: {found}")
    broken: list[str] = []
    for name in COMPILER_NAMES:
        if (path := shutil.which(name)) is not None:
            found = _probed((path,), store)
            if isinstance(found, Compiler):
                return found
            broken.append(f"{path} does not work: {found}")
    path = os.environ.get("PATH", os.defpath)
    tried = f"tried {', '.join(COMPILER_NAMES)} on PATH ({path[:200] or 'which is empty'})"
    raise _no_compiler("; ".join([tried, *broken]))


def _no_compiler(tried: str) -> UopcError:
    return UopcError(
        "no-compiler",
        f"no C compiler: {tried}; set {environment.CC.name} to one, or go on without by "
        "--target interpreter",
    )


def _command(text: str) -> tuple[str, ...] | None:
    # First as it stands, since a path may hold spaces; then as words (`ccache gcc`).
    if (path := shutil.which(text)) is not None:
        return (str(Path(path).absolute()),)
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    if words and (path := shutil.which(words[0])) is not None:
        return (str(Path(path).absolute()), *words[1:])
    return None


_probes: dict[str, Compiler] = {}
_probing = threading.Lock()


def _probed(command: tuple[str, ...], store: Cache) -> Compiler | str:
    """The compiler with its flags, or why it is of no use."""
    try:
        real = Path(command[0]).resolve()
        status = real.stat()
    except OSError as error:
        return str(error.strerror)
    stamp = [str(real), str(status.st_mtime_ns), str(status.st_size), str(status.st_ino)]
    key = digest("probe", machine(), *BASE_FLAGS, *WANTED_FLAGS, *NATIVE_FLAGS, *command, *stamp)
    with _probing:
        return _probes.get(key) or _probed_once(command, store, key)


def _probed_once(command: tuple[str, ...], store: Cache, key: str) -> Compiler | str:
    # With leading arguments the program is a wrapper, and its own date says nothing.
    keep = len(command) == 1
    found = _from_note(command, store.read(key, ".json")) if keep else None
    if found is None:
        with store.building(key) as folder:
            found = _from_note(command, store.read(key, ".json")) if keep else None
            if found is None:
                found = _probe(command, folder)
                if keep and isinstance(found, Compiler):
                    note = [found.version, list(found.flags), found.native_flag]
                    store.write(key, ".json", json.dumps(note).encode())
    if isinstance(found, Compiler):
        _probes[key] = found
    return found


def _from_note(command: tuple[str, ...], note: bytes | None) -> Compiler | None:
    if note is None:
        return None
    version, flags, native = cast(tuple[str, list[str], str], json.loads(note))
    return Compiler(command, version, tuple(flags), native)


def _probe(command: tuple[str, ...], folder: Path) -> Compiler | str:
    (folder / "plan.c").write_text(PROBE_SOURCE, encoding="ascii")

    def accepts(*flags: str) -> str:
        """Empty, or the first line of what the compiler objects to."""
        status, output = _run((*command, "-Werror", *flags, *BASE_FLAGS), folder)
        if status == 0:
            return ""
        return next(iter(output.splitlines()), f"exit status {status}")

    if objection := accepts():
        return objection
    flags, native = _accepted_flags(accepts)
    status, version = _run((*command, "--version"), folder, files=())
    if status != 0 or not version:
        return f"--version gives exit status {status}"
    return Compiler(command, version, (*BASE_FLAGS, *flags), native)


def _accepted_flags(accepts: Callable[..., str]) -> tuple[tuple[str, ...], str]:
    # Most compilers take all, so that is one process; only others are asked flag by flag.
    if not accepts(*WANTED_FLAGS, NATIVE_FLAGS[0]):
        return WANTED_FLAGS, NATIVE_FLAGS[0]
    flags = tuple(flag for flag in WANTED_FLAGS if not accepts(flag))
    return flags, next((flag for flag in NATIVE_FLAGS if not accepts(flag)), "")


# -- compiling -------------------------------------------------------------------------------------


class CompilerFailed(Exception):
    """The compiler refused a source: which, its exit status and what it wrote."""

    def __init__(self, source: str, status: int, output: str) -> None:
        super().__init__(output)
        self.source = source
        self.status = status
        self.output = output


def compile_shared(
    compiler: Compiler, units: Sequence[str], options: CompileOptions, folder: Path
) -> bytes:
    """Compile C files in the empty `folder`, several at a time, and return the shared object.

    Raises CompilerFailed, with what the compiler wrote.
    """
    command = (*compiler.command, *compiler.arguments(options))
    if len(units) == 1:
        _write(folder / "plan.c", units[0])
        status, output = _run(command, folder)
    else:
        objects = _compile_units(command, units, folder)
        status, output = run_compiler((*command, *objects, "-o", "plan.so", "-lm"), folder)
    product = folder / "plan.so"
    if status != 0 or not product.exists():
        raise CompilerFailed(units[0], status, output)
    return product.read_bytes()


def _compile_units(command: tuple[str, ...], units: Sequence[str], folder: Path) -> list[str]:
    """Compile each unit to an object file, as many at once as there are processors."""
    from concurrent.futures import ThreadPoolExecutor  # loads slowly, and most plans are short

    alone = tuple(word for word in command if word != "-shared")

    def compile_unit(index: int) -> tuple[int, str]:
        _write(folder / f"plan_{index}.c", units[index])
        return run_compiler((*alone, "-c", f"plan_{index}.c", "-o", f"plan_{index}.o"), folder)

    with ThreadPoolExecutor(environment.available_processors()) as pool:
        done = list(pool.map(compile_unit, range(len(units))))
    for unit, (status, output) in zip(units, done, strict=True):
        if status != 0:
            raise CompilerFailed(unit, status, output)
    return [f"plan_{index}.o" for index in range(len(units))]


def _write(path: Path, source: str) -> None:
    path.write_text(source, "utf-8", "backslashreplace")


def compile_error(compiler: Compiler, failure: CompilerFailed, kept: Path) -> UopcError:
    """What to tell the user: the first lines of the compiler's output, and where the source is."""
    how = f"exit status {failure.status}"
    if failure.status < 0:
        how = f"killed by signal {-failure.status}"
    lines = failure.output.splitlines()
    shown = [
        "".join(c if c.isprintable() else " " for c in line)[:200] for line in lines[:STDERR_LINES]
    ]
    if len(lines) > STDERR_LINES:
        shown.append(f"... {len(lines) - STDERR_LINES} more lines")
    return UopcError(
        "compile-failed",
        f"{compiler.command[0]} did not compile the C source ({how}); the source is kept in {kept}",
        hint="\n    ".join(["the compiler said:", *shown]),
    )


def _run(
    command: tuple[str, ...],
    folder: Path,
    files: tuple[str, ...] = ("plan.c", "-o", "plan.so", "-lm"),
) -> tuple[int, str]:
    return run_compiler((*command, *files), folder)


def run_compiler(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a compiler in a folder: its exit status and what it said.

    The status is 127 for one that cannot be started, and 124 for one that does not end.
    """
    # TMPDIR: a compiler that is killed leaves its temporary files where they get cleared away.
    setting = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=setting,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except OSError as error:
        return 127, str(error.strerror)
    except subprocess.TimeoutExpired:
        return 124, f"no end after {COMPILE_SECONDS} seconds"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def _after_fork() -> None:
    # The thread that held the lock does not exist in the child.
    global _probing
    _probing = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
