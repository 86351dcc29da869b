"""Which dialects uopc brings, by name. Add a row, and every tool has the dialect.

A row is text, imported when the dialect is first met: a tool that starts must not pay for what
its input does not use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from xdsl.context import Context
from xdsl.ir import Dialect

DIALECTS: dict[str, str] = {
    "ukernel": "uopc.dialects.kernel:UKernel",
    "uloop": "uopc.dialects.loop:ULoop",
    "utensor": "uopc.dialects.tensor:UTensor",
}

FOREIGN_DIALECTS: dict[str, str] = {
    "chlo": "uopc.dialects.stablehlo:CHLO",
    "sdy": "uopc.dialects.sdy:SDY",
    "stablehlo": "uopc.dialects.stablehlo:StableHLO",
    "x86vector": "uopc.dialects.x86vector:X86Vector",
}
"""Dialects of others that uopc reads and writes. Only uopc's own tools have them: other projects
bring dialects of these names, and a clash would break every tool in the environment."""


def load_object(path: str) -> Any:
    """The object that `package.module:Name` names."""
    module_name, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module_name), attribute)


def lazy_factory(path: str) -> Callable[[], Any]:
    """A factory without arguments that imports what `path` names when it is called."""

    def load() -> Any:
        return load_object(path)

    load.__doc__ = f"Load {path}."
    return load


def lazy_factories(table: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """One lazy factory for each row of a table of names and paths."""
    return {name: lazy_factory(path) for name, path in table.items()}


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """uopc's own dialects, as the factories that xDSL's Universe and Context take."""
    return lazy_factories(DIALECTS)


def foreign_factories() -> dict[str, Callable[[], Dialect]]:
    """The dialects of others that uopc's own tools read."""
    return {name: _with_hexadecimal_floats(path) for name, path in FOREIGN_DIALECTS.items()}


def _with_hexadecimal_floats(path: str) -> Callable[[], Dialect]:
    """A factory of a dialect whose constants may be written as bits: see upstream_fixes."""

    def load() -> Dialect:
        from uopc.dialects.upstream_fixes import install

        install()
        return load_object(path)

    return load


def make_context(*, allow_unregistered: bool = False) -> Context:
    """A context that knows xDSL's dialects and uopc's; each is loaded when first met."""
    from xdsl.dialects import get_all_dialects

    context = Context(allow_unregistered=allow_unregistered)
    repaired = {
        "arith": repaired_arith,
        "gpu": extended_gpu,
        "linalg": extended_linalg,
        "memref": extended_memref,
    }
    own = {**foreign_factories(), **dialect_factories()}
    factories = {**get_all_dialects(), **own, **repaired}
    for name, factory in factories.items():
        context.register_dialect(name, factory)
    return context


def repaired_arith() -> Dialect:
    """xDSL's arith dialect, once its ops take vectors: see upstream_fixes."""
    from xdsl.dialects.arith import Arith

    from uopc.dialects.upstream_fixes import install

    install()
    return Arith


def extended_linalg() -> Dialect:
    """xDSL's linalg dialect, with the named ops that it lacks: see linalg_named."""
    from uopc.dialects.linalg_named import ExtendedLinalg

    return ExtendedLinalg


def extended_gpu() -> Dialect:
    """xDSL's gpu dialect, with what it lacks: see gpu_extensions."""
    from uopc.dialects.gpu_extensions import extended_gpu

    return extended_gpu()


def extended_memref() -> Dialect:
    """xDSL's memref dialect, with what it lacks: see memref_extensions."""
    from uopc.dialects.memref_extensions import extended_memref

    return extended_memref()
