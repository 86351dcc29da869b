"""ONNX for uopc-opt: `uopc-opt model.onnx` reads a model as a module of utensor ops.

    uopc-opt model.onnx -f 'onnx{sizes="batch=8" weights=model.weights}' -p uopc-cpu -t c

Constants of more than 1,024 elements are arguments of the function, after the model's inputs. With
a file for `weights` they are written there one after another, each from a multiple of 64 bytes on,
and FILE.h tells C where; `weights=embedded` leaves them in the program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from uopc.dialects.errors import UopcError
from uopc.frontend.onnx import ImportedModel, bound_sizes, import_model
from uopc.frontend.onnx_import.arrays import Array
from uopc.frontend.onnx_import.importer import NeedsValue
from uopc.frontend.onnx_import.model import Model, read_model

ALIGNMENT = 64


@dataclass(frozen=True)
class OnnxFrontend(Frontend):
    """`onnx{sizes="batch=8,length=16" weights=FILE}`: an ONNX model."""

    name = "onnx"

    sizes: str = ""
    """Values of the sizes that the model names, as name=number, separated by commas."""
    weights: str = ""
    """A file for the large constants, or `embedded`."""

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        """The module of a model's bytes. Raises UopcError, and UnsupportedError for an op."""
        model = read_model(input.read())
        if Path(input_name).is_file():
            model = Model(model.proto, Path(input_name).absolute().parent)
        imported = import_static(model, parse_sizes(self.sizes.split(",")), self.weights)
        if imported.weights and self.weights:
            write_weights(Path(self.weights), imported)
        elif imported.weights:
            size = sum(array.nbytes for array in imported.weights.values())
            print(
                f"note: {len(imported.weights)} constants, {size:,} bytes, are arguments of the "
                "function: -f 'onnx{weights=FILE}' writes them to a file, "
                "-f 'onnx{weights=embedded}' puts them into the program",
                file=sys.stderr,
            )
        return imported.module


def parse_sizes(texts: list[str]) -> dict[str, int]:
    """Sizes by name, of texts NAME=NUMBER. Raises UopcError [bad-option]."""
    sizes: dict[str, int] = {}
    for text in filter(None, (text.strip() for text in texts)):
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal():
            raise UopcError("bad-option", f"size '{text}': expected NAME=NUMBER")
        sizes[name] = int(number)
    return sizes


def import_static(model: Model, dims: Mapping[str, int], weights: str) -> ImportedModel:
    """A model whose shapes are all known. Raises UopcError [missing-size] for others."""
    inputs = model.inputs()
    for each in inputs:
        if bound_sizes(each, dims) is None:
            shown = ", ".join(map(str, each.sizes)) if each.sizes is not None else "any rank"
            missing = [s for s in each.sizes or () if isinstance(s, str) and s not in dims]
            example = ",".join(f"{name}=8" for name in dict.fromkeys(missing))
            raise UopcError(
                "missing-size",
                f"input '{each.name}' has sizes [{shown}]",
                hint=f"give them: -f 'onnx{{sizes=\"{example}\"}}'" if missing else "",
            )
    shapes = {each.name: bound_sizes(each, dims) for each in inputs}
    try:
        return import_model(model, shapes, {}, weights == "embedded")
    except NeedsValue as need:
        raise UopcError(
            "missing-size",
            f"{need.words}: a shape depends on the value of input {', '.join(need.names)}",
            hint="make it an initializer of the model; uopc.from_onnx compiles it at a call",
        ) from need


def offsets_of(weights: Mapping[str, Array]) -> tuple[dict[str, int], int]:
    """Where each constant begins, and the bytes of all."""
    found: dict[str, int] = {}
    at = 0
    for name, array in weights.items():
        found[name] = at
        at += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    return found, at


def write_weights(path: Path, imported: ImportedModel) -> None:
    """The constants as a file, and a header that tells C where each begins.

    Raises UopcError [cannot-write].
    """
    offsets, total = offsets_of(imported.weights)
    macro = re.sub(r"\W", "_", path.name).upper()
    lines = [
        f"/* {path.name}: arguments of the function after its inputs, at these offsets. */",
        *(
            f"#define {macro}_{k} {offset} /* {name.encode('ascii', 'backslashreplace').decode()}: "
            f"{imported.weights[name].dtype} {list(imported.weights[name].shape)} */"
            for k, (name, offset) in enumerate(offsets.items())
        ),
        f"#define {macro}_BYTES {total}",
    ]
    try:
        with path.open("wb") as file:
            for name, array in imported.weights.items():
                file.seek(offsets[name])
                file.write(array.tobytes())
            file.truncate(total)
        path.with_name(path.name + ".h").write_text(_no_comment_end(lines), encoding="utf-8")
    except OSError as error:
        raise UopcError(
            "cannot-write", f"'{path}' cannot be written: {error.strerror or error}"
        ) from error


def _no_comment_end(lines: list[str]) -> str:
    """Names may hold what ends a comment of C."""
    cleaned = [
        line[:-2].replace("*/", "* /") + "*/" if line.endswith("*/") else line for line in lines
    ]
    return "\n".join(cleaned) + "\n"
