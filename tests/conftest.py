"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

import pytest
from property_inputs import load_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

# The collector starts after so many more objects are created than freed. With Python's 700, it takes 7 % of the tests' time.
OBJECTS_UNTIL_COLLECTION = 50_000


def pytest_configure() -> None:
    load_profile()
    # Tests and the programs that they start are compiled once, even where the environment keeps Python from it.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the collector from all that is collected, which stays until the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
