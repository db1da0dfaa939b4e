from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests import yaml_reader
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def read_error() -> Callable[[str], ReadError]:
    """Read a YAML text that is refused."""

    def refused(text: str) -> ReadError:
        with pytest.raises(ReadError) as caught:
            yaml_reader.read(text)
        return caught.value

    return refused
