"""Writes docs/reference/ from the code: dialects, passes, targets, command lines.

    python docs/generate_reference.py            write the files
    python docs/generate_reference.py --check    status 1 if a file is not what would be written

What the pages say is what the classes' docstrings and definitions say: mend it there.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
REFERENCE = HERE / "reference"
NOTE = "<!-- Written by docs/generate_reference.py; change the code's docstrings instead. -->"

KIND_WORDS = {"float": "floats", "signed": "signed", "unsigned": "unsigned", "bool": "i1"}
ATTRIBUTE_WORDS = {
    "AffineMapAttr": "affine map",
    "AnyAttr": "any",
    "ArrayAttr": "list",
    "ArrayOfConstraint": "list",
    "DenseArrayBase": "integers",
    "DenseIntOrFPElementsAttr": "dense elements",
    "FloatAttr": "float",
    "IndexType": "index",
    "IntegerAttr": "integer",
    "IntegerType": "integer",
    "MemRefType": "memref",
    "SizesAttr": "sizes",
    "StringAttr": "string",
    "SymbolRefAttr": "symbol",
    "TensorType": "tensor",
    "UnitAttr": "flag",
}


def pages() -> dict[str, str]:
    """The text of every page by its file's name."""
    from uopc.dialects.registry import DIALECTS

    written = {f"{name}.md": dialect_page(name, path) for name, path in DIALECTS.items()}
    written["passes.md"] = passes_page()
    written["tools.md"] = tools_page()
    written["files.md"] = files_page()
    written["tensor.md"] = tensor_page()
    written["nn.md"] = nn_page()
    written["uopc.md"] = python_page()
    written["README.md"] = index_page(sorted(written))
    return {name: text.rstrip() + "\n" for name, text in written.items()}


def index_page(names: Sequence[str]) -> str:
    """What there is, in one list."""
    titles = {
        "passes.md": "passes, pipelines and targets, with their options",
        "files.md": "every module, with the first words of its docstring",
        "uopc.md": "what Python code calls: compile, run, jit and the rest",
        "nn.md": "layers, optimizers, schedules and checkpoints",
        "tensor.md": "every method of Tensor, and the table of result types",
        "tools.md": "command lines of uopc-opt and uopc-run",
    }
    lines = ["# Reference", NOTE, ""]
    lines += [f"* [{n[:-3]}]({n}): {titles.get(n, 'the dialect ' + n[:-3])}" for n in names]
    return "\n".join(
        [*lines, "", "What each op computes at the edges: [numerics](../numerics.md)."]
    )


# Tensor.


def tensor_page() -> str:
    """The methods of Tensor by the file they stand in, and the types of results."""
    from uopc.frontend import methods, promotion
    from uopc.frontend.tensor import Tensor

    groups: dict[str, dict[str, list[str]]] = {}
    functions: dict[str, Any] = {}
    properties: set[str] = set()
    for name in sorted(dir(Tensor)):
        if name.startswith("_"):
            continue
        function: Any = inspect.getattr_static(Tensor, name)
        is_property = isinstance(function, property)
        function = getattr(function, "fget", None) or getattr(function, "__func__", function)
        if not inspect.isfunction(inspect.unwrap(function)):
            continue
        home = f"{function.__module__}.{function.__qualname__}"
        functions[home] = inspect.unwrap(function)
        if is_property:
            properties.add(home)
        groups.setdefault(function.__module__, {}).setdefault(home, []).append(name)
    lines = ["# Tensor", NOTE, "", TENSOR_NOTE, ""]
    modules = ["uopc.frontend.tensor", *_themes(methods)]
    for module in [m for m in modules if m in groups]:
        title = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n\n")[0]
        lines += [f"## {module.rpartition('.')[2]}", "", " ".join(title.split()), ""]
        lines += ["| methods | does |", "|---|---|"]
        for home, names in sorted(groups[module].items(), key=lambda item: item[1]):
            shown, *others = sorted(names, key=lambda n: n != home.rpartition(".")[2])
            takes = "" if home in properties else parameters(functions[home])
            words = ", ".join([f"`{shown}{takes}`", *map(_code, others)])
            lines.append(f"| {words} | {one_line(functions[home].__doc__)} |")
        lines.append("")
    types = [row[k] for k, row in enumerate(promotion.type_table())]
    lines += ["## Types of results", "", prose(inspect.getdoc(promotion) or ""), ""]
    lines += ["Every pair:", "", "| | " + " | ".join(types) + " |", "|---" * (len(types) + 1) + "|"]
    for type_, row in zip(types, promotion.type_table(), strict=True):
        lines.append(f"| {type_} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def nn_page() -> str:
    """Layers, optimizers and the rest of uopc.nn, by the file they stand in."""
    from uopc.frontend import nn

    groups: dict[str, list[str]] = {}
    for name in nn.__all__:
        value = getattr(nn, name)
        if not inspect.ismodule(value):
            groups.setdefault(value.__module__, []).append(name)
    lines = ["# uopc.nn", NOTE, "", prose(inspect.getdoc(nn) or ""), ""]
    for module, names in sorted(groups.items()):
        title = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n\n")[0]
        lines += [f"## {module.rpartition('.')[2]}", "", " ".join(title.split()), ""]
        for name in names:
            value = getattr(nn, name)
            made: Any = value.__init__ if inspect.isclass(value) else value
            lines += [f"### {name}{parameters(made)}", "", prose(inspect.getdoc(value) or ""), ""]
    return "\n".join(lines)


def python_page() -> str:
    """The functions and classes of the package itself; Tensor and nn have pages of their own."""
    import uopc

    lines = ["# uopc", NOTE, "", prose(inspect.getdoc(uopc) or ""), ""]
    for name in sorted(uopc.__all__, key=str.lower):
        value = getattr(uopc, name)
        if name == "Tensor" or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        made: Any = value.__init__ if inspect.isclass(value) else value
        text = prose(inspect.getdoc(value) or "").replace(OPTIONS, compile_options())
        lines += [f"## {name}{parameters(made)}", "", text, ""]
    return "\n".join(lines)


OPTIONS = "See CompileRequest for the options."
"""What stands in a docstring where the page has the table of the options."""


def compile_options() -> str:
    """The options of uopc.compile, with the docstrings of the class that holds them."""
    from uopc.frontend.compile import CompileRequest

    documented = field_docs(CompileRequest)
    rows = [
        f"| `{each.name}` | `{each.default!r}` | {documented[each.name]} |"
        for each in dataclasses.fields(CompileRequest)
    ]
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows])


def parameters(function: Any) -> str:
    """`(axis=None, keepdim=False)`: what a function takes, without self; nothing of a property."""
    given = list(inspect.signature(function).parameters.values())
    if given and given[0].name in ("self", "cls", "x"):
        given = given[1:]
    empty = inspect.Parameter.empty
    bare = [each.replace(annotation=empty) for each in given]
    text = str(inspect.Signature(bare))
    return re.sub(r"<[^<>]*>", "…", text).replace("|", "\\|")


def _code(name: str) -> str:
    return f"`{name}`"


TENSOR_NOTE = """Names are numpy's, torch's or tinygrad's; those of one method stand together.
`axis` may be written `dim` or `dims`, as torch does, and `keepdim` as numpy's `keepdims`.

Left out are decompositions (qr, svd), complex numbers, devices and sharding, and what other
libraries do in place under names of its own (`add_`): elements never change, and `x += y` gives
x another value."""


def _themes(methods: Any) -> list[str]:
    """The modules whose functions are methods, in the order of the class's text."""
    found = re.findall(r"= (?:staticmethod\(|property\()?(\w+)\.\w+", inspect.getsource(methods))
    return list(dict.fromkeys(f"uopc.frontend.{name}" for name in found))


# Docstrings.


def prose(text: str) -> str:
    """Clean docstring text as Markdown: paragraphs stay, what is indented becomes code."""
    lines = text.rstrip().split("\n")
    out: list[str] = []
    code: list[str] = []
    for line in lines:
        if re.match(r" {2,}(?!\* |  *[a-z].*:$)", line) or (code and not line.strip()):
            code.append(line)
            continue
        _close_code(out, code)
        out.append(line)
    _close_code(out, code)
    return "\n".join(out)


def _close_code(out: list[str], code: list[str]) -> None:
    if code:
        blank = not code[-1].strip()
        text = textwrap.dedent("\n".join(code)).strip("\n")
        out.extend([*([""] if out and out[-1].strip() else []), "```", text, "```"])
        out.extend([""] if blank else [])
        code.clear()


def one_line(docstring: str | None) -> str:
    """A docstring's first paragraph on one line, safe in a table's cell."""
    first = inspect.cleandoc(docstring or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


def field_docs(definition: type) -> dict[str, str]:
    """The docstrings under the fields of a class."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(definition))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(tree.body, tree.body[1:], strict=False):
        target = None
        if isinstance(before, ast.AnnAssign):
            target = before.target
        elif isinstance(before, ast.Assign):
            target = before.targets[0]
        if (
            isinstance(target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            found[target.id] = one_line(after.value.value)
    return found


# Dialects.


def dialect_page(name: str, path: str) -> str:
    """One dialect: its grammar, then its ops."""
    from uopc.dialects.registry import load_object

    dialect = load_object(path)
    module = importlib.import_module(path.partition(":")[0])
    _, _, body = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    lines = [f"# {name}", NOTE, "", one_line(module.__doc__), "", prose(body), ""]
    simple = [op for op in dialect.operations if hasattr(op, "KINDS") and "`" not in op.__doc__]
    if simple:
        lines += ["## Elementwise ops", "", *elementwise_table(simple), "", "## Other ops", ""]
    else:
        lines += ["## Ops", ""]
    for op in dialect.operations:
        if op not in simple:
            lines += [*op_section(op), ""]
    for attribute in dialect.attributes:
        lines += [
            f"## Attribute {attribute.name}",
            "",
            prose(inspect.cleandoc(attribute.__doc__ or "")),
            "",
        ]
    return "\n".join(lines)


def elementwise_table(ops: Sequence[Any]) -> Iterator[str]:
    """A row for each op that has nothing but operands of one type."""
    yield "Operands and result have one type, but comparisons give `i1`. Floats are f64, f32, f16"
    yield "and bf16; integers are i8 to i64, signed, and ui8 to ui64, unsigned."
    yield ""
    yield "| op | element types | result |"
    yield "|---|---|---|"
    for op in ops:
        arity = len(op.get_irdl_definition().operands)
        operands = ", ".join(("%a", "%b")[:arity])
        types = ", ".join(KIND_WORDS[kind] for kind in op.KINDS)
        types = types.replace("signed, unsigned", "integers")
        types = "all" if len(op.KINDS) == len(KIND_WORDS) else types
        yield f"| `{op.name} {operands}` | {types} | {one_line(op.__doc__)} |"


def op_section(op: Any) -> Iterator[str]:
    """An op: what it does, and what it is made of."""
    definition = op.get_irdl_definition()
    docs = {name: text for base in reversed(op.__mro__[:-1]) for name, text in _docs_of(base)}
    yield f"### {op.name}"
    yield ""
    yield prose(inspect.cleandoc(op.__doc__ or ""))
    yield ""
    rows: list[tuple[str, str, str, str]] = []
    hidden = {"operandSegmentSizes", "resultSegmentSizes"}
    parts: list[tuple[str, Iterable[tuple[str, Any]]]] = [
        ("operand", definition.operands),
        ("property", definition.properties.items()),
        ("region", definition.regions),
        ("result", definition.results),
    ]
    for part, entries in parts:
        for name, entry in entries:
            if name not in hidden:
                words = "" if part == "region" else constraint_words(entry.constr)
                many = _multiplicity(type(entry).__name__)
                rows.append((part, name.rstrip("_"), words + many, docs.get(name, "")))
    if rows:
        yield "| part | name | type | |"
        yield "|---|---|---|---|"
        yield from (f"| {part} | `{name}` | {words} | {doc} |" for part, name, words, doc in rows)
    traits = sorted(type(trait).__name__ for trait in definition.traits.traits)
    if traits:
        yield ""
        yield "Traits: " + ", ".join(traits)


def _docs_of(base: type) -> Iterable[tuple[str, str]]:
    if not base.__module__.startswith("uopc."):
        return ()
    try:
        return field_docs(base).items()
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()


def _multiplicity(kind: str) -> str:
    if kind.startswith("Var"):
        return ", any number"
    return ", optional" if kind.startswith("Opt") else ""


def constraint_words(constraint: Any) -> str:
    """What a constraint of an op's definition asks for, in a word or two."""
    for field in ("constraint", "constr"):
        if hasattr(constraint, field):
            return constraint_words(getattr(constraint, field))
    for field in ("attr_constrs", "types"):
        if hasattr(constraint, field):
            return " or ".join(sorted({constraint_words(c) for c in getattr(constraint, field)}))
    for field in ("attr", "base_attr"):
        if hasattr(constraint, field):
            value = getattr(constraint, field)
            kind = value if isinstance(value, type) else type(value)
            return ATTRIBUTE_WORDS.get(kind.__name__, kind.__name__)
    name = type(constraint).__name__
    return ATTRIBUTE_WORDS.get(name, name)


# Passes and targets.


def passes_page() -> str:
    """Pipelines, passes, targets."""
    from uopc.lowering.registry import TARGETS
    from uopc.passes.pipelines import PIPELINES
    from uopc.passes.registry import PASSES

    lines = ["# Passes", NOTE, "", "## Pipelines", ""]
    for name, passes in PIPELINES.items():
        links = ", ".join(f"[{each}](#{each.partition('{')[0]})" for each in passes)
        lines += [f"**{name}**: {links}", ""]
    lines += ["## Passes", ""]
    order = list(
        dict.fromkeys(each.partition("{")[0] for passes in PIPELINES.values() for each in passes)
    )
    for name in [*order, *sorted(set(PASSES) - set(order))]:
        lines += [*pass_section(name, PASSES[name]), ""]
    lines += ["## Targets", ""]
    for name, path in TARGETS.items():
        lines += [*pass_section(name, path, "-t "), ""]
    return "\n".join(lines)


def pass_section(name: str, path: str, prefix: str = "") -> Iterator[str]:
    """A pass or target: its module's docstring, its options, the level it leaves."""
    from uopc.dialects.registry import load_object
    from uopc.passes.options import options_of

    spec = load_object(path)
    module = importlib.import_module(path.partition(":")[0])
    text = prose(inspect.cleandoc(module.__doc__ or "")).removeprefix(f"{name}: ")
    yield f"### {prefix}{name}"
    yield ""
    yield text[:1].upper() + text[1:]
    options = options_of(spec)
    if options:
        docs = field_docs(spec)
        yield ""
        yield "| option | type | default | |"
        yield "|---|---|---|---|"
        for each in options:
            kind = each.type_text.replace("|", ", ")
            doc = docs.get(each.name.replace("-", "_"), "")
            yield f"| `{each.name}` | {kind} | {each.default or 'required'} | {doc} |"
    raises = re.search(r"Raises UopcError.*", inspect.cleandoc(spec.__doc__ or ""), re.DOTALL)
    if raises:
        linked = re.sub(r"\[([a-z-]+)\]", r"[\1](../errors.md#\1)", " ".join(raises[0].split()))
        yield ""
        yield linked
    if level := getattr(spec, "level_after", ""):
        yield ""
        yield f"Afterwards the module is at level `{level}`."


# Command lines.


def tools_page() -> str:
    """Every option of the two tools."""
    import contextlib
    import io

    from uopc.tools import opt_arguments
    from uopc.tools.opt import UopcOptMain
    from uopc.tools.run import build_parser

    captured: list[argparse.ArgumentParser] = []

    class Capturing(UopcOptMain):
        def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
            super().register_all_arguments(arg_parser)
            captured.append(arg_parser)

    with contextlib.redirect_stdout(io.StringIO()):
        Capturing(args=[])
    lines = ["# Command lines", NOTE, "", "## uopc-opt", ""]
    lines += [prose(opt_arguments.DESCRIPTION), "", *option_table(captured[0]), ""]
    lines += [opt_arguments.EPILOG, "## uopc-run", ""]
    run = build_parser()
    lines += [run.description or "", "", *option_table(run)]
    return "\n".join(lines)


def option_table(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A row for each option of a parser."""
    yield "| option | |"
    yield "|---|---|"
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] -- argparse has no list of them
        if isinstance(action, argparse._HelpAction):  # pyright: ignore[reportPrivateUsage]
            continue
        names = ", ".join(f"`{flag}`" for flag in action.option_strings) or f"`{action.dest}`"
        value = action.metavar or (action.dest.upper() if action.nargs is None else "")
        if action.choices is not None:
            value = "one of " + ", ".join(map(str, action.choices))
        value = f" {value}" if action.option_strings and value else ""
        # What is available depends on what is installed.
        words = re.sub(r"\.? Available \w+ are:.*", "", " ".join((action.help or "").split()))
        yield f"| {names}{value} | {words.replace('|', ', ')} |"


# Files.


def files_page() -> str:
    """Every module with its docstring's first paragraph."""
    lines = ["# Files", NOTE, ""]
    for folder in sorted(link for link in (ROOT / "src" / "uopc").iterdir() if link.is_symlink()):
        paths = sorted(path.relative_to(ROOT) for path in (ROOT / folder.name).rglob("*.py"))
        lines += [f"## {folder.name}/", "", "| file | |", "|---|---|"]
        for path in paths:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            words = one_line(ast.get_docstring(tree))
            words = words.removeprefix(f"{path.stem.replace('_', '-')}: ")
            lines.append(f"| `{path.relative_to(folder.name).as_posix()}` | {words} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write or check the pages; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    options = parser.parse_args()
    written = pages()
    if options.check:
        stale = [n for n, text in written.items() if _current(REFERENCE / n) != text]
        for name in stale:
            print(f"docs/reference/{name} is not what docs/generate_reference.py writes")
        return 1 if stale else 0
    REFERENCE.mkdir(exist_ok=True)
    for name, text in written.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


def _current(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
