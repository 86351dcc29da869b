"""uopc as others meet it: a wheel in a fresh environment, with a downstream package beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from xdsl.printer import Printer

from uopc.dialects.locations import parse_file
from uopc.dialects.registry import DIALECTS, make_context
from uopc.lowering.registry import TARGETS
from uopc.passes.manager import run_passes
from uopc.passes.pipelines import PIPELINES
from uopc.passes.registry import PASSES, pass_factories
from uopc.passes.resolve import resolve_pipeline

fcntl = pytest.importorskip("fcntl")

ROOT = Path(__file__).parents[1]
DOWNSTREAM = ROOT / "tests" / "downstream"
FOLDERS = sorted(link.name for link in (ROOT / "src" / "uopc").iterdir() if link.is_symlink())
EXAMPLES = sorted((ROOT / "examples").glob("*.mlir"))


@dataclass(frozen=True)
class Installed:
    """A fresh environment with both packages, and the wheel that uopc came from."""

    folder: Path
    wheel: Path

    def xdsl_opt(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run xDSL's own tool."""
        return self.run("python", "-m", "xdsl.tools.xdsl_opt", *arguments, stdin=stdin)

    def run(self, *command: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, far from the checkout."""
        program = self.folder / "venv" / "bin" / str(command[0])
        hidden = {"PYTHONPATH", "VIRTUAL_ENV", "UOPC_DEBUG"}
        done = subprocess.run(
            [program, *map(str, command[1:])],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name not in hidden},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done


def pip(*arguments: str | Path) -> None:
    """Run pip; nothing is downloaded."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(source: Path, folder: Path) -> Path:
    """A wheel of a package, built from a copy: setuptools leaves its traces in the source."""
    copy = folder / f"source of {source.name}"
    ignored = shutil.ignore_patterns(
        ".*",
        "__pycache__",
        "build",
        "dist",
        "*.egg-info",
        "shared",
        "tests" if source == ROOT else "",
    )
    shutil.copytree(source, copy, symlinks=True, ignore=ignored)
    out = folder / f"wheel of {source.name}"
    pip("wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "-w", out, copy)
    (wheel,) = out.glob("*.whl")
    return wheel


def install(folder: Path) -> None:
    """Build both packages and install them into a new environment.

    It sees the packages of this one (xDSL, numpy) behind its own, by a path file. Path files of
    this one are not followed, so that a checkout installed here is out of sight.
    """
    wheels = [build_wheel(ROOT, folder), build_wheel(DOWNSTREAM, folder)]
    environment = folder / "venv"
    venv.create(environment, symlinks=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    ours = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "outer.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    python = environment / "bin" / "python"
    pip(
        "--python", python, "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall",
        *wheels,
    )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Made once, whichever of several test processes comes first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "embedding"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            for leftover in folder.iterdir():
                if leftover.is_dir():
                    shutil.rmtree(leftover)
            install(folder)
            (folder / "done").touch()
    (wheel,) = (folder / f"wheel of {ROOT.name}").glob("uopc-*.whl")
    return Installed(folder, wheel)


def test_wheel_holds_every_file_and_nothing_else(installed: Installed):
    with zipfile.ZipFile(installed.wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {"uopc/__init__.py", "uopc/nn.py", "uopc/universe.py", "uopc/py.typed"}
    for folder in FOLDERS:
        wanted |= {
            f"uopc/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix and "__pycache__" not in path.parts
        }
    assert FOLDERS == [
        "dialects", "frontend", "interpreters", "lowering", "passes", "runtime", "tools",
    ]  # fmt: skip
    assert packed == wanted
    assert any(name.endswith(".cpp") for name in packed)


def test_wheel_names_its_licence_entry_point_and_commands(installed: Installed):
    with zipfile.ZipFile(installed.wheel) as archive:
        names = archive.namelist()
        (entries,) = (n for n in names if n.endswith("/entry_points.txt"))
        text = archive.read(entries).decode()
        assert any(n.endswith("/LICENSE") for n in names)
    assert "[xdsl.universe]\nuopc = uopc.universe:UOPC_UNIVERSE" in text
    assert "uopc-opt = uopc.tools.opt:main" in text
    assert "uopc-run = uopc.tools.run:main" in text


def test_the_environment_has_the_wheel_and_not_the_checkout(installed: Installed):
    done = installed.run("python", "-c", "import uopc, uopc.passes; print(uopc.passes.__file__)")
    assert Path(done.stdout.strip()).is_relative_to(installed.folder / "venv")


def test_plain_xdsl_opt_sees_dialects_passes_and_targets(installed: Installed):
    script = (
        "from xdsl.universe import Universe\n"
        "all = Universe.get_multiverse()\n"
        "print(*all.all_dialects, *all.all_passes, *all.all_targets)\n"
    )
    names = installed.run("python", "-c", script).stdout.split()
    assert set(names) >= {*DIALECTS, *PASSES, *PIPELINES, *TARGETS, "shop", "shop-to-utensor"}


def test_xdsl_opt_takes_the_downstream_dialect_to_c(installed: Installed, tmp_path: Path):
    done = installed.xdsl_opt(
        DOWNSTREAM / "program.mlir", "-p", "shop-to-utensor,uopc-cpu", "-t", "c"
    )
    assert "void mean_exp(const float *restrict x, float *restrict out0" in done.stdout
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler to check the C with")
    (tmp_path / "shop.c").write_text(done.stdout, encoding="utf-8")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    subprocess.run([compiler, *strict, tmp_path / "shop.c"], check=True)


def test_the_passes_of_a_pipeline_may_also_run_one_by_one(installed: Installed):
    program = DOWNSTREAM / "program.mlir"
    at_once = installed.xdsl_opt(program, "-p", "shop-to-utensor,uopc-cpu").stdout
    text = installed.xdsl_opt(program, "-p", "shop-to-utensor").stdout
    assert "shop.scaled_sum" not in text
    one_by_one = installed.xdsl_opt("-p", ",".join(PIPELINES["uopc-cpu"]), stdin=text)
    assert one_by_one.stdout == at_once


def test_uopc_opt_knows_the_downstream_pass_too(installed: Installed):
    program = DOWNSTREAM / "program.mlir"
    arguments = (program, "-p", "shop-to-utensor,uopc-cpu", "-t", "c")
    ours, plain = installed.run("uopc-opt", *arguments), installed.xdsl_opt(*arguments)
    # Only uopc-opt's parser knows where ops stand, and says so in the kernels' comments.
    assert re.sub(r"; program\.mlir:\d+(-\d+)?", "", ours.stdout) == plain.stdout


def test_python_compiles_and_runs_the_downstream_dialect(installed: Installed):
    script, program = DOWNSTREAM / "run_program.py", DOWNSTREAM / "program.mlir"
    done = installed.run("python", script, program)
    assert done.stdout == "['r_4'] (4,) float32\n"


def test_uopc_run_works_from_the_wheel(installed: Installed, tmp_path: Path):
    out = tmp_path / "y.npy"
    installed.run("uopc-run", ROOT / "examples" / "softmax.mlir", "--check", "-q", "-o", out)
    np.testing.assert_allclose(np.load(out).sum(axis=1), 1, rtol=1e-5)


@pytest.fixture(scope="module")
def linear_examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of all examples at the linear level, one module after another."""
    texts: list[str] = []
    for path in EXAMPLES:
        module = parse_file(str(path))
        passes = resolve_pipeline("uopc-cpu", pass_factories())
        run_passes(make_context(), module, passes)
        stream = StringIO()
        Printer(stream).print_op(module)
        texts.append(stream.getvalue() + "\n")
    assert len(texts) >= 8
    file = tmp_path_factory.mktemp("linear") / "examples.mlir"
    file.write_text("// -----\n".join(texts), encoding="utf-8")
    return file


def test_plain_xdsl_opt_reads_the_linear_form(installed: Installed, linear_examples: Path):
    text = linear_examples.read_text(encoding="utf-8")
    assert not [name for name in DIALECTS if f"{name}." in text]
    # xdsl-opt with a look at what it imported: none of uopc's dialects.
    script = (
        "import sys; from xdsl.tools.xdsl_opt import main\n"
        "main()\n"
        "assert 'uopc.universe' in sys.modules\n"
        "assert not {'uopc.dialects.' + n for n in ('tensor', 'kernel', 'loop')} & {*sys.modules}\n"
    )
    done = installed.run("python", "-c", script, linear_examples, "--split-input-file")
    assert list(filter(None, done.stdout.splitlines())) == text.splitlines()


def upstream_tool() -> str | None:
    """mlir-opt or iree-opt, on PATH or in this environment."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which("mlir-opt", path=places) or shutil.which("iree-opt", path=places)


def test_mlir_reads_the_linear_form(linear_examples: Path):
    tool = upstream_tool()
    if tool is None:
        pytest.skip("neither mlir-opt nor iree-opt (pip install iree-base-compiler) is installed")
    done = subprocess.run(
        [tool, "--split-input-file", linear_examples], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("func.func @") >= len(EXAMPLES)
