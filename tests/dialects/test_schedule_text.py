"""What the language of schedules says to a text that is none of it."""

from __future__ import annotations

import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.schedule_text import parse_schedule


@pytest.mark.parametrize("size", ["-3", "+3", "2.5"])
def test_a_size_that_is_none_is_not_taken_for_a_kind(size: str) -> None:
    with pytest.raises(UopcError) as caught:
        parse_schedule(f"split i = i0 i1:{size}")
    assert caught.value.message == f"in 'split i = i0 i1:{size}': a part of {size} steps"
    assert caught.value.hint == "expected a size of at least 1"
