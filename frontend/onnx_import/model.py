"""A model's file, read and checked as far as the walk of its graph relies on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.source_text import printable, read_source
from uopc.frontend.onnx_import.arrays import bad_model, element_of_code

MAX_SIZE = 1 << 40


def import_onnx() -> Any:
    """The onnx package. Raises UopcError [missing-dependency] where it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise UopcError(
            "missing-dependency",
            f"ONNX models are read with the package onnx: {error}",
            hint="pip install 'uopc[onnx]'",
        ) from error
    return onnx


@dataclass(frozen=True)
class Input:
    """An input of the graph: each size is a number, or a name that a call gives a value."""

    name: str
    element: str
    sizes: tuple[int | str, ...] | None
    """None where the model does not say how many axes there are."""


@dataclass(frozen=True)
class Model:
    """A model and where it lies."""

    proto: Any
    folder: Path | None

    @property
    def graph(self) -> Any:
        """The GraphProto."""
        return self.proto.graph

    @property
    def opsets(self) -> dict[str, int]:
        """The version of each domain's ops that the model uses."""
        return opsets_of(self.proto)

    def inputs(self) -> list[Input]:
        """What a call gives: those with an initializer are constants."""
        known = {each.name for each in self.graph.initializer}
        return [_input(each) for each in self.graph.input if each.name not in known]


def opsets_of(proto: Any) -> dict[str, int]:
    """The opset_import of a model or a function."""
    return {("" if e.domain == "ai.onnx" else e.domain): int(e.version) for e in proto.opset_import}


def read_model(source: str | Path | bytes | Any) -> Model:
    """The model of a path, of bytes, or an onnx.ModelProto.

    Raises UopcError: missing-dependency, cannot-read, bad-onnx-model, wrong-type.
    """
    onnx = import_onnx()
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        proto: Any = source
    elif isinstance(source, bytes):
        proto = _parsed(onnx, source, "the model")
    elif isinstance(source, str | Path):
        path = Path(source)
        proto = _parsed(onnx, read_source(str(path)), f"'{path}'")
        folder = path.absolute().parent
    else:
        raise UopcError(
            "wrong-type",
            f"the model is of type {type(source).__name__}",
            hint="expected the path of an .onnx file, its bytes, or an onnx.ModelProto",
        )
    model = Model(proto, folder)
    if not proto.HasField("graph") or not model.opsets:
        raise bad_model("the file holds no ONNX model: it has no graph or no opset_import")
    latest = onnx.defs.onnx_opset_version()
    if model.opsets.get("", 0) > latest:
        raise UnsupportedError(
            "unsupported-op",
            f"the model uses opset {model.opsets['']}, and the onnx package knows up to {latest}",
            hint="pip install --upgrade onnx",
        )
    if not model.graph.output:
        raise bad_model("the graph has no outputs")
    return model


def _parsed(onnx: Any, data: bytes, what: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return onnx.ModelProto.FromString(data)
    except (DecodeError, RuntimeError) as error:
        raise bad_model(f"{what} is no ONNX model: {error}") from error


def _input(proto: Any) -> Input:
    name = printable(proto.name)
    kind = proto.type.WhichOneof("value")
    if kind != "tensor_type":
        words = (kind or "unknown").removesuffix("_type").replace("_", " ")
        raise UnsupportedError(
            "unsupported-op", f"input '{name}' is of a {words} type", hint="expected tensors"
        )
    tensor = proto.type.tensor_type
    element = element_of_code(tensor.elem_type, f"input '{name}'")
    if not tensor.HasField("shape"):
        return Input(proto.name, element, None)
    sizes: list[int | str] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value"):
            if not 0 <= dim.dim_value <= MAX_SIZE:
                raise bad_model(f"input '{name}' has size {dim.dim_value} along axis {axis}")
            sizes.append(int(dim.dim_value))
        else:
            sizes.append(dim.dim_param or f"{proto.name}.{axis}")
    return Input(proto.name, element, tuple(sizes))
