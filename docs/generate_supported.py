"""Writes docs/supported.md: which ops there are, on which element types, asked of the code itself.

    python docs/generate_supported.py            write the page
    python docs/generate_supported.py --check    status 1 if it is not what would be written

An op of utensor is built and verified on each element type; an op of StableHLO or CHLO stands in a
program that is converted; ONNX's ops are those of the onnx package beside the table of rules.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "supported.md"
NOTE = "<!-- Written by docs/generate_supported.py. -->"

REFUSED = {
    "stablehlo": {
        "there is one device": (
            "all_gather all_reduce all_to_all collective_broadcast collective_permute "
            "reduce_scatter partition_id replica_id cross-replica-sum"
        ),
        "a program is a function of its inputs: no tokens, streams or side effects": (
            "after_all create_token infeed outfeed recv send"
        ),
        "there are no complex numbers": "complex real imag fft",
        "there are no quantized element types": "uniform_dequantize uniform_quantize",
        "there are no tuples": "tuple get_tuple_element",
        "its numbers are not fixed by the specification": "rng",
        "shapes are known when a program is compiled": (
            "set_dimension_size dynamic_conv dynamic_gather"
        ),
    },
    "chlo": {
        "there are no complex numbers": "conj broadcast_complex",
        "it is a step of JAX's own lowering": "asin_acos_kernel",
    },
}
"""Why ops that are read are not converted."""


def page() -> str:
    """The text of docs/supported.md."""
    parts = [
        "# What is supported", NOTE, "",
        "Element types: `f64 f32 f16 bf16 i1 i8 i16 i32 i64 ui8 ui16 ui32 ui64`. In the tables",
        "*floats* are the first four, *signed* `i8` to `i64`, *unsigned* `ui8` to `ui64`. There",
        "are no complex numbers, strings, quantized types, or floats and integers below 8 bits.",
        "What is read and not in a table is refused with an error that names the op and its place.",
        "", "## utensor", "",
        "All of it runs in the interpreters, as C and as CUDA. What each op computes at the edges:",
        "[numerics](numerics.md).", "",
        *utensor_table(), "", "## StableHLO and CHLO", "",
        "`uopc.from_stablehlo`, `uopc.from_jax`, and the pass `convert-stablehlo-to-utensor`.",
        "Elementwise ops, by the element type of their last operand:", "",
        *hlo_table(), "", *other_hlo(), "", "## ONNX", "",
        *onnx_part(), "", *foreign_part(),
    ]  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


# Element types in words.


def type_words(names: Iterable[str]) -> str:
    """Element types, kinds that are complete as one word."""
    from uopc.dialects.element_types import ELEMENT_TYPES

    found = set(names)
    words: list[str] = []
    for kind, word in (("float", "floats"), ("signed", "signed"), ("unsigned", "unsigned")):
        members = [t.name for t in ELEMENT_TYPES if t.kind == kind]
        present = [name for name in members if name in found]
        words += [word] if present == members else [f"`{name}`" for name in present]
    if "i1" in found:
        words.append("`i1`")
    return ", ".join(words) if len(found) < len(ELEMENT_TYPES) else "all"


def all_types() -> list[str]:
    """The names of the element types."""
    from uopc.dialects.element_types import ELEMENT_TYPES

    return [t.name for t in ELEMENT_TYPES]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def grouped(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Rows (name, types) with the names of equal types in one row."""
    names: dict[str, list[str]] = {}
    for name, types in rows:
        names.setdefault(types, []).append(name)
    return ((" ".join(found), types or "none") for types, found in names.items())


# utensor: built and verified.


def utensor_table() -> Iterator[str]:
    """Every op and kind, by the element types that its verifier admits."""
    yield from table(("ops", "element types"), grouped(_utensor_rows()))


def _utensor_rows() -> Iterator[tuple[str, str]]:
    from uopc.dialects import tensor as ut
    from uopc.dialects import tensor_elementwise as ew
    from uopc.frontend.node_types import value_type

    shape = (2, 3)

    def probe(op: str, attributes: Callable[[str], Any], operands: Sequence[str | None]) -> str:
        """The types for which an op verifies; an operand of no type has the probed one."""
        return type_words(
            name
            for name in all_types()
            if _verifies(op, attributes(name), [value_type(shape, t or name) for t in operands])
        )

    for op in (*ew.UNARY_OPS, *ew.BINARY_OPS):
        name = op.name.removeprefix("utensor.")
        count = 1 if op in ew.UNARY_OPS else 2
        yield f"`{name}`", probe(name, lambda _: (), [None] * count)
    yield "`where`", probe("where", lambda _: (), ["i1", None, None])
    yield "`cast`", probe("cast", lambda _: ("f32",), [None])
    for kind in ut.REDUCE_KINDS:
        yield f"`reduce {kind}`", probe("reduce", lambda _, k=kind: (k, (0,)), [None])
    for kind in ("max", "min"):
        yield f"`argreduce {kind}`", probe("argreduce", lambda _, k=kind: (k, 0, "i32"), [None])
    moves: dict[str, tuple[Any, ...]] = {
        "reshape": ((3, 2),), "expand": ((2, 3),), "permute": ((1, 0),), "flip": ((0,),),
        "shrink": ((0, 0), (1, 1), (1, 1)), "pad": ((1, 1), (1, 1), "0"),
    }  # fmt: skip
    for move, attributes in moves.items():
        yield f"`{move}`", probe(move, lambda _, a=attributes: a, [None])
    yield "`constant`", probe("constant", lambda name: ("0", shape, name), [])
    yield "`iota`", probe("iota", lambda name: (0, shape, name), [])
    yield "`gather`", probe("gather", lambda _: (0,), [None, "i64"])
    for kind in ut.SCATTER_KINDS:
        yield (
            f"`scatter {kind}`",
            type_words(
                name
                for name in all_types()
                if _verifies(
                    "scatter",
                    (kind, 0),
                    [
                        value_type(shape, name),
                        value_type((2,), "i64"),
                        value_type(shape, name),
                    ],
                )
            ),
        )


def _verifies(op: str, attributes: tuple[Any, ...], types: Sequence[Any]) -> bool:
    from xdsl.utils.exceptions import VerifyException

    from uopc.frontend.node_types import infer_kind

    try:
        infer_kind(op, attributes, types)
    except VerifyException:
        return False
    return True


# StableHLO and CHLO: converted.


def hlo_table() -> Iterator[str]:
    """The elementwise ops, by the element types on which a program of theirs is converted."""
    rows = [(f"`{name}`", type_words(types)) for name, types in _hlo_probes().items()]
    yield from table(("ops", "element types"), grouped(rows))


def _hlo_probes() -> dict[str, list[str]]:
    from uopc.passes.stablehlo_conversion.elementwise import ELEMENTWISE_RULES
    from uopc.passes.stablehlo_conversion.special import SPECIAL_RULES

    return {
        name: [t for t in all_types() if _converts(cls, t)]
        for name, cls in _hlo_ops().items()
        if name in {**ELEMENTWISE_RULES, **SPECIAL_RULES} and cls.ARITY and not _needs_more(cls)
    }


def _needs_more(cls: Any) -> bool:
    """Whether an op has properties that the probe does not give it."""
    return not {"result_accuracy", "comparison_direction", "compare_type"} >= cls.PROPERTIES


def _hlo_ops() -> dict[str, Any]:
    from uopc.dialects.stablehlo import CHLO, StableHLO

    return {op.name: op for dialect in (StableHLO, CHLO) for op in dialect.operations}


def _converts(cls: Any, element: str) -> bool:
    """Whether some op of these operands, with a result of their type or truth values, converts."""
    return any(_converts_to(cls, element, result) for result in (element, "i1", "f32"))


def _converts_to(cls: Any, element: str, result: str) -> bool:
    from xdsl.dialects.builtin import FunctionType, ModuleOp
    from xdsl.dialects.func import FuncOp, ReturnOp
    from xdsl.ir import Block, Region
    from xdsl.utils.exceptions import VerifyException

    from uopc.dialects.element_types import element_type_named
    from uopc.dialects.errors import UopcError
    from uopc.dialects.registry import make_context
    from uopc.dialects.sizes import tensor_type
    from uopc.dialects.stablehlo_attributes import ComparisonDirectionAttr
    from uopc.passes.convert_stablehlo_to_utensor import ConvertStablehloToUtensorPass

    def shaped(name: str) -> Any:
        return tensor_type(element_type_named(name).attribute, (2,))

    types = [shaped(element)] * cls.ARITY
    if cls.name.endswith("select"):
        types[0] = shaped("i1")
    block = Block(arg_types=types)
    properties: dict[str, Any] = {}
    if cls.name.endswith("compare"):
        from xdsl.dialects.builtin import StringAttr

        properties["comparison_direction"] = ComparisonDirectionAttr(StringAttr("LT"))
    op = cls.create(operands=block.args, result_types=[shaped(result)], properties=properties)
    block.add_ops([op, ReturnOp(op.results[0])])
    function = FuncOp("main", FunctionType.from_lists(types, [shaped(result)]), Region(block))
    try:
        ConvertStablehloToUtensorPass().apply(make_context(), ModuleOp([function]))
    except (UopcError, VerifyException):
        return False
    return True


def other_hlo() -> Iterator[str]:
    """What else is converted, and what is not."""
    from uopc.passes.convert_stablehlo_to_utensor import RULES

    probed = _hlo_probes()
    for dialect in ("stablehlo", "chlo"):
        names = [n for n in _hlo_ops() if n.startswith(f"{dialect}.") and n != "stablehlo.return"]
        others = [f"`{n.partition('.')[2]}`" for n in names if n in RULES and n not in probed]
        yield f"Of {dialect} also, on every element type that the op allows: {', '.join(others)}."
        yield ""
        absent = {n.partition(".")[2] for n in names if n not in RULES}
        for reason, words in REFUSED[dialect].items():
            here = [f"`{word}`" for word in words.split() if word in absent]
            absent -= set(words.split())
            if here:
                yield f"* not converted, since {reason}: {', '.join(here)}"
        if absent:
            yield f"* not converted yet: {', '.join(f'`{n}`' for n in sorted(absent))}"
        yield ""


# ONNX.


def onnx_part() -> Iterator[str]:
    """Every op of ONNX's own domain: from which opset on, and on which element types."""
    import onnx

    from uopc.frontend.onnx_import.importer import REFUSED as REASONS
    from uopc.frontend.onnx_import.registry import RULES

    latest: dict[str, Any] = {}
    for schema in onnx.defs.get_all_schemas():
        if not schema.domain:
            latest[schema.name] = schema
    last = onnx.defs.onnx_opset_version()
    yield (
        f"`uopc.from_onnx`, `uopc-run model.onnx` and `uopc-opt model.onnx`, opsets up to {last} "
        f"(onnx {onnx.__version__}). An op is there for models of the opsets from the one given on,"
    )
    yield (
        "for all forms that it had since. Where no rule is named, the op is run by ONNX's own "
        "definition of it by other ops. Functions of the model are written out, as are `If`, "
        "`Loop` and `Scan`, whose conditions and step counts must be known without the inputs, "
        "or are told by a call."
    )
    yield ""
    rows: list[tuple[str, str, str]] = []
    for name, schema in sorted(latest.items()):
        types = type_words(_onnx_types(schema))
        if name in RULES:
            first = max(min(RULES[name]), min(_versions(name)))
            rows.append((f"`{name}`", str(first), types))
        elif name not in REASONS and _is_defined(schema):
            rows.append((f"`{name}`", f"{_first_function(name)}, by its definition", types))
    yield from table(("op", "opset from", "element types"), rows)
    yield ""
    reasons: dict[str, list[str]] = {}
    for name in sorted(latest):
        if name in REASONS:
            reasons.setdefault(REASONS[name], []).append(f"`{name}`")
        elif f"`{name}`" not in {row[0] for row in rows}:
            reasons.setdefault("", []).append(f"`{name}`")
    for reason, names in sorted(reasons.items(), reverse=True):
        yield (
            f"* refused, since {reason}: {', '.join(names)}"
            if reason
            else (f"* not there yet: {', '.join(names)}")
        )


def _onnx_types(schema: Any) -> set[str]:
    """Our element types among those that ONNX gives the first input and the first result."""
    from uopc.frontend.onnx_import.arrays import ELEMENTS

    firsts = [*schema.inputs[:1], *schema.outputs[:1]]
    types = {t for each in firsts for t in each.types}
    words = {t.removeprefix("tensor(").removesuffix(")").upper() for t in types}
    return {ours for word, ours in ELEMENTS.items() if word in words}


def _versions(name: str) -> list[int]:
    """The opsets that changed an op."""
    import onnx

    history = onnx.defs.get_all_schemas_with_history()
    return [s.since_version for s in history if s.name == name and not s.domain]


def _first_function(name: str) -> int:
    """The first opset that defines an op by others."""
    import onnx

    return min(
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == name and not schema.domain and _is_defined(schema)
    )


def _is_defined(schema: Any) -> bool:
    """Whether ONNX defines an op by others."""
    return bool(schema.has_function or schema.has_context_dependent_function)


# Others, where their conversion is there.


def foreign_part() -> Iterator[str]:
    """linalg's ops, from the tables of their conversion."""
    from uopc.passes.convert_linalg_to_utensor import converted_ops

    yield "## linalg on tensors"
    yield ""
    yield "Ops that `convert-linalg-to-utensor` takes, on tensors of known sizes; a"
    yield "`linalg.generic` whose maps are projected permutations, or sums of two loops as a window"
    yield "has, with a body of the arith and math ops below or a known reduction:"
    yield ""
    yield ", ".join(f"`{name}`" for name in converted_ops()) + "."


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page()
    if options.check:
        return int(not PAGE.exists() or PAGE.read_text("utf-8") != text)
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
