"""New symbols for a module."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr


class SymbolNames:
    """Makes symbols that no other op of a module has: `r_4`, then `r_4$1`, `r_4$2`."""

    def __init__(self, module: ModuleOp) -> None:
        self._taken: set[str] = set()
        for op in module.body.block.ops:
            name = op.get_attr_or_prop("sym_name")
            if isinstance(name, StringAttr):
                self._taken.add(name.data)
        self._next: dict[str, int] = {}

    def unique(self, display_name: str) -> str:
        """A new symbol; the display name is what stands before its `$`."""
        name, count = display_name, self._next.get(display_name, 0)
        while name in self._taken:
            count += 1
            name = f"{display_name}${count}"
        self._next[display_name] = count
        self._taken.add(name)
        return name
