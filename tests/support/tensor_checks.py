"""Many checks of tensors against numpy, computed in few plans so that they compile fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from uopc import Tensor


class Checks:
    """Collects (name, tensor, expected array) and compares all of them at the end."""

    def __init__(self, rtol: float = 2e-5, atol: float = 2e-6, at_a_time: int = 60) -> None:
        self.rtol = rtol
        self.atol = atol
        self.at_a_time = at_a_time
        self.found: list[tuple[str, Tensor, np.ndarray[Any, Any], bool]] = []

    def add(self, name: str, got: Tensor, expected: Any, *, same_type: bool = False) -> None:
        self.found.append((name, got, np.asarray(expected), same_type))

    def run(self) -> None:
        assert self.found
        wrong: list[str] = []
        for at in range(0, len(self.found), self.at_a_time):
            Tensor.realize_all(*[t for _, t, _, _ in self.found[at : at + self.at_a_time]])
        for name, tensor, expected, same_type in self.found:
            got = tensor.numpy()
            if got.shape != expected.shape:
                wrong.append(f"{name}: shape {got.shape}, expected {expected.shape}")
            elif same_type and got.dtype != expected.dtype:
                wrong.append(f"{name}: {got.dtype}, expected {expected.dtype}")
            else:
                half = got.dtype.itemsize == 2 and got.dtype.kind not in "iu"
                rtol = 2e-2 if half else self.rtol
                try:
                    np.testing.assert_allclose(
                        got.astype(np.float64), expected.astype(np.float64), rtol, self.atol
                    )
                except AssertionError as error:
                    text = " ".join(str(error).split())
                    wrong.append(f"{name} {expected.shape} {expected.dtype}: {text[:300]}")
        assert not wrong, "\n".join(wrong)
