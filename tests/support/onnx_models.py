"""Small ONNX models for tests, as one call each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
CODES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i1": TensorProto.BOOL}


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
    *,
    opset: int = 21,
    types: Mapping[str, str] | None = None,
    functions: Sequence[Any] = (),
) -> ModelProto:
    """A model of f32 inputs, but for those that `types` names."""
    types = types or {}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(name, CODES[types.get(name, "f32")], shape)
            for name, shape in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=functions)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; names stand in one string, `_` for an input that is absent."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def perceptron() -> tuple[ModelProto, dict[str, Array]]:
    """Two layers over a batch of any size, and their weights, of which the bias is small."""
    rng = np.random.default_rng(0)
    weights = {
        "fc1.weight": rng.standard_normal((64, 32)).astype(np.float32),
        "bias": rng.standard_normal(32).astype(np.float32),
        "fc2.weight": rng.standard_normal((32, 40)).astype(np.float32),
    }
    nodes = [
        node("MatMul", "x fc1.weight", "a"), node("Add", "a bias", "b"), node("Relu", "b", "c"),
        node("MatMul", "c fc2.weight", "y"),
    ]  # fmt: skip
    return model(nodes, {"x": ["batch", 64]}, ["y"], weights), weights


def perceptron_result(x: Array, weights: Mapping[str, Array]) -> Array:
    """What the perceptron gives, by numpy."""
    hidden = np.maximum(x @ weights["fc1.weight"] + weights["bias"], 0)
    return hidden @ weights["fc2.weight"]
