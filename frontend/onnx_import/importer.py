"""The walk of a model's graph: each node by its rule, in the order of the file.

Values are Tensors. What decides a shape must be known when the graph is walked: it is computed by
the reference interpreter from constants, and where it comes from an input the walk ends in
NeedsValue, to be started again with that input's value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.source_text import printable
from uopc.frontend.build import build_module
from uopc.frontend.core import shared_or_copied, type_name, wrap
from uopc.frontend.graph import Node, buffer, evaluation_order, resolved
from uopc.frontend.onnx_import.arrays import Array, array_of_tensor, bad_model, code_of_element
from uopc.frontend.onnx_import.call import Call, Rule, node_words
from uopc.frontend.onnx_import.model import Model, opsets_of
from uopc.frontend.tensor import Tensor

MAX_DEPTH = 50
"""Functions and the graphs of If, Loop and Scan nest no deeper than this."""

MAX_NODES = 200_000
"""A model that needs more nodes when functions and loops are written out is refused."""


class NeedsValue(Exception):
    """A shape depends on inputs of the model: they are given when it is called."""

    def __init__(self, names: list[str], words: str) -> None:
        super().__init__(f"{words} needs the value of {', '.join(names)}")
        self.names = names
        self.words = words


class Importer:
    """Walks graphs; `placeholders` are the inputs whose values only a call gives."""

    def __init__(self, model: Model, placeholders: Mapping[Node, str]) -> None:
        from uopc.frontend.onnx_import.registry import RULES

        self.model = model
        self.rules = RULES
        self.placeholders = placeholders
        self.names: dict[Node, str] = {}
        """What the model calls its initializers."""
        self._functions = {(f.domain, f.name, f.overload): f for f in model.proto.functions}
        self._count = 0
        self._depth = 0

    # Graphs and functions.

    def run(self, values: Mapping[str, Tensor]) -> list[Tensor]:
        """The results of the model's graph."""
        return self.run_graph(self.model.graph, dict(values), self.model.opsets)

    def run_graph(
        self, graph: Any, values: dict[str, Tensor], opsets: Mapping[str, int]
    ) -> list[Tensor]:
        """The results of a graph, whose inputs and outer values are in `values`."""
        for each in graph.initializer:
            if each.name not in values:
                values[each.name] = self.constant(
                    array_of_tensor(each, self.model.folder), each.name
                )
        if graph.sparse_initializer:
            raise UnsupportedError("unsupported-op", "the model has sparse initializers")
        self._run_nodes(graph.node, values, {}, opsets)
        return [self._value(values, each.name, "the graph's output") for each in graph.output]

    def run_function(
        self, function: Any, inputs: Sequence[Tensor | None], attributes: Mapping[str, Any]
    ) -> list[Tensor | None]:
        """The results of a function of ONNX's or of the model's."""
        values: dict[str, Tensor] = {}
        absent = {""}
        for position, name in enumerate(function.input):
            value = inputs[position] if position < len(inputs) else None
            if value is None:
                absent.add(name)
            else:
                values[name] = value
        given = {each.name: each for each in function.attribute_proto}
        opsets = {**self.model.opsets, **opsets_of(function)}
        self._run_nodes(function.node, values, {**given, **attributes}, opsets, absent)
        return [values.get(name) for name in function.output]

    def _run_nodes(
        self,
        nodes: Sequence[Any],
        values: dict[str, Tensor],
        attributes: Mapping[str, Any],
        opsets: Mapping[str, int],
        absent: set[str] | None = None,
    ) -> None:
        if self._depth >= MAX_DEPTH:
            raise bad_model(f"functions and graphs nest deeper than {MAX_DEPTH}: one calls itself?")
        self._depth += 1
        outer, self._scope = getattr(self, "_scope", None), (values, opsets)
        empty = absent or {""}
        for node in nodes:
            self._count += 1
            if self._count > MAX_NODES:
                raise UnsupportedError(
                    "unsupported-op",
                    f"with functions and loops written out, the model has more than {MAX_NODES} "
                    "nodes",
                    hint="loops are written out: use fewer steps",
                )
            inputs = [
                None if name in empty else self._value(values, name, f"{node_words(node)}: input")
                for name in node.input
            ]
            results = self._run_node(_bound(node, attributes), inputs, opsets)
            if len(results) < sum(map(bool, node.output)):
                raise bad_model(f"{node_words(node)} has {len(node.output)} outputs")
            for name, result in zip(node.output, results, strict=False):
                if name and result is None:
                    raise UnsupportedError(
                        "unsupported-op", f"{node_words(node)}: its output '{name}'"
                    )
                if name and result is not None:
                    values[name] = result
        self._depth -= 1
        self._scope = outer

    def nested(self, graph: Any, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The results of a graph inside of a node, which sees the values around it."""
        assert self._scope is not None
        outer, opsets = self._scope
        names = [each.name for each in graph.input]
        if len(names) != len(inputs):
            raise bad_model(f"graph '{graph.name}' has {len(names)} inputs, given {len(inputs)}")
        inner = {**outer, **dict(zip(names, inputs, strict=True))}
        for each in graph.initializer:  # hides what is called so outside
            inner[each.name] = self.constant(array_of_tensor(each, self.model.folder), each.name)
        return self.run_graph(graph, inner, opsets)

    # One node.

    def _run_node(
        self,
        node: Any,
        inputs: Sequence[Tensor | None],
        opsets: Mapping[str, int],
    ) -> Sequence[Tensor | None]:
        own = self._functions.get((node.domain, node.op_type, node.overload))
        if own is not None:
            return self.run_function(own, inputs, _attributes(node))
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in opsets:
            raise bad_model(f"{node_words(node)}: the model imports no opset of '{domain}'")
        schema = _schema(node, domain, opsets[domain])
        call = Call(cast(Any, self), node, schema.since_version, inputs)
        rule = self._rule(domain, node.op_type, schema.since_version)
        if rule is None:
            return self._run_body(call, schema, opsets[domain])
        try:
            result = rule(call)
        except (UnsupportedError, NeedsValue):
            raise
        except UopcError as error:
            if error.kind == "bad-onnx-model":
                raise
            raise UopcError(
                "bad-onnx-model", f"{call.words}: {error.message}", hint=error.hint
            ) from error
        return list(result) if isinstance(result, list | tuple) else [result]  # pyright: ignore[reportReturnType] (a rule gives one or several)

    def _rule(self, domain: str, op: str, version: int) -> Rule | None:
        """The rule for a version of an op: that of the latest change before it."""
        rules: Mapping[int, Rule] = self.rules.get(op, {}) if not domain else {}
        first = max((each for each in rules if each <= version), default=None)
        return None if first is None else rules[first]

    def _run_body(self, call: Call, schema: Any, opset: int) -> Sequence[Tensor | None]:
        """An op that ONNX defines by others: by that definition."""
        function = function_body(schema, call.node, call.inputs, opset)
        if function is None:
            known = sorted(self.rules.get(call.node.op_type, {}))
            raise call.unsupported(
                f"opset {opset} has it as of version {schema.since_version}, and there is a rule "
                f"from version {known[0]} on only"
                if known
                else REFUSED.get(call.node.op_type, "there is no rule for this op"),
                "docs/supported.md lists what there is",
            )
        defaults = {
            name: each.default_value
            for name, each in schema.attributes.items()
            if each.default_value.name
        }
        return self.run_function(function, call.inputs, {**defaults, **_attributes(call.node)})

    # Values.

    def constant(self, array: Array, name: str = "") -> Tensor:
        """A tensor of an array that is never written."""
        element = type_name(array.dtype)
        node = buffer(shared_or_copied(array, element), element)
        if name:
            self.names[node] = name
        return wrap(node)

    def _value(self, values: Mapping[str, Tensor], name: str, words: str) -> Tensor:
        if name not in values:
            raise bad_model(
                f"{words} '{printable(name)}' is no input, initializer or result of an earlier node"
            )
        return values[name]

    def known(self, value: Tensor, words: str) -> Array:
        """The elements of a tensor, computed now, for the node that `words` names.

        Raises NeedsValue if inputs are needed for it.
        """
        node = resolved(value.node)
        if node.op != "buffer" or node.array is None:
            order = evaluation_order([node])
            needed = [self.placeholders[n] for n in order if n in self.placeholders]
            if needed:
                raise NeedsValue(needed, words)
            computed = _interpreted(order, node)
            node.realized = buffer(shared_or_copied(computed, node.type), node.type)
            node = node.realized
        assert node.array is not None
        return node.array


def _interpreted(order: Sequence[Node], node: Node) -> Array:
    """The value of a node that depends on arrays only, by the reference semantics."""
    import numpy as np

    from uopc.interpreters.tensor import run_function

    module = build_module(order, [node])
    inputs: list[Any] = [n.array for n in order if n.op == "buffer"]
    return np.asarray(run_function(module, "realize", inputs, {})[0])


def _schema(node: Any, domain: str, opset: int) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(node.op_type, opset, domain)
    except onnx.defs.SchemaError:
        raise UnsupportedError(
            "unsupported-op",
            f"{node_words(node)}: ONNX has no such op in opset {opset}"
            + (f" of '{printable(domain)}'" if domain else ""),
            hint="docs/supported.md lists what there is",
        ) from None


def function_body(
    schema: Any, node: Any, inputs: Sequence[Tensor | None], opset: int
) -> Any | None:
    """ONNX's definition of an op by others, or None."""
    import onnx

    versions = [v for v in schema.function_opset_versions if v <= opset]
    if versions:
        return onnx.FunctionProto.FromString(schema.get_function_with_opset_version(max(versions)))
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        return None
    types = [_type_proto(each) for each in inputs]
    body = schema.get_context_dependent_function_with_opset_version(
        max(versions), node.SerializeToString(), types
    )
    return onnx.FunctionProto.FromString(body) if body else None


def _type_proto(value: Tensor | None) -> bytes:
    import onnx

    if value is None:
        return onnx.TypeProto().SerializeToString()
    code = code_of_element(value.element)
    return onnx.helper.make_tensor_type_proto(code, value.shape).SerializeToString()


def _attributes(node: Any) -> dict[str, Any]:
    return {each.name: each for each in node.attribute}


def _bound(node: Any, attributes: Mapping[str, Any]) -> Any:
    """A node whose attributes refer to none of the function around it."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    bound = type(node)()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            bound.attribute.append(each)
        elif each.ref_attr_name in attributes:
            bound.attribute.append(attributes[each.ref_attr_name])
            bound.attribute[-1].name = each.name
    return bound


REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("Compress", "NonMaxSuppression", "NonZero", "Unique"),
        "the shape of its result depends on data, and plans have fixed shapes",
    ),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
         "RandomUniformLike"),
        "its result is random, and programs are functions of their inputs",
    ),
    **dict.fromkeys(
        ("ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
         "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"),
        "there are no sequences of tensors",
    ),
    **dict.fromkeys(
        ("Optional", "OptionalGetElement", "OptionalHasElement"), "there are no optional values"
    ),
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
         "LabelEncoder"),
        "there are no strings",
    ),
    "ImageDecoder": "files of images are not decoded",
}  # fmt: skip
"""Why there is no rule for an op, where there is more to say."""
