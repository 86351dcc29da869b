"""lit's configuration: tools run in the Python that runs lit, from this checkout's sources."""

import os
import shlex
import sys
from pathlib import Path

import lit.formats

config.name = "uopc"  # noqa: F821 -- lit defines `config`
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.excludes = ["Inputs"]  # noqa: F821

here = Path(__file__).resolve().parent
checkout = here.parents[1]
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = os.environ.get("UOPC_LIT_OUTPUT", str(here))  # noqa: F821

python = shlex.quote(sys.executable)
tools = {
    "uopc-opt": f"{python} {shlex.quote(str(checkout / 'tools' / 'uopc-opt'))}",
    "uopc-run": f"{python} {shlex.quote(str(checkout / 'tools' / 'uopc-run'))}",
    "xdsl-opt": f"{python} -m xdsl.tools.xdsl_opt",
    "filecheck": f"{python} -m filecheck",
}
for name, command in tools.items():
    # A whole word that is no part of a path or of an option.
    config.substitutions.append((rf"(?<![\w./-]){name}(?![\w./-])", command))  # noqa: F821

for variable in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "UOPC_CACHE_DIR", "CC", "LANG"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]  # noqa: F821
