"""Lets the scripts of a checkout find xDSL: in this Python, or in the checkout's own `.venv`."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def ensure_xdsl(checkout: Path) -> None:
    """Return if xDSL can be imported; else start again with `.venv`'s Python, or leave in words.

    `checkout` is the folder that holds `.venv`. Leaves with status 1 if there is no xDSL anywhere.
    """
    if importlib.util.find_spec("xdsl") is not None:
        return
    python = checkout / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix).resolve() != (checkout / ".venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    sys.exit(
        f"error: {sys.executable} has no xDSL, which uopc is built on [missing-dependency]\n"
        f"  hint: {sys.executable} -m pip install 'xdsl~=0.75.0' numpy ml_dtypes, "
        "or run make in the checkout"
    )
