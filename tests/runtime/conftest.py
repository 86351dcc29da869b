"""Hand-made programs: C as a person writes it, and the plan that describes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer, KernelCall, Plan, Program, Symbol
from uopc.runtime.cuda_driver import Device, current_device

ADD_SOURCE = """\
#include <stdint.h>
/* e_4_8: add */
static void add(const float *restrict a, const float *restrict b, float *restrict out) {
  for (int64_t i = 0; i < 32; i++) out[i] = a[i] + b[i];
}

void plan_add(const float *restrict a, const float *restrict b, float *restrict out) {
  add(a, b, out);
}
"""

# Row sums into a temporary, then each element over its row's sum, for n rows of 4.
NORMALIZE_SOURCE = """\
#include <stdint.h>
/* r_n: reduce sum */
STATICvoid row_sum(int64_t n, const float *restrict x, float *restrict sums) {
  for (int64_t i = 0; i < n; i++) {
    float sum = 0.0f;
    for (int64_t j = 0; j < 4; j++) sum += x[i * 4 + j];
    sums[i] = sum;
  }
}

/* e_n_4: div */
STATICvoid divide(int64_t n, const float *restrict x, const float *restrict sums,
                  float *restrict out) {
  for (int64_t i = 0; i < n * 4; i++) out[i] = x[i] / sums[i / 4];
}

void normalize(int64_t n, const float *restrict x, float *restrict out,
               unsigned char *restrict workspace) {
  float *sums = (float *)(workspace + 64);
  row_sum(n, x, sums);
  divide(n, x, sums, out);
}
"""


@dataclasses.dataclass(frozen=True)
class Named:
    """A bare symbol, or a multiple of one, as a size of a plan."""

    symbol: str
    factor: int = 1

    def evaluate_named(self, symbols: dict[str, int]) -> int:
        return self.factor * symbols[self.symbol]

    def __str__(self) -> str:
        return self.symbol if self.factor == 1 else f"{self.factor}*{self.symbol}"


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache folder, with a space in its path, for all tests that are not about the cache."""
    return tmp_path_factory.mktemp("runtime") / "my dir" / "x y"


@pytest.fixture(autouse=True)
def environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("UOPC_CC", "UOPC_DEBUG", "UOPC_THREADS", "UOPC_RECYCLE", "UOPC_CUDA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UOPC_CACHE", str(shared_cache))
    yield


@pytest.fixture
def symbol_size() -> type[Named]:
    return Named


@pytest.fixture
def add_program() -> Program:
    """a + b on 4x8 f32: one kernel, no temporary."""
    plan = Plan(
        "add",
        inputs=(Buffer("in0", "a", "f32", (4, 8)), Buffer("in1", "b", "f32", (4, 8))),
        outputs=(Buffer("out0", "sum", "f32", (4, 8)),),
        kernels=(KernelCall("e_4_8", "k0", ("in0", "in1", "out0"), 1, 32, 384),),
    )
    return Program(ADD_SOURCE, "c", (plan,), {"add": "plan_add", "k0": "add"})


@pytest.fixture
def normalize_program() -> Callable[[bool], Program]:
    """x / sum(x, -1) on n x 4 f32, n from 0 to 8: two kernels and a temporary."""

    def make(static_kernels: bool = True) -> Program:
        n = Named("n")
        plan = Plan(
            "normalize",
            symbols=(Symbol("n", 0, 8),),
            inputs=(Buffer("in0", "x", "f32", (n, 4)),),
            temps=(Buffer("tmp0", "tmp0", "f32", (n,), offset=64),),
            outputs=(Buffer("out0", "out0", "f32", (n, 4)),),
            kernels=(
                KernelCall("r_n", "k0", ("in0", "tmp0"), 1, 32, 160, ("n",)),
                KernelCall("e_n_4", "k1", ("in0", "tmp0", "out0"), 1, 32, 288, ("n",)),
            ),
            workspace_bytes=128,
        )
        source = NORMALIZE_SOURCE.replace("STATIC", "static " if static_kernels else "")
        names = {"normalize": "normalize", "k0": "row_sum", "k1": "divide"}
        return Program(source, "c", (plan,), names)

    return make


@pytest.fixture
def copy_program() -> Callable[..., Program]:
    """One kernel that copies `count` elements of a C type."""

    def make(dtype: str, ctype: str, shape: tuple[object, ...], count: int) -> Program:
        source = (
            "#include <stdint.h>\n"
            f"void copy(const {ctype} *restrict a, {ctype} *restrict out) {{\n"
            f"  for (int64_t i = 0; i < {count}; i++) out[i] = a[i];\n}}\n"
        )
        plan = Plan(
            "copy",
            inputs=(Buffer("in0", "layer1.weight", dtype, shape),),
            outputs=(Buffer("out0", "out0", dtype, shape),),
            kernels=(KernelCall("e", "copy", ("in0", "out0"), 1, 0, 0),),
        )
        return Program(source, "c", (plan,), {})

    return make


def whole(device: Device) -> Iterator[Device]:
    """The device, with a context that works before and after."""
    yield device
    try:
        with device.in_use():
            device.call("cuCtxSynchronize")
    except UopcError:
        with device.alone():
            device.reset()


@pytest.fixture
def emulated_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("UOPC_CUDA", "emulator")
    yield from whole(current_device())


@pytest.fixture(params=["emulator", pytest.param("driver", marks=pytest.mark.gpu)])
def cuda_device(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Device]:
    """The emulator always, and a GPU where one is found."""
    monkeypatch.setenv("UOPC_CUDA", request.param)
    try:
        device = current_device()
    except UopcError as error:
        if error.kind != "no-cuda":
            raise
        pytest.skip(error.message)
    yield from whole(device)
