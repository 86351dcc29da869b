"""ONNX models: what a model becomes, sizes and values told by a call, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_models import model, node, perceptron, perceptron_result  # noqa: E402

import uopc  # noqa: E402
from uopc import UopcError  # noqa: E402
from uopc.frontend.onnx import function_name  # noqa: E402
from uopc.frontend.onnx_import.registry import RULES  # noqa: E402

pytestmark = pytest.mark.usefixtures("cache_folder")
RNG = np.random.default_rng(1)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


# Sizes, weights and values.


def test_a_size_that_is_open_is_told_by_the_call():
    proto, weights = perceptron()
    program = uopc.from_onnx(proto)
    for batch in (1, 3):
        x = reals(batch, 64)
        for result in (program(x), program(x=x)):
            np.testing.assert_allclose(result, perceptron_result(x, weights), 1e-4, 1e-4)
    with pytest.raises(UopcError, match=r"'x' has shape \[3, 63\]"):
        program(reals(3, 63))
    with pytest.raises(UopcError, match="'x' has dtype float64"):
        program(np.zeros((3, 64)))
    with pytest.raises(UopcError, match="got 0 inputs"):
        program()


def test_one_name_is_one_size():
    proto = model([node("Add", "x y", "z")], {"x": ["n"], "y": ["n"]}, ["z"])
    with pytest.raises(UopcError, match=r"(?s)'y' has shape \[4\].*\[n\] with n = 3"):
        uopc.from_onnx(proto)(reals(3), reals(4))


def test_large_weights_are_arguments_and_the_text_does_not_grow_with_them():
    for size in (2048, 1 << 20):
        proto = model([node("Add", "x w", "y")], {"x": [size]}, ["y"], {"w": reals(size)})
        program = uopc.from_onnx(proto)
        x = reals(size)
        np.testing.assert_array_equal(
            program(x), x + numpy_helper.to_array(proto.graph.initializer[0])
        )
        assert len(program.source) < 5000
        assert [b.name for b in program.plan.inputs] == ["x", "w"]


def test_embedded_weights_give_the_same_bits():
    proto, _ = perceptron()
    x = reals(2, 64)
    apart = uopc.from_onnx(proto, dims={"batch": 2})
    inside = uopc.from_onnx(proto, dims={"batch": 2}, weights="embedded")
    assert len(inside.plan.inputs) == 1
    np.testing.assert_array_equal(inside(x), apart(x))


def test_an_input_whose_value_decides_a_shape_is_compiled_in():
    nodes = [node("Reshape", "x s", "y"), node("Neg", "y", "z")]
    proto = model(nodes, {"x": [2, 6], "s": [2]}, ["z"], types={"s": "i64"})
    x = reals(2, 6)
    program = uopc.from_onnx(proto)
    for shape in ((3, 4), (4, -1), (12, 1)):
        np.testing.assert_array_equal(program(x, np.array(shape)), -x.reshape(shape))
    assert [b.name for b in program.plan.inputs] == ["x"]


def test_shapes_computed_from_shapes_are_known():
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Mul", "n two", "m"),
        node("Concat", "m minus", "t", axis=0), node("Reshape", "x t", "y"),
    ]  # fmt: skip
    constants = {
        "zero": np.array([0]), "two": np.array([2]), "minus": np.array([-1])
    }  # fmt: skip
    x = reals(3, 4)
    result = uopc.from_onnx(model(nodes, {"x": ["a", "b"]}, ["y"], constants), "interpreter")(x)
    np.testing.assert_array_equal(result, x.reshape(6, 2))


def test_several_results_and_results_that_are_inputs_or_constants():
    nodes = [node("Identity", "x", "y"), node("Split", "x", "a b", axis=0, num_outputs=2)]
    proto = model(nodes, {"x": [4]}, ["y", "b", "c"], {"c": np.float32([1, 2])})
    x = reals(4)
    for target in ("interpreter", "c"):
        y, b, c = uopc.from_onnx(proto, target)(x)
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(b, x[2:])
        np.testing.assert_array_equal(c, [1, 2])


def test_an_input_that_is_not_used_is_still_an_argument():
    proto = model([node("Neg", "y", "z")], {"x": [2], "y": [3]}, ["z"])
    y = reals(3)
    np.testing.assert_array_equal(uopc.from_onnx(proto)(reals(2), y), -y)


def test_data_in_a_file_next_to_the_model(tmp_path):
    proto, weights = perceptron()
    path = tmp_path / "model.onnx"
    onnx.save_model(
        proto, path, save_as_external_data=True, location="model.data", size_threshold=0
    )
    x = reals(2, 64)
    expected = perceptron_result(x, weights)
    np.testing.assert_allclose(uopc.from_onnx(str(path))(x), expected, 1e-4, 1e-4)
    with pytest.raises(UopcError, match="the model has no folder"):
        uopc.from_onnx(path.read_bytes())(x)
    (tmp_path / "model.data").write_bytes(b"short")
    with pytest.raises(UopcError, match=r"is not in the file 'model\.data'"):
        uopc.from_onnx(path)(x)


# Functions and control flow.


def test_functions_of_the_model_are_written_out():
    scaled = helper.make_function(
        "own", "Scaled", ["x"], ["y"],
        [
            helper.make_node("Constant", [], ["k"]),
            helper.make_node("Mul", ["x", "k"], ["y"]),
        ],
        [helper.make_opsetid("", 21)], ["factor"],
    )  # fmt: skip
    reference = scaled.node[0].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "factor", 1
    nodes = [
        node("Scaled", "x", "a", domain="own", factor=2.0),
        node("Scaled", "a", "y", domain="own", factor=5.0),
    ]
    x = reals(3)
    proto = model(nodes, {"x": [3]}, ["y"], functions=[scaled])
    np.testing.assert_array_equal(uopc.from_onnx(proto, "interpreter")(x), x * 2 * 5)


def test_a_function_that_calls_itself_is_refused():
    endless = helper.make_function(
        "own", "F", ["x"], ["y"], [helper.make_node("F", ["x"], ["y"], domain="own")],
        [helper.make_opsetid("own", 1)],
    )  # fmt: skip
    proto = model([node("F", "x", "y", domain="own")], {"x": [3]}, ["y"], functions=[endless])
    with pytest.raises(UopcError, match="nest deeper than 50"):
        uopc.from_onnx(proto)


def subgraph(nodes: list[Any], inputs: list[str], outputs: list[str]) -> Any:
    values = [helper.make_empty_tensor_value_info(name) for name in (*inputs, *outputs)]
    return helper.make_graph(nodes, "inner", values[: len(inputs)], values[len(inputs) :])


def test_if_loop_and_scan_are_written_out():
    branches = {
        name: subgraph([node(op, "x", "r")], [], ["r"])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    body = subgraph(
        [node("Add", "s x", "t"), node("Identity", "c", "d"), node("Mul", "t t", "u")],
        ["i", "c", "s"], ["d", "t", "u"],
    )  # fmt: skip
    step = subgraph([node("Add", "h e", "g"), node("Neg", "g", "o")], ["h", "e"], ["g", "o"])
    nodes = [
        node("If", "yes", "a", **branches),
        node("Loop", "three _ a", "b rows", body=body),
        node("Scan", "b rows", "last outs", body=step, num_scan_inputs=1),
    ]
    constants = {"yes": np.array(True), "three": np.array(3)}
    x = reals(4)
    results = uopc.from_onnx(
        model(nodes, {"x": [4]}, ["rows", "last", "outs"], constants), "interpreter"
    )(x)
    state, rows = -x, []
    for _ in range(3):
        state = state + x
        rows.append(state * state)
    outs = []
    for row in rows:
        state = state + row
        outs.append(-state)
    for got, expected in zip(results, (np.stack(rows), state, np.stack(outs)), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_condition_that_depends_on_data_is_told_by_the_call():
    branches = {
        name: subgraph([node(op, "x", "r")], [], ["r"])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    proto = model([node("If", "c", "y", **branches)], {"x": [2], "c": []}, ["y"], types={"c": "i1"})
    program, x = uopc.from_onnx(proto, "interpreter"), reals(2)
    np.testing.assert_array_equal(program(x, np.array(True)), -x)
    np.testing.assert_array_equal(program(x, np.array(False)), np.abs(x))


# What is refused, and damaged files.


def refused(proto: Any, pattern: str, *inputs: Any, kind: type[Exception] = UopcError) -> None:
    with pytest.raises(kind) as caught:
        uopc.from_onnx(proto, "interpreter")(*inputs)
    assert isinstance(caught.value, UopcError)
    assert re.search(pattern, str(caught.value)), str(caught.value)


def test_an_op_without_a_rule_names_its_node():
    for op, pattern in (
        ("NonZero", r"node 'here' \(NonZero\): the shape of its result depends on data"),
        ("RandomNormalLike", r"\(RandomNormalLike\): its result is random"),
        ("Nonsense", r"\(Nonsense\): ONNX has no such op in opset 21"),
    ):
        proto = model([node(op, "x", "y", name="here")], {"x": [3]}, ["y"])
        refused(proto, pattern, reals(3), kind=NotImplementedError)
    proto = model([node("Add", "x x", "y", axis=0)], {"x": [3]}, ["y"], opset=6)
    refused(proto, "as of version 6, and there is a rule from version 7 on", reals(3))


def test_types_that_are_not_there_are_named():
    proto = model([node("Identity", "x", "y")], {"x": [3]}, ["y"])
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    refused(proto, "input 'x' has elements of type STRING", kind=NotImplementedError)
    sequence = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [3])
    proto.graph.input[0].CopyFrom(sequence)
    refused(proto, "input 'x' is of a sequence type", kind=NotImplementedError)


def test_damaged_models_are_told_in_words():
    def changed(change: Any) -> Any:
        proto, _ = perceptron()
        change(proto.graph)
        return proto

    def set_sizes(graph: Any) -> None:
        graph.initializer[0].dims[0] = 1 << 50

    def set_negative(graph: Any) -> None:
        graph.initializer[0].dims[0] = -64

    def cut(graph: Any) -> None:
        graph.initializer[0].raw_data = b"abc"

    def outside(graph: Any) -> None:
        tensor = graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "../../etc/passwd"

    def missing(graph: Any) -> None:
        del graph.initializer[0]

    def cycle(graph: Any) -> None:
        graph.node[0].input[0] = "y"

    def no_axes(graph: Any) -> None:
        graph.node[2].CopyFrom(node("Softmax", "b", "c", axis=7))

    def wrong_type(graph: Any) -> None:
        graph.node[2].CopyFrom(node("Softmax", "b", "c", axis=1.5))

    def no_inputs(graph: Any) -> None:
        graph.node[2].CopyFrom(node("Relu", "", "c"))

    x = reals(2, 64)
    for change, pattern in (
        (set_sizes, r"'fc1.weight' of sizes \[1125899906842624, 32\] would take"),
        (set_negative, r"'fc1.weight' has sizes \[-64, 32\]"),
        (cut, r"'fc1.weight' of sizes \[64, 32\] has 3 bytes, expected 8192"),
        (outside, "the model has no folder"),
        (missing, r"node '-> a' \(MatMul\): input 'fc1.weight' is no input"),
        (cycle, "input 'y' is no input, initializer or result of an earlier node"),
        (no_axes, r"\(Softmax\): axis 7 is out of range for rank 2"),
        (wrong_type, "attribute axis of type FLOAT, expected INT"),
        (no_inputs, r"\(Relu\) lacks input 0"),
    ):
        refused(changed(change), pattern, x)


def test_files_outside_of_the_models_folder_are_not_read(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(8192))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    for location in ("../secret", str(tmp_path / "secret"), "link"):
        proto, _ = perceptron()
        tensor = proto.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
        path = folder / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(UopcError, match="outside of the model's folder"):
            uopc.from_onnx(path)(reals(2, 64))


def test_what_is_no_model(tmp_path):
    for data in (b"", b"not a model", b"\x08\x07"):
        path = tmp_path / "x.onnx"
        path.write_bytes(data)
        with pytest.raises(UopcError, match="no ONNX model"):
            uopc.from_onnx(path)
    with pytest.raises(UopcError, match=r"cannot read '.*absent\.onnx'"):
        uopc.from_onnx(tmp_path / "absent.onnx")
    with pytest.raises(UopcError, match="of type int"):
        uopc.from_onnx(7)
    proto, _ = perceptron()
    with pytest.raises(UopcError, match="has no size 'bach'"):
        uopc.from_onnx(proto, dims={"bach": 2})
    with pytest.raises(UopcError, match="weights is 'inside'"):
        uopc.from_onnx(proto, weights="inside")


def test_every_rule_is_of_an_op_that_exists():
    for op, versions in RULES.items():
        known = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op}
        assert known, op
        assert max(versions) <= max(known), (op, versions, sorted(known))


def test_names_of_functions_are_plain():
    assert function_name("torch-jit-export") == "torch_jit_export"
    assert function_name("") == "model"
    assert function_name("3d") == "model_3d"
    assert re.fullmatch(r"\w+", function_name("../*/ \n🙂x"))
    assert Path(function_name("a/b")).name == "a_b"
