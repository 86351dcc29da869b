"""All that must hold of a module between two passes, checked in one call.

In this order, the first failure is told: links between ops and blocks, dominance
(dialects/dominance.py), symbols, each op's own verifier, and the level (dialects/legality.py).
No recursion, so deep nesting is no trouble; about 30 us an op, most of it xDSL's verifier.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation, Region
from xdsl.traits import NoTerminator, SymbolTable
from xdsl.utils.exceptions import DiagnosticException

from uopc.dialects.dominance import check_dominance
from uopc.dialects.errors import UopcError
from uopc.dialects.legality import LEVELS, why_illegal
from uopc.dialects.locations import clip_message, location_of, nearest_location
from uopc.dialects.op_text import op_name, op_text
from uopc.dialects.source_text import printable

SYMBOL_USERS = frozenset({"func.call", "func.constant", "memref.get_global", "ukernel.launch"})
"""Ops whose symbol references must name something. Elsewhere a symbol is just data."""


def verify_module(module: Operation, *, level: str = "") -> None:
    """Check a module, and that its ops are legal at `level` (a key of LEVELS) if one is given.

    Raises UopcError [verify-failed], or [illegal-op] for the level, with the op's place.
    """
    check_links(module)
    check_dominance(module)
    check_symbols(module)
    for operation in walk_operations(module):
        _verify_operation(operation)
    if level:
        check_level(module, level)


def walk_operations(root: Operation) -> Iterator[Operation]:
    """The op and all ops inside, each before the ops in its regions; without recursion."""
    pending: list[Iterator[Operation]] = [iter((root,))]
    while pending:
        operation = next(pending[-1], None)
        if operation is None:
            pending.pop()
            continue
        yield operation
        for region in reversed(operation.regions):
            pending.extend(iter(block.ops) for block in reversed(list(region.blocks)))


def check_links(root: Operation) -> None:
    """Every op, block and region knows its parent. Raises UopcError [verify-failed].

    A pass that moves ops by hand can break this, and all later errors would mislead.
    """
    for operation in walk_operations(root):
        for region in operation.regions:
            if region.parent is not operation:
                raise _failure(operation, "holds a region whose parent is another op")
            _check_region_links(operation, region)


def _check_region_links(operation: Operation, region: Region) -> None:
    for block in region.blocks:
        if block.parent is not region:
            raise _failure(operation, "holds a block whose parent is another region")
        for inner in block.ops:
            if inner.parent is not block:
                raise _failure(inner, "stands in a block that is not its parent")
        if block.first_op is None and not operation.has_trait(NoTerminator):
            raise _failure(operation, "has an empty block where a terminator is expected")


def check_symbols(root: Operation) -> None:
    """No symbol is defined twice in a table, and calls name something that there is.

    A reference is looked up in the symbol tables around the op, from the innermost outwards.
    Raises UopcError [verify-failed]. Linear time: each table is read once.
    """
    tables: dict[Operation, dict[str, Operation]] = {}
    for operation in walk_operations(root):
        if operation.has_trait(SymbolTable, value_if_unregistered=False):
            tables[operation] = _read_table(operation)
        if operation.name in SYMBOL_USERS:
            attributes = (*operation.properties.values(), *operation.attributes.values())
            for attribute in attributes:
                if isinstance(attribute, SymbolRefAttr):
                    _resolve_symbol(operation, attribute, tables)


def _read_table(owner: Operation) -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    for region in owner.regions:
        for block in region.blocks:
            for operation in block.ops:
                name = operation.get_attr_or_prop("sym_name")
                if not isinstance(name, StringAttr):
                    continue
                first = table.setdefault(name.data, operation)
                if first is not operation:
                    place = location_of(first)
                    raise _failure(
                        operation,
                        f"defines symbol @{printable(name.data)} a second time; the first is "
                        f"'{op_name(first)}'" + (f" at {place}" if place else ""),
                        hint="give one of them another name",
                    )
    return table


def _resolve_symbol(
    operation: Operation, reference: SymbolRefAttr, tables: dict[Operation, dict[str, Operation]]
) -> None:
    names: list[str] = []
    scope: Operation | None = operation
    while scope is not None:
        table = tables.get(scope)
        if table is not None:
            found = table.get(reference.root_reference.data)
            if found is not None:
                _resolve_nested(operation, reference, found, tables)
                return
            names.extend(table)
        scope = scope.parent_op()
    wanted = reference.root_reference.data
    near = difflib.get_close_matches(wanted, names, 3)
    raise _failure(
        operation,
        f"refers to symbol @{printable(wanted)}, which is not defined",
        hint="did you mean " + " or ".join(f"@{printable(name)}" for name in near) + "?"
        if near
        else "define it in this module, or declare it: func.func private @name(...)",
    )


def _resolve_nested(
    operation: Operation,
    reference: SymbolRefAttr,
    found: Operation,
    tables: dict[Operation, dict[str, Operation]],
) -> None:
    """Follow @outer::@inner."""
    for part in reference.nested_references:
        table = tables.get(found)
        if table is None:
            # A table that comes later in the walk has not been read yet.
            table = _read_table(found) if found.regions else {}
        inner = table.get(part.data)
        if inner is None:
            raise _failure(
                operation,
                f"refers to symbol @{printable(part.data)}, which '{op_name(found)}' "
                f"@{printable(reference.root_reference.data)} does not define",
            )
        found = inner


def check_level(root: Operation, level: str) -> None:
    """Every op inside `root` is legal at the level. Raises UopcError [illegal-op].

    Raises KeyError for a level that dialects/legality.py does not have.
    """
    if level not in LEVELS:
        raise KeyError(f"no level {level!r}; there are {', '.join(LEVELS)}")
    for operation in walk_operations(root):
        if reason := why_illegal(operation, level):
            raise _failure(operation, reason, kind="illegal-op")


def _verify_operation(operation: Operation) -> None:
    """Run the op's own verifier; whatever it raises is told as a failure of this op.

    Verifiers raise bare exceptions too (xDSL's memref.load does), hence no narrower `except`.
    """
    try:
        operation.verify(verify_nested_ops=False)
    except UopcError as error:
        error.location = error.location or nearest_location(operation)
        error.op_text = error.op_text or op_text(operation)
        raise
    except RecursionError as error:
        raise _failure(operation, "nests too deep to be verified") from error
    except Exception as error:
        raise _failure(operation, clip_message(_verifier_words(error))) from error


def _verifier_words(error: BaseException) -> str:
    """What the verifier said.

    xDSL prints the whole module into a note when an op fails; if the broken module cannot be
    printed, that second error hides the first, which is then its context.
    """
    first = error.__context__
    if isinstance(first, DiagnosticException) and not isinstance(error, DiagnosticException):
        error = first
    text = " ".join(str(error).split())
    if isinstance(error, DiagnosticException) or type(error) in (Exception, ValueError):
        return text or "does not verify"
    return f"does not verify: {type(error).__name__}: {text}"


def _failure(
    operation: Operation, words: str, *, kind: str = "verify-failed", hint: str = ""
) -> UopcError:
    return UopcError(
        kind,
        f"'{op_name(operation)}' op {words}",
        location=nearest_location(operation),
        op_text=op_text(operation),
        hint=hint,
    )
