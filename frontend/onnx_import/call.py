"""What a rule is given: a node, its inputs as tensors, its attributes.

A rule is a function from a Call to a tensor, or to a list of them where a node has several outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.source_text import printable
from uopc.frontend.core import one_axis
from uopc.frontend.onnx_import.arrays import Array, array_of_tensor

if TYPE_CHECKING:
    from uopc.frontend.onnx_import.importer import Importer
    from uopc.frontend.tensor import Tensor

Result: TypeAlias = "Tensor | Sequence[Tensor | None]"
Rule: TypeAlias = "Callable[[Call], Result]"
Rules: TypeAlias = Mapping[str, Mapping[int, Rule]]
"""By an op's name: from which version of it on a rule holds."""


class Call:
    """One node in the hand of its rule. `version` is the opset that last changed the op."""

    def __init__(
        self,
        importer: Importer,
        node: Any,
        version: int,
        inputs: Sequence[Tensor | None],
    ) -> None:
        self.importer = importer
        self.node = node
        self.version = version
        self.inputs = inputs
        self._attributes = {each.name: each for each in node.attribute}

    @property
    def words(self) -> str:
        """The node in messages."""
        return node_words(self.node)

    # Inputs.

    def __getitem__(self, position: int) -> Tensor:
        value = self.get(position)
        if value is None:
            raise self.invalid(f"lacks input {position}")
        return value

    def get(self, position: int) -> Tensor | None:
        """An input that may be absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def all(self) -> list[Tensor]:
        """The inputs of a node that has any number of them, at least one."""
        return [self[k] for k in range(max(1, len(self.inputs)))]

    def known(self, position: int) -> Array:
        """The elements of an input that decides a shape. Raises NeedsValue where a call gives
        them."""
        return self.importer.known(self[position], self.words)

    def known_ints(self, position: int) -> list[int] | None:
        """The integers of an input that is known, or None where it is absent."""
        if self.get(position) is None:
            return None
        return [int(v) for v in self.known(position).reshape(-1)]

    # Attributes.

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self._attributes

    def _value(self, name: str, kind: str, default: Any) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        from onnx import AttributeProto

        found = AttributeProto.AttributeType.Name(attribute.type)
        if found != kind:
            raise self.invalid(f"has an attribute {name} of type {found}, expected {kind}")
        field = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g"}.get(kind)
        return getattr(attribute, field or kind.lower())

    def _required(self, name: str, value: Any) -> Any:
        if value is None:
            raise self.invalid(f"lacks the attribute {name}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute. Raises UopcError if it is missing and has no default."""
        return int(self._required(name, self._value(name, "INT", default)))

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that says yes or no."""
        return bool(self._value(name, "INT", default))

    def real(self, name: str, default: float | None = None) -> float:
        """A float attribute."""
        return float(self._required(name, self._value(name, "FLOAT", default)))

    def word(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value = self._value(name, "STRING", None)
        return default if value is None else value.decode("utf-8", "replace")

    def integers(self, name: str) -> list[int] | None:
        """A list of integers, or None."""
        value = self._value(name, "INTS", None)
        return None if value is None else [int(v) for v in value]

    def reals(self, name: str) -> list[float] | None:
        """A list of floats, or None."""
        value = self._value(name, "FLOATS", None)
        return None if value is None else [float(v) for v in value]

    def words_list(self, name: str) -> list[str] | None:
        """A list of strings, or None."""
        value = self._value(name, "STRINGS", None)
        return None if value is None else [v.decode("utf-8", "replace") for v in value]

    def array(self, name: str) -> Array | None:
        """The elements of a tensor attribute, or None."""
        value = self._value(name, "TENSOR", None)
        return None if value is None else array_of_tensor(value, self.importer.model.folder)

    def graph(self, name: str) -> Any:
        """A graph attribute."""
        return self._required(name, self._value(name, "GRAPH", None))

    # What rules have in common.

    def axis(self, default: int | None, rank: int, name: str = "axis") -> int:
        """The axis that an attribute names, counted from 0."""
        return one_axis(self.integer(name, default), rank)

    @property
    def outputs(self) -> list[bool]:
        """Which outputs are used."""
        return [bool(name) for name in self.node.output]

    def wants(self, position: int) -> bool:
        """Whether an output is used."""
        return position < len(self.node.output) and bool(self.node.output[position])

    def unsupported(self, reason: str, hint: str = "") -> UnsupportedError:
        """A node that has no conversion, and why."""
        return UnsupportedError("unsupported-op", f"{self.words}: {printable(reason)}", hint=hint)

    def invalid(self, reason: str) -> UopcError:
        """A node that ONNX does not allow."""
        return UopcError("bad-onnx-model", f"{self.words} {printable(reason)}")


def node_words(node: Any) -> str:
    """The node `name` (Op), or by its first output where it has no name."""
    called = node.name or (f"-> {node.output[0]}" if node.output else "?")
    domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
    return f"node '{printable(called)}' ({printable(domain + node.op_type)})"
