from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.bounded_file import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("data", [b"", b"a", b"1234"], ids=["empty", "small", "as large as it may be"])
def test_a_file_is_read_whole(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)

    assert read_regular(tmp_path / "a", 4) == data


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").symlink_to("a")

    assert read_regular(tmp_path / "b", 4) == b"a"


def _link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _five_bytes(path: Path) -> None:
    path.write_bytes(b"12345")


def _nothing(path: Path) -> None:
    assert not path.exists()


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (os.mkfifo, "is not a regular file"),
    "a link to a device": (_link_to_device, "is not a regular file"),
    "a directory": (os.mkdir, "is not a regular file"),
    "a file that is larger": (_five_bytes, "is larger than 4 bytes"),
    "nothing": (_nothing, "No such file or directory"),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_end_is_refused(make: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    make(tmp_path / "a")

    with pytest.raises(OSError, match=reason) as caught:
        read_regular(tmp_path / "a", 4)

    assert caught.value.strerror == reason


def test_a_name_that_no_file_can_have_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="is not a valid file name"):
        read_regular(Path("a\0b"), 4)
