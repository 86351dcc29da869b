"""group-accesses: which kernels of a program get vectors, and that they compute the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects import vector

from uopc.dialects.element_types import element_type_named
from uopc.dialects.kernel import KernelOp
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.frontend.compile import compile as compile_program
from uopc.passes.linearize_gpu import alignments
from uopc.passes.pipelines import pipeline_text
from uopc.runtime.cuda_compile import CudaOptions
from uopc.runtime.cuda_executable import load_cuda_program

ALWAYS = pipeline_text("uopc-cuda").replace("gpu-map", "gpu-map{vectors-from=1}")
RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def emulator(cache_folder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_CUDA", "emulator")


def on_gpu(text: str, pipeline: str = ALWAYS):
    lowered = lower(read_program(text), CompileRequest(target="cuda", pipeline=pipeline))
    return load_cuda_program(lowered.cuda_program(), options=CudaOptions(check=True), debug=0)


def added(shape: str, dtype: str) -> str:
    return f"""
    func.func @f(%a: tensor<{shape}x{dtype}>, %b: tensor<{shape}x{dtype}>) -> tensor<{shape}x{dtype}> {{
      %c = utensor.add %a, %b : tensor<{shape}x{dtype}>
      func.return %c : tensor<{shape}x{dtype}>
    }}"""  # noqa: E501


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("f32", "float4"), ("f64", "double2"), ("f16", "ushort4"), ("bf16", "ushort4"),
        ("i32", "int4"), ("i64", "longlong2"), ("i8", "char4"), ("ui16", "short4"), ("i1", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(1, 4), (3, 20), (37, 44)])
def test_neighbours_are_added_at_once(dtype: str, kind: str | None, shape: tuple[int, int]):
    row = element_type_named(dtype)
    text = added("x".join(map(str, shape)), dtype)
    executable = on_gpu(text)
    whole = re.findall(r"\*\((?:const )?(\w+) \*\)&", executable.source)
    assert whole == ([kind] * 3 if kind else [])
    arrays = [RANDOM.integers(0, 2, shape).astype(row.numpy) for _ in range(2)]
    expected = compile_program(text, "interpreter")(*arrays)
    np.testing.assert_array_equal(executable(*arrays), expected)


@pytest.mark.parametrize(("shape", "width"), [("7x6", 2), ("5x5", 0), ("8x1", 0), ("0x4", 0)])
def test_rows_of_no_multiple_of_four(shape: str, width: int):
    executable = on_gpu(added(shape, "f32"))
    assert (f"float{width} *" in executable.source) == (width > 0)
    size = [int(n) for n in shape.split("x")]
    a = RANDOM.standard_normal(size).astype(np.float32)
    np.testing.assert_array_equal(executable(a, a), a + a)


def test_what_is_no_neighbour_is_not_grouped():
    text = """
    func.func @f(%a: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<64x64xf32> {
      %t = utensor.permute %a [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
      %r = utensor.reshape %b : tensor<64xf32> -> tensor<1x64xf32>
      %e = utensor.expand %r : tensor<1x64xf32> -> tensor<64x64xf32>
      %c = utensor.add %t, %e : tensor<64x64xf32>
      func.return %c : tensor<64x64xf32>
    }"""
    executable = on_gpu(text)
    assert "float4" not in executable.source
    a, b = (RANDOM.standard_normal(s).astype(np.float32) for s in ((64, 64), 64))
    np.testing.assert_array_equal(executable(a, b), a.T + b)


def test_few_elements_have_a_thread_each():
    assert "float4" not in on_gpu(added("32x32", "f32"), "uopc-cuda").source
    assert "float4" in on_gpu(added("128x128", "f32"), "uopc-cuda").source


def test_temporaries_at_odd_places_are_not_grouped(run_pipeline):
    """A kernel's buffers are aligned as the worst of its launches has them."""
    text = """
    ukernel.plan @f ins(%x : memref<8xf32>) attributes {workspace = 128 : i64} {
      %t = ukernel.temp at 64 : memref<8xf32>
      %u = ukernel.temp at 8 : memref<8xf32>
      %out0 = ukernel.output : memref<8xf32>
      ukernel.launch @e_8 ins(%x : memref<8xf32>) outs(%t : memref<8xf32>)
      ukernel.launch @e_8 ins(%t : memref<8xf32>) outs(%u : memref<8xf32>)
      ukernel.launch @e_8 ins(%u : memref<8xf32>) outs(%out0 : memref<8xf32>)
      ukernel.return %out0 : memref<8xf32>
    }
    ukernel.kernel @e_8 ins(%x : memref<8xf32>) outs(%o : memref<8xf32>) {
      %i = uloop.range 8
      %v = uloop.load %x[%i] : memref<8xf32>
      uloop.store %v, %o[%i] : memref<8xf32>
    }"""
    for place, alignment in (("at 8", 8), ("at 0", 16)):
        module = read_program(text.replace("at 8", place))
        kernel = next(op for op in module.walk() if isinstance(op, KernelOp))
        assert alignments(kernel) == [alignment, alignment]
        passes = "gpu-map{vectors-from=1},apply-schedule,linearize,lower-plan,group-accesses"
        run_pipeline(module, passes)
        loads = [op for op in module.walk() if isinstance(op, vector.LoadOp)]
        assert {op.result.type.get_shape() for op in loads} == {(alignment // 4,)}
