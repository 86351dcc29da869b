"""A command line's parser that answers mistakes in the words of every other error."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from uopc.dialects.errors import UopcError


class ToolArgumentParser(argparse.ArgumentParser):
    """Raises UopcError [bad-argument] instead of leaving; names the nearest options."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] -- argparse's overloads cannot be repeated
        """Parse; an unknown option is answered with the nearest ones."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if not unknown:
            return parsed
        flags = [each for each in unknown if each.startswith("-")]
        known = [flag for action in self._actions for flag in action.option_strings]
        if not flags:
            raise UopcError(
                "bad-argument",
                f"more than one input file: {' '.join(unknown)}",
                hint="give one file; its options start with -",
            )
        from uopc.passes.resolve import did_you_mean  # late: only a mistake needs it

        name = flags[0].partition("=")[0]
        guess = did_you_mean(name, known)
        raise UopcError(
            "bad-argument",
            f"there is no option {name}",
            hint=f"{guess} --help lists all".strip(),
        )

    def error(self, message: str) -> NoReturn:
        """Called by argparse for any mistake."""
        raise UopcError("bad-argument", message, hint=f"{self.prog} --help lists all options")
