"""Every block of every page: each has one way of being checked, and stands up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from documentation.blocks import blocks
from documentation.ways import mistakes

if TYPE_CHECKING:
    from documentation.blocks import Block

BY_HAND = [block for block in blocks() if not block.generated]


@pytest.mark.parametrize("block", BY_HAND, ids=str)
def test_a_block_is_as_its_reader_would_have_it(block: Block) -> None:
    assert mistakes(block) == []


def test_so_are_those_of_generated_pages() -> None:
    found = {str(block): wrong for block in blocks() if block.generated for wrong in [mistakes(block)] if wrong}
    assert found == {}
