"""Output files appear whole or not at all."""

import os
import threading

import pytest

from uopc.dialects.errors import UopcError
from uopc.tools.output_file import write_output


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "ä b.txt"
    write_output(str(path), "one\n")
    write_output(str(path), "zwei é\n")
    assert path.read_text(encoding="utf-8") == "zwei é\n"
    assert [each.name for each in tmp_path.iterdir()] == ["ä b.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_output(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    write_output(str(path), "text")
    reader.join(10)
    assert got == ["text"] and path.is_fifo()


def test_a_failed_write_leaves_nothing(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(UopcError, match="cannot write"):
        write_output(str(path), "bad \ud800 text")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["no/such/folder", "", "a\0b", "x" * 5000])
def test_places_that_cannot_be_written(tmp_path, name):
    with pytest.raises(UopcError) as caught:
        write_output(str(tmp_path / name) if name else str(tmp_path), "text")
    assert caught.value.kind == "cannot-write"
    assert list(tmp_path.iterdir()) == []


def test_standard_output(capsys):
    write_output(None, "a")
    write_output("-", "b")
    assert capsys.readouterr().out == "ab"
