"""Programs that tensor graphs became, kept between processes beside their machine code.

Making C of a graph takes seconds where it is large; finding it takes milliseconds. A program is
found by the structure of its graph (plan_cache.py), and by everything else that decides what it
becomes: the sources of the compiler itself, so that a change to a pass takes effect at once, and
the processor. It lies in the cache's folder as KEY.program, JSON under a checksum.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from uopc.frontend.node_types import NodeKind
from uopc.frontend.plan_cache import Key
from uopc.lowering.plan import Buffer, KernelCall, Plan, Program
from uopc.runtime.cache import open_cache
from uopc.runtime.compiler import digest, processor
from uopc.runtime.environment import beam, target_cpu

SUFFIX = ".program"
_FOLDERS = ("dialects", "passes", "lowering", "frontend")
"""What decides which C a graph becomes. The runtime's own key covers the rest."""


def program_key(key: Key, name: str) -> str:
    """The name under which the program of a structure is kept: 64 hex digits."""
    cpu = f"{target_cpu()} {beam()}"
    return digest("program", name, _compiler(), processor(), cpu, "".join(_texts(key)))


def _texts(key: Key) -> Iterator[str]:
    for item in key:
        if isinstance(item, NodeKind):
            yield f"{item.op}{item.attributes}{item.value.shape}{item.value.type};"
        else:
            yield f"{item},"


@cache
def _compiler() -> str:
    """What the compiler is made of: its files with their sizes and times, and xDSL's version."""
    root = Path(__file__).parents[1]
    facts = [version("xdsl")]
    for folder in _FOLDERS:
        files = (root / folder).resolve()
        for path in (*files.rglob("*.py"), *files.rglob("*.toml")):
            status = path.stat()
            facts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(facts))


def find_program(key: str) -> Program | None:
    """The program kept under a key, or None."""
    data = open_cache().read(key, SUFFIX)
    return None if data is None else _program(json.loads(data))


def keep_program(key: str, program: Program) -> None:
    """Keep a program without symbolic sizes. Raises UopcError [no-cache-folder]."""
    # Without its units: what they compile to is kept as well.
    kept = dataclasses.replace(program, units=())
    data = json.dumps(dataclasses.asdict(kept), separators=(",", ":"))
    open_cache().write(key, SUFFIX, data.encode("utf-8", "surrogatepass"))


def _program(data: dict[str, Any]) -> Program:
    plans = tuple(_plan(plan) for plan in data["plans"])
    return Program(data["source"], data["language"], plans, data["names"], {}, data["use_threads"])


def _plan(data: dict[str, Any]) -> Plan:
    fields: dict[str, Any] = {**data, "symbols": ()}
    fields["kernels"] = tuple(_kernel(call) for call in data["kernels"])
    for kind in ("inputs", "constants", "temps", "outputs"):
        fields[kind] = tuple(_buffer(each) for each in data[kind])
    return Plan(**fields)


def _kernel(data: dict[str, Any]) -> KernelCall:
    lists = ("refs", "symbols", "inside", "rewrites")
    fields: dict[str, Any] = {**data, **{name: tuple(data[name]) for name in lists}}
    return KernelCall(**fields)


def _buffer(data: dict[str, Any]) -> Buffer:
    fields: dict[str, Any] = {**data, "shape": tuple(data["shape"])}
    return Buffer(**fields)
