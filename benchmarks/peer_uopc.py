"""uopc as one of the peers of a harness that measures many libraries beside one another.

    PYTHONPATH=FOLDER PEERS_THREADS=2 python benchmarks/peer_uopc.py [NAME ...]

FOLDER holds that harness: its module `bench` checks values, takes times, and prints a line of JSON
for each workload. The programs are those of `programs.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Before anything of uopc runs: programs are shaped for so many threads.
os.environ["UOPC_THREADS"] = os.environ.get("PEERS_THREADS", "2")

import bench  # pyright: ignore[reportMissingImports] (before numpy: it sets threads and affinity)
import programs

import uopc
from uopc import Tensor

Array = programs.Array
harness: Any = bench


class Uopc(harness.Peer):
    """The interface that the harness asks of a peer."""

    name = "uopc"
    fns = programs.FUNCTIONS

    def put(self, x: Array, dtype: str) -> Tensor:
        """An input; bf16 arrives as f32 that holds its values."""
        return Tensor(x, dtype="bf16" if dtype == "bf16" else None).realize()

    def get(self, x: Tensor) -> Array:
        return x.cast("f32").numpy() if x.is_floating_point() else x.numpy()

    def compiled(self, fn: Callable[..., Tensor], xs: list[Tensor]) -> Callable[..., Tensor]:
        jitted = uopc.jit(fn)
        for _ in range(2):  # the second call verifies the first one's trace
            jitted(*xs)
        return jitted

    def train(self, cfg: Any) -> Callable[[], float]:
        """See `programs.gpt_training`."""
        tokens, targets = cfg.data()
        return programs.gpt_training(cfg.params(), tokens, targets, cfg)

    def decode_head(self, p: dict[str, Array]) -> Callable[[Array, int], Array]:
        """See `programs.head_decoding`."""
        weights = p["wq"], p["wk"], p["wv"], p["wo"]
        return programs.head_decoding(weights, len(p["x"]))

    def decode(self, cfg: Any) -> tuple[Callable[[int, int], Array], Callable[[], int]]:
        """See `programs.gpt_decoding`; and how many programs were compiled since."""
        before = uopc.cache_info().compiles
        step = programs.gpt_decoding(cfg.params(), cfg)
        return step, lambda: uopc.cache_info().compiles - before


def peer(variant: str) -> Uopc:
    """The peer; it has no variants."""
    return Uopc()


if __name__ == "__main__":
    harness.main(peer)
