"""The two libraries that CUDA programs need, and where they are found: the driver and NVRTC.

Which files are loaded is decided here and known nowhere else: the emulator exports the same calls
as libcuda and libnvrtc, so all that follows runs alike on both.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
import sysconfig
import threading
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint8, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.cache import open_cache
from uopc.runtime.emulator.build import emulator_library

_handle = POINTER(c_void_p)
_address = c_uint64

DRIVER_CALLS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_handle, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuDevicePrimaryCtxReset_v2": (c_int,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_handle, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_handle, c_void_p, c_char_p),
    "cuModuleGetGlobal_v2": (POINTER(_address), POINTER(c_size_t), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(_address), c_size_t),
    "cuMemFree_v2": (_address,),
    "cuMemHostAlloc": (_handle, c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (_address, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _address, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (_address, _address, c_size_t, c_void_p),
    "cuMemsetD8Async": (_address, c_uint8, c_size_t, c_void_p),
    "cuStreamCreate": (_handle, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (_handle, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
}

GRAPH_CALLS: dict[str, tuple[Any, ...]] = {
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _handle),
    "cuGraphInstantiateWithFlags": (_handle, c_void_p, c_uint64),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
}
"""Drivers before 11.4 lack some; programs then run kernel by kernel."""

NVRTC_CALLS: dict[str, tuple[Any, ...]] = {
    "nvrtcVersion": (POINTER(c_int), POINTER(c_int)),
    "nvrtcCreateProgram": (_handle, c_char_p, c_char_p, c_int, c_void_p, c_void_p),
    "nvrtcDestroyProgram": (_handle,),
    "nvrtcCompileProgram": (c_void_p, c_int, POINTER(c_char_p)),
    "nvrtcGetCUBINSize": (c_void_p, POINTER(c_size_t)),
    "nvrtcGetCUBIN": (c_void_p, c_char_p),
    "nvrtcGetProgramLogSize": (c_void_p, POINTER(c_size_t)),
    "nvrtcGetProgramLog": (c_void_p, c_char_p),
}

DRIVER_NAMES = ("libcuda.so.1", "libcuda.so")
NVRTC_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


class Calls:
    """The functions of a shared library by name, each with its types."""

    def __init__(self, path: str, required: Mapping[str, tuple[Any, ...]]) -> None:
        """Raises OSError where the library does not load or lacks a required function."""
        self.path = path
        self._library = ctypes.CDLL(path)
        self._functions: dict[str, Any] = {}
        for name, types in required.items():
            if not self.offers({name: types}):
                raise OSError(f"{path} has no {name}")

    def offers(self, wanted: Mapping[str, tuple[Any, ...]]) -> bool:
        """Whether the library has all of these; they can be called from then on."""
        for name, types in wanted.items():
            try:
                function = self._library[name]
            except AttributeError:
                return False
            function.argtypes = types
            function.restype = c_int
            self._functions[name] = function
        return True

    def __call__(self, name: str, *arguments: Any) -> int:
        """The function's status, 0 for success."""
        return self._functions[name](*arguments)

    def function(self, name: str) -> Any:
        """The function itself, for calls that must be quick."""
        return self._functions[name]


@dataclass(frozen=True)
class CudaLibraries:
    """What a device needs."""

    driver: Calls
    nvrtc: Calls | None
    graphs: bool
    """Whether the driver can capture launches and replay them."""


_known: dict[str, CudaLibraries] = {}
_lock = threading.RLock()


def cuda_libraries() -> CudaLibraries:
    """The libraries that UOPC_CUDA asks for, loaded once.

    Raises `no-cuda` where there is no driver or no device, `bad-environment`, and what compiling
    the emulator raises.
    """
    choice = environment.cuda_choice()
    with _lock:
        if choice == "emulator":
            path = str(emulator_library(open_cache()))
            if path not in _known:
                _known[path] = _loaded(Calls(path, DRIVER_CALLS), path)
            return _known[path]
        if "driver" not in _known:
            _known["driver"] = _loaded(_driver(), nvrtc_library())
        return _known["driver"]


def _loaded(driver: Calls, nvrtc: str | None) -> CudaLibraries:
    return CudaLibraries(
        driver,
        None if nvrtc is None else Calls(nvrtc, NVRTC_CALLS),
        driver.offers(GRAPH_CALLS),
    )


def _driver() -> Calls:
    tried: list[str] = []
    for name in DRIVER_NAMES:
        try:
            driver = Calls(name, DRIVER_CALLS)
        except OSError:
            tried.append(name)
            continue
        count = c_int()
        status = driver("cuInit", 0) or driver("cuDeviceGetCount", ctypes.byref(count))
        if status == 0 and count.value > 0:
            return driver
        text = c_char_p()
        driver("cuGetErrorName", status, ctypes.byref(text))
        reason = (text.value or b"status %d" % status).decode() if status else "no device"
        tried.append(f"{name} ({reason})")
        break
    raise UopcError(
        "no-cuda",
        f"no CUDA driver with a GPU: looked for {', '.join(tried)}; "
        f"{environment.CUDA.name}=emulator runs the same program on the CPU",
    )


# -- NVRTC and the toolkit -------------------------------------------------------------------------


def nvrtc_library() -> str | None:
    """A libnvrtc that loads: the system's, the one of the PyPI wheel, or the toolkit's."""
    candidates = list(NVRTC_NAMES)
    for folder in _wheel_folders("lib"):
        candidates += [str(path) for path in sorted(folder.glob("libnvrtc.so.*"), reverse=True)]
    for toolkit in environment.cuda_toolkit_folders():
        candidates += [str(toolkit / "lib64" / name) for name in NVRTC_NAMES]
    for candidate in candidates:
        try:
            _load_builtins(Path(candidate))
            Calls(candidate, NVRTC_CALLS)
        except OSError:
            continue
        return candidate
    return None


def _load_builtins(library: Path) -> None:
    """Load what a libnvrtc in a folder opens by its bare name, and need not find there: that of
    some wheels does not look beside itself."""
    for path in sorted(
        library.parent.glob("libnvrtc-builtins.so.*") if library.is_absolute() else ()
    ):
        ctypes.CDLL(str(path))


def nvcc_program() -> str | None:
    """The path of nvcc: in a toolkit that the environment names, on PATH, in the usual folder."""
    *named, usual = environment.cuda_toolkit_folders()
    for folder in named:
        if (found := shutil.which("nvcc", path=str(folder / "bin"))) is not None:
            return found
    return shutil.which("nvcc") or shutil.which("nvcc", path=str(usual / "bin"))


def include_folders() -> list[Path]:
    """Where cuda_fp16.h lies: NVRTC, other than nvcc, has to be told."""
    folders = [
        *_wheel_folders("include"),
        *(folder / "include" for folder in environment.cuda_toolkit_folders()),
    ]
    return [folder for folder in folders if (folder / "cuda_fp16.h").is_file()][:1]


def _wheel_folders(kind: str) -> list[Path]:
    # nvidia/cuda_nvrtc/lib up to CUDA 12, nvidia/cu13/lib since.
    bases = dict.fromkeys([sysconfig.get_path("purelib"), *sys.path])
    return [
        folder for base in bases if base for folder in sorted(Path(base).glob(f"nvidia/*/{kind}"))
    ]
