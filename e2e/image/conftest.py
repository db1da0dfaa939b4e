"""The container image as its users have it: `make packages`, or `make e2e K=image`. Fixture: `image`, made without an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from image.proof import proven_image

if TYPE_CHECKING:
    from image.container import Image


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return proven_image(tmp_path_factory.mktemp("image"))
