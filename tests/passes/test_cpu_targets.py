"""CPU targets are files: held against a schema, and what they say of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.passes.cpu_targets import FOLDER, cpu_target, cpu_targets, native_target, read_target

AVX2 = (FOLDER / "avx2.toml").read_text()


def test_the_families() -> None:
    assert list(cpu_targets()) == ["avx512bf16", "avx512", "avx2", "neon", "sse2", "portable"]
    widths = {name: row.vector_bytes for name, row in cpu_targets().items()}
    assert widths == {
        "avx512bf16": 64,
        "avx512": 64,
        "avx2": 32,
        "neon": 16,
        "sse2": 16,
        "portable": 0,
    }
    fused = [name for name, row in cpu_targets().items() if row.fused_multiply_add]
    assert fused == ["avx512bf16", "avx512", "avx2", "neon"]
    assert [name for name, row in cpu_targets().items() if row.bf16_dot] == ["avx512bf16"]


def test_native_is_the_best_that_runs_here_with_this_machines_caches() -> None:
    native = native_target()
    assert not native.misses()
    better = [row for row in cpu_targets().values() if row.rank > native.rank]
    assert all(row.misses() for row in better)
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (index / "level").read_text().strip() == "2":
            assert f"{native.level2_bytes >> 10}K" == (index / "size").read_text().strip()
    assert not cpu_target("portable").misses()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "avx2"', 'name = "avx3"', "name is 'avx3'; expected the file's own, 'avx2'"),
        ("registers = 16", "", "vectors has no 'registers'"),
        ("registers = 16", "registers = 16\ncount = 1", "vectors has 'count'; expected bytes, "
         "registers"),
        ("registers = 16", "registers = true", "registers is True; expected a number from 0 on"),
        ("registers = 16", "registers = -1", "registers is -1; expected a number from 0 on"),
        ("bytes = 32\nregisters", "bytes = 24\nregisters", "vectors.bytes is 24; expected 0 or a "
         "power of two up to 256"),
        ('"-mfma"', "3", "an entry of flags is 3; expected a text"),
        ("[caches]", "[caches", "Expected"),
        ("[vectors]", "vectors = 3\n[vectors2]", "the file has 'vectors2'"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "avx2.toml"
    assert old in AVX2
    path.write_text(AVX2.replace(old, new, 1))
    with pytest.raises(UopcError) as caught:
        read_target(path)
    assert caught.value.kind == "bad-target-file"
    assert message in caught.value.message


def test_a_name_that_is_none() -> None:
    with pytest.raises(UopcError) as caught:
        cpu_target("avx1024")
    assert (
        str(caught.value.hint)
        == "expected native or avx512bf16, avx512, avx2, neon, sse2, portable"
    )
