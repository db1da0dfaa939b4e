from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.webhook.bundle.archive import MOST_BYTES, MOST_FILES, ArchiveError, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable


def tar_of(*members: tarfile.TarInfo, data: bytes = b"") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(data[: member.size]))
    return gzip.compress(out.getvalue())


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


@given(st.dictionaries(st.text("abcd", min_size=1, max_size=8), st.binary(max_size=2000), max_size=8))
def test_files_come_out_as_they_went_in(files: dict[str, bytes]) -> None:
    assert unpack(pack(files)) == files


@given(st.dictionaries(st.text("abcd", min_size=1, max_size=8), st.binary(max_size=70_000), max_size=3))
def test_an_archive_is_what_other_programs_read(files: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(pack(files)), mode="r:gz") as archive:
        read = {info.name: archive.extractfile(info) for info in archive}
        assert {name: content.read() for name, content in read.items() if content} == files


def test_the_order_of_files_does_not_change_the_archive() -> None:
    assert pack({"a": b"1", "b": b"2"}) == pack({"b": b"2", "a": b"1"})


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (tar_of(member("/etc/passwd")), "absolute"),
        (tar_of(member("../up")), "empty part"),
        (tar_of(member("a/../../up")), "empty part"),
        (tar_of(member("a//b")), "empty part"),
        (tar_of(member(".git/config")), "in .git"),
        (tar_of(member("C:\\x")), "characters"),
        (tar_of(member("a\nb")), "characters"),
        (tar_of(member("nul. ")), "characters"),
        (tar_of(member("x", tarfile.SYMTYPE, link="/etc/passwd")), "not a regular file"),
        (tar_of(member("x", tarfile.LNKTYPE, link="y")), "not a regular file"),
        (tar_of(member("x", tarfile.CHRTYPE)), "not a regular file"),
        (tar_of(member("x", tarfile.FIFOTYPE)), "not a regular file"),
        (tar_of(member("x", tarfile.DIRTYPE)), "not a regular file"),
        (tar_of(member("x" * 300)), "not a regular file"),
        (tar_of(member("a"), member("a")), "twice"),
        (tar_of(member("a"), member("A")), "one file where case is ignored"),
        (tar_of(member("a"), member("a/b")), "a file and a directory"),
        (tar_of(*(member(f"f{number}") for number in range(MOST_FILES + 1))), "more than 1,500 files"),
        (tar_of(member("a", size=MOST_BYTES + 1), data=bytes(MOST_BYTES + 1)), "larger than 16 MiB"),
        (gzip.compress(bytes(100 << 20), 1), "unpacks to more than"),
        (gzip.compress(b"no tar" * 200), "not a tar"),
        (b"no gzip", "not gzip"),
        (zlib.compress(b""), "not gzip"),
        (b"", "truncated"),
        (pack({"a": b"1"})[:-9], "truncated"),
        (pack({"a": b"1"}) + b"more", "after its end"),
        (gzip.compress(gzip.decompress(pack({"a": b"1"})) + b"more"), "after its end"),
        (gzip.compress(gzip.decompress(pack({"a": b"1" * 5000}))[:1024]), "truncated in"),
    ],
)
def test_a_hostile_archive_is_refused_with_its_reason(archive: bytes, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason):
        unpack(archive)


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


@pytest.mark.parametrize("change", [lambda data: _flip(data, 700), lambda data: _flip(data, len(data) - 6)])
def test_a_damaged_archive_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ArchiveError, match="damaged"):
        unpack(change(pack({"a": b"1" * 1000})))


@given(st.binary(max_size=3000))
def test_any_bytes_are_an_archive_or_an_error(tar: bytes) -> None:
    try:
        unpack(gzip.compress(tar, 1))
    except ArchiveError:
        return


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({f"f{number}": b"" for number in range(MOST_FILES + 1)}, "more than 1,500 files"),
        ({"a": bytes(MOST_BYTES + 1)}, "larger than 16 MiB"),
        ({"a" * 150: b""}, "too long"),
        ({"../a": b""}, "empty part"),
    ],
)
def test_what_could_not_be_unpacked_is_not_packed(files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason):
        pack(files)
