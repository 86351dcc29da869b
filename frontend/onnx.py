"""ONNX in: a model's file as something that runs.

model = uopc.from_onnx("model.onnx")            # C
y = model(x)                                    # numpy arrays in and out, by order or by name
model = uopc.from_onnx("model.onnx", dims={"batch": 8})

Sizes that the model leaves open, and inputs whose values decide a shape (that of a Reshape), are
known when the model is called: it is compiled once for each of their values. Weights are arguments
of the compiled function, so that its C does not grow with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.frontend.core import shared_or_copied, wrap
from uopc.frontend.graph import Node, Shape, buffer, evaluation_order, placeholder
from uopc.frontend.onnx_import.arrays import Array
from uopc.frontend.onnx_import.importer import Importer, NeedsValue
from uopc.frontend.onnx_import.model import Input, Model, read_model
from uopc.runtime.buffers import numpy_dtype

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

SMALL = 1024
"""Constants of at most this many elements stand in the program, larger ones are arguments."""

WEIGHTS = ("sidecar", "embedded")


@dataclass(frozen=True)
class ImportedModel:
    """A model for fixed sizes, as a module, and what it is called with."""

    module: ModuleOp
    inputs: tuple[Input, ...]
    """What a call gives, in order; sizes are numbers."""
    weights: Mapping[str, Array]
    """The arguments after the inputs: constants too large for the program's text."""
    outputs: tuple[str, ...]
    """The model's names of the results."""


def from_onnx(
    model: str | Path | bytes | Any,
    target: str = "c",
    *,
    dims: Mapping[str, int] | None = None,
    weights: str = "sidecar",
    **options: Any,
) -> OnnxProgram:
    """A model as a program that is called on numpy arrays, in the order of its inputs or by name.

    `model` is a path, the bytes of a file, or an onnx.ModelProto. `dims` gives values to sizes
    that the model names, for those that a call need not tell. With `weights="embedded"` all
    constants stand in the C as data. `options` are those of `uopc.compile`.

    What is known of the shapes is compiled at once, the rest at the first call.

    Raises UnsupportedError, which is a UopcError and a NotImplementedError, for an op that has no
    conversion, with its node; UopcError for a file or an option that is wrong.
    """
    return OnnxProgram(read_model(model), target, dict(dims or {}), weights, options)


class OnnxProgram:
    """A model, compiled for each set of sizes that it is called with."""

    def __init__(
        self,
        model: Model,
        target: str,
        dims: dict[str, int],
        weights: str,
        options: dict[str, Any],
        *,
        early: bool = True,
    ) -> None:
        """`early`: compile now, if sizes are known before a call."""
        self.model = model
        self.target = target
        self.options = options
        self.inputs: tuple[Input, ...] = tuple(model.inputs())
        self.outputs: tuple[str, ...] = tuple(each.name for each in model.graph.output)
        self._weights = weights
        self._dims = dims
        self._by_value: set[str] = set()
        self._compiled: dict[Any, tuple[ImportedModel, Any]] = {}
        if weights not in WEIGHTS:
            raise UopcError(
                "bad-option", f"weights is '{weights}'", hint=f"one of: {', '.join(WEIGHTS)}"
            )
        known = {s for i in self.inputs for s in i.sizes or () if isinstance(s, str)}
        for name in dims:
            if name not in known:
                raise UopcError(
                    "unknown-size",
                    f"the model has no size '{name}'",
                    hint=f"it has: {', '.join(sorted(known)) or 'none'}",
                )
        self._only: Any = None
        """The program, where sizes and values are known before a call."""
        if early and all(bound_sizes(each, dims) is not None for each in self.inputs):
            self._compile_early()

    def _compile_early(self) -> None:
        try:
            self._only = self._compile(
                {i.name: bound_sizes(i, self._dims) for i in self.inputs}, {}
            )
        except NeedsValue as need:
            self._by_value.update(need.names)

    @property
    def executable(self) -> Any:
        """What was compiled last, with its `plan` and `source`.

        Raises UopcError if shapes are known at a call only, and there was none.
        """
        if not self._compiled:
            raise UopcError(
                "missing-size",
                "the model is compiled when it is called: its shapes depend on the inputs",
                hint="call it first, or give its sizes: from_onnx(…, dims={'name': 8})",
            )
        return next(reversed(self._compiled.values()))[1]

    @property
    def plan(self) -> Any:
        """The plan of what was compiled last."""
        return self.executable.plan

    @property
    def source(self) -> str:
        """The C of what was compiled last."""
        return self.executable.source

    def __call__(self, *arrays: object, **named: object) -> Any:
        """The result on arrays, or a tuple of results."""
        executable, values = self.prepared(*arrays, **named)
        return executable(*values)

    def prepared(self, *arrays: object, **named: object) -> tuple[Any, list[Any]]:
        """The program for these inputs, and all of its arguments: what a call runs."""
        values = self._ordered(arrays, named)
        if self._only is not None:
            imported, executable = self._only
            return executable, [*values, *imported.weights.values()]
        imported, executable, by_name = self._specialized(values, self._compile)
        chosen = [by_name[each.name] for each in imported.inputs]
        return executable, [*chosen, *imported.weights.values()]

    def imported(self, *arrays: object, **named: object) -> tuple[ImportedModel, list[Array]]:
        """The module for these inputs, not compiled, and what it is called with."""
        values = self._ordered(arrays, named)

        def make(
            shapes: Mapping[str, Shape | None], values: Mapping[str, Array]
        ) -> tuple[ImportedModel, Any]:
            return self._import(shapes, values), None

        found, _, by_name = self._specialized(values, make)
        return found, [*(by_name[i.name] for i in found.inputs), *found.weights.values()]

    def _specialized(
        self, values: Sequence[object], make: Callable[..., tuple[ImportedModel, Any]]
    ) -> tuple[ImportedModel, Any, dict[str, Array]]:
        """What `make` makes of the sizes of arrays, and of the values that it asks for."""
        checked = [_as_array(i, v) for i, v in zip(self.inputs, values, strict=True)]
        sizes = dict(self._dims)
        shapes = {
            i.name: _bind(i, a.shape, sizes) for i, a in zip(self.inputs, checked, strict=True)
        }
        by_name = {i.name: a for i, a in zip(self.inputs, checked, strict=True)}
        while True:
            try:
                return *make(shapes, by_name), by_name
            except NeedsValue as need:
                self._by_value.update(need.names)

    def _ordered(self, arrays: tuple[object, ...], named: Mapping[str, object]) -> list[object]:
        names = [each.name for each in self.inputs]
        given = dict(zip(names, arrays, strict=False))
        wrong = [n for n in named if n not in names or n in given]
        if wrong or len(arrays) > len(names) or len(given) + len(named) != len(names):
            raise UopcError(
                "wrong-input-count",
                f"got {len(arrays)} inputs" + (f" and {', '.join(named)}" if named else ""),
                hint=f"expected {', '.join(names) or 'none'}",
            )
        given.update(named)
        return [given[n] for n in names]

    def _compile(
        self, shapes: Mapping[str, Shape | None], values: Mapping[str, Array]
    ) -> tuple[ImportedModel, Any]:
        """The program for shapes, and for the values of the inputs that decide shapes."""
        chosen = {name: values[name] for name in sorted(self._by_value)}
        key = (tuple(shapes.values()), *((n, a.tobytes()) for n, a in chosen.items()))
        if key not in self._compiled:
            from uopc.frontend.compile import CompileRequest, compile_made

            imported = self._import(shapes, values)
            request = CompileRequest(self.target, **self.options)
            executable = compile_made(imported.module.clone, request)
            self._compiled[key] = imported, executable
        return self._compiled[key]

    def _import(
        self, shapes: Mapping[str, Shape | None], values: Mapping[str, Array]
    ) -> ImportedModel:
        chosen = {name: values[name] for name in sorted(self._by_value)}
        return import_model(self.model, shapes, chosen, self._weights == "embedded")


def import_model(
    model: Model,
    shapes: Mapping[str, Shape | None],
    values: Mapping[str, Array],
    embedded: bool = False,
) -> ImportedModel:
    """The module of a model for shapes of its inputs; those in `values` become constants.

    Raises NeedsValue if the value of another input decides a shape.
    """
    from uopc.frontend.build import build_module

    inputs = [each for each in model.inputs() if each.name not in values]
    held: dict[str, Node] = {}
    for each in inputs:
        shape = shapes[each.name]
        assert shape is not None
        held[each.name] = placeholder(shape, each.element)
    names = {node: name for name, node in held.items()}
    importer = Importer(model, names)
    given = {name: wrap(node) for name, node in held.items()}
    for each in model.inputs():
        if each.name in values:
            array = shared_or_copied(values[each.name], each.element)
            given[each.name] = wrap(buffer(array, each.element))
    results = [each.node for each in importer.run(given)]
    order = [node for node in evaluation_order(results) if node not in names]
    parts = [node for node in order if _is_array(node) and (embedded or _is_small(node))]
    large = [node for node in order if _is_array(node) and node not in parts]
    called = _distinct([importer.names.get(n, f"weight{k}") for k, n in enumerate(large)], held)
    module = build_module(
        [*held.values(), *order],
        results,
        function_name(model.graph.name),
        {**names, **dict(zip(large, called, strict=True))},
        constants=frozenset(parts),
    )
    weights = {name: node.array for name, node in zip(called, large, strict=True)}
    bound = tuple(Input(i.name, i.element, shapes[i.name]) for i in inputs)
    outputs = tuple(each.name for each in model.graph.output)
    return ImportedModel(module, bound, weights, outputs)  # pyright: ignore[reportArgumentType] (large nodes hold arrays)


def _is_array(node: Node) -> bool:
    return node.op == "buffer" and node.array is not None


def _is_small(node: Node) -> bool:
    return node.array is not None and node.array.size <= SMALL


def _distinct(names: list[str], taken: Mapping[str, object]) -> list[str]:
    found: list[str] = []
    for name in names:
        each, k = name, 1
        while each in taken or each in found:
            each, k = f"{name}_{k}", k + 1
        found.append(each)
    return found


def function_name(name: str) -> str:
    """A model's name as that of a function: letters, digits and underscores."""
    plain = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")[:60]
    return plain if plain and not plain[0].isdigit() else f"model_{plain}".rstrip("_")


def bound_sizes(each: Input, dims: Mapping[str, int]) -> tuple[int, ...] | None:
    """The sizes of an input, if all of them are known."""
    if each.sizes is None or any(isinstance(s, str) and s not in dims for s in each.sizes):
        return None
    return tuple(dims[s] if isinstance(s, str) else s for s in each.sizes)


def _bind(each: Input, shape: tuple[int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of an array that is given; names of sizes get their values. Raises UopcError."""
    if each.sizes is None:
        return shape
    if len(each.sizes) != len(shape):
        raise UopcError(
            "wrong-shape",
            f"input '{each.name}' has shape {list(shape)}",
            hint=f"expected {len(each.sizes)} axes: {_shown(each)}",
        )
    for wanted, got in zip(each.sizes, shape, strict=True):
        known = sizes.setdefault(wanted, got) if isinstance(wanted, str) else wanted
        if known != got:
            raise UopcError(
                "wrong-shape" if isinstance(wanted, int) else "size-mismatch",
                f"input '{each.name}' has shape {list(shape)}",
                hint=f"expected {_shown(each)}"
                + (f" with {wanted} = {known}" if isinstance(wanted, str) else ""),
            )
    return shape


def _shown(each: Input) -> str:
    return "[" + ", ".join(map(str, each.sizes or ())) + "]"


def _as_array(each: Input, value: object) -> Array:
    array = np.asarray(value)
    if array.dtype != numpy_dtype(each.element):
        raise UopcError(
            "wrong-dtype",
            f"input '{each.name}' has dtype {array.dtype}",
            hint=f"expected {numpy_dtype(each.element)}",
        )
    return array
