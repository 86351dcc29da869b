"""CUDA C++ to kernels for one kind of GPU: by NVRTC, else by nvcc, kept in the cache by content.

No shell is involved, and no text of a user's program reaches a command line: nvcc runs in a folder
of its own on the fixed names `plan.cu` and `plan.cubin`.

A product and a sum stay two roundings (fmad=false): fused multiply-add is an op of the IR.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.cache import FORMAT_VERSION, Cache, no_folder, open_cache
from uopc.runtime.compiler import STDERR_LINES, digest, machine, processor, run_compiler
from uopc.runtime.cuda_library import Calls, CudaLibraries, include_folders, nvcc_program

SOURCE_NAME = "plan.cu"


@dataclass(frozen=True)
class CudaOptions:
    """How CUDA source becomes code; the bits of correct programs do not depend on it."""

    check: bool = False
    """Compile for debugging. Temporaries lie apart, and what no kernel wrote reads as NaN."""
    graphs: bool = True
    """Capture the launches of a plan and replay them, where the driver can."""


def compile_cuda(
    source: str, architecture: str, libraries: CudaLibraries, options: CudaOptions
) -> bytes:
    """The cubin of `source` for `architecture` (`sm_90`).

    Raises `compile-failed` and `no-cuda-compiler`.
    """
    store = open_cache()
    if libraries.nvrtc is not None:
        return _by_nvrtc(source, architecture, libraries.nvrtc, options, store)
    if (nvcc := nvcc_program()) is not None:
        return _by_nvcc(source, architecture, nvcc, options, store)
    raise UopcError(
        "no-cuda-compiler",
        "no compiler for CUDA: looked for libnvrtc (of the system, of the wheel "
        "nvidia-cuda-nvrtc, of a toolkit) and for nvcc; "
        f"{environment.CUDA.name}=emulator needs neither",
        hint="pip install 'uopc[cuda]' gets NVRTC",
    )


def _stamp(path: str) -> str:
    """Changes when the file does; a bare library name, which the loader finds, is its own."""
    try:
        status = Path(path).stat()
    except OSError:
        return path
    return f"{path} {status.st_mtime_ns} {status.st_size}"


def _key(source: str, flags: list[str], compiler: str) -> str:
    parts = ("cubin", str(FORMAT_VERSION), machine(), processor(), compiler, *flags, source)
    return digest(*parts)


# -- NVRTC -----------------------------------------------------------------------------------------


def _by_nvrtc(
    source: str, architecture: str, nvrtc: Calls, options: CudaOptions, store: Cache
) -> bytes:
    flags = nvrtc_flags(architecture, options)
    major, minor = c_int(), c_int()
    nvrtc("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    key = _key(source, flags, f"nvrtc {major.value}.{minor.value} {_stamp(nvrtc.path)}")
    if (known := store.read(key, ".cubin")) is not None:
        return known
    status, cubin, log = run_nvrtc(nvrtc, source, flags)
    if status != 0:
        raise _failed("NVRTC", f"status {status}", log, store.keep_failed(key, source, ".cu"))
    store.write(key, ".cubin", cubin)
    return cubin


def nvrtc_flags(architecture: str, options: CudaOptions) -> list[str]:
    """How NVRTC is asked for code of `architecture` (`sm_90`)."""
    flags = [f"--gpu-architecture={architecture}", "--std=c++17", "--fmad=false"]
    flags += [f"--include-path={folder}" for folder in include_folders()]
    flags.append("--device-debug" if options.check else "--generate-line-info")
    return flags


def run_nvrtc(nvrtc: Calls, source: str, flags: list[str]) -> tuple[int, bytes, str]:
    """The status, the cubin if it is 0, and what the compiler wrote: its warnings too."""
    program = c_void_p()
    text = source.encode("utf-8", "backslashreplace")
    created = nvrtc(
        "nvrtcCreateProgram", ctypes.byref(program), text, SOURCE_NAME.encode(), 0, None, None
    )
    if created != 0:
        return created, b"", ""
    try:
        spelled = (c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = nvrtc("nvrtcCompileProgram", program, len(flags), spelled)
        written = _fetched(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
        log = written.rstrip(b"\0").decode("utf-8", "replace")
        if status != 0:
            return status, b"", log
        return 0, _fetched(nvrtc, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"), log
    finally:
        nvrtc("nvrtcDestroyProgram", ctypes.byref(program))


def _fetched(nvrtc: Calls, program: c_void_p, size_call: str, data_call: str) -> bytes:
    size = c_size_t()
    nvrtc(size_call, program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(size.value, 1))
    nvrtc(data_call, program, data)
    return data.raw[: size.value]


# -- nvcc ------------------------------------------------------------------------------------------


def _by_nvcc(
    source: str, architecture: str, nvcc: str, options: CudaOptions, store: Cache
) -> bytes:
    flags = ["-cubin", f"-arch={architecture}", "-std=c++17", "-fmad=false"]
    flags.append("-G" if options.check else "-lineinfo")
    key = _key(source, flags, f"nvcc {_stamp(nvcc)}")
    if (known := store.read(key, ".cubin")) is not None:
        return known
    with store.building(key) as folder:
        if (known := store.read(key, ".cubin")) is not None:
            return known
        status, output = run_nvcc(nvcc, source, [*flags, "-o", "plan.cubin"], folder)
        product = folder / "plan.cubin"
        if status != 0 or not product.exists():
            kept = store.keep_failed(key, source, ".cu")
            raise _failed(nvcc, f"exit status {status}", output, kept)
        cubin = product.read_bytes()
    store.write(key, ".cubin", cubin)
    return cubin


def run_nvcc(nvcc: str, source: str, arguments: list[str], folder: Path) -> tuple[int, str]:
    """Run nvcc on `source` as plan.cu in `folder`: the exit status and what it wrote."""
    try:
        (folder / SOURCE_NAME).write_text(source, "utf-8", "backslashreplace")
    except OSError as error:
        raise no_folder(error) from error
    return run_compiler([nvcc, *arguments, SOURCE_NAME], folder)


def _failed(compiler: str, how: str, output: str, kept: Path) -> UopcError:
    lines = [
        "".join(c if c.isprintable() else " " for c in line)[:200] for line in output.splitlines()
    ]
    shown = lines[:STDERR_LINES]
    if len(lines) > STDERR_LINES:
        shown.append(f"... {len(lines) - STDERR_LINES} more lines")
    return UopcError(
        "compile-failed",
        f"{compiler} did not compile the CUDA source ({how}); the source is kept in {kept}",
        hint="\n    ".join(["the compiler said:", *shown]),
    )
