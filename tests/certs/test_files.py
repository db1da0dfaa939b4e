from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.certs import files
from gpugate.certs.files import MAX_BYTES, FileError, is_world_writable, read_together

if TYPE_CHECKING:
    from collections.abc import Callable

SWAPS = 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tls_folder = tmp_path / "tls"
    tls_folder.mkdir()
    (tls_folder / "tls.crt").write_bytes(b"certificate")
    (tls_folder / "tls.key").write_bytes(b"key")
    return tls_folder


def both(folder: Path) -> list[bytes]:
    return read_together([folder / "tls.crt", folder / "tls.key"])


def test_regular_files_are_read(folder: Path) -> None:
    assert both(folder) == [b"certificate", b"key"]


def test_files_of_two_folders_are_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    assert read_together([folder / "tls.key", tmp_path / "ca.crt"]) == [b"key", b"authority"]


def test_links_to_different_directories_in_the_folder_are_followed(folder: Path) -> None:
    for name in ("tls.crt", "tls.key"):
        (folder / f"of-{name}").mkdir()
        (folder / name).rename(folder / f"of-{name}" / "content")
        (folder / name).symlink_to(f"of-{name}/content")
    assert both(folder) == [b"certificate", b"key"]


def test_the_folder_can_be_a_link(folder: Path) -> None:
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert both(link) == [b"certificate", b"key"]


def test_a_file_of_the_maximum_size_is_read(folder: Path) -> None:
    (folder / "tls.key").write_bytes(b"k" * MAX_BYTES)
    assert len(both(folder)[1]) == MAX_BYTES


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _link_out(path: Path) -> None:
    outside = path.parent.with_name("outside")
    outside.write_bytes(b"key")
    path.symlink_to("../outside")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda _: None, "no such file"),
    "fifo": (os.mkfifo, "not a regular file"),
    "directory": (Path.mkdir, "is a directory"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "points outside"),
    "two-gigabytes": (lambda path: _sparse(path, 2 * 1024**3), "larger than 1 MiB"),
    "a-byte-too-large": (lambda path: path.write_bytes(b"k" * (MAX_BYTES + 1)), "larger than 1 MiB"),
    "link-out-of-the-folder": (_link_out, "points outside"),
    "absolute-link-out-of-the-folder": (lambda path: path.symlink_to("/etc/passwd"), "points outside"),
    "link-to-itself": (lambda path: path.symlink_to(path.name), "too many levels of symbolic links"),
    "link-to-nothing": (lambda path: path.symlink_to("nothing"), "no such file"),
}


@pytest.mark.parametrize(("put", "message"), BAD.values(), ids=BAD)
def test_unreadable_files_are_rejected(folder: Path, put: Callable[[Path], object], message: str) -> None:
    key = folder / "tls.key"
    key.unlink()
    put(key)
    with pytest.raises(FileError) as raised:
        both(folder)
    assert str(raised.value).startswith(f"{key}: ")
    assert message in str(raised.value)


def test_a_device_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not a regular file"):
        read_together([Path("/dev/null"), tmp_path])


@pytest.mark.parametrize("path", ["", ".", "..", "a\0b", "/", "tls.crt/x"])
def test_invalid_paths_are_rejected(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(FileError):
        read_together([Path(path)])


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_all_descriptors_are_closed(folder: Path) -> None:
    before = descriptors()
    both(folder)
    (folder / "tls.key").unlink()
    with pytest.raises(FileError):
        both(folder)
    assert descriptors() == before


def test_files_are_from_one_version_while_the_kubelet_replaces_them(tmp_path: Path) -> None:
    def put(number: int) -> None:
        version = tmp_path / f"..{number}"
        version.mkdir()
        for name in ("tls.crt", "tls.key"):
            (version / name).write_text(str(number))
        link = tmp_path / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(tmp_path / "..data")
        shutil.rmtree(tmp_path / f"..{number - 1}", ignore_errors=True)

    def swap() -> None:
        for number in range(1, SWAPS + 1):
            put(number)

    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    put(0)
    swapping = threading.Thread(target=swap)
    swapping.start()
    torn, contents = [], set()
    while swapping.is_alive():
        certificate, key = both(tmp_path)
        contents.add(certificate)
        if certificate != key:
            torn.append((certificate, key))
    swapping.join()
    assert not torn
    assert len(contents) > 1


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(0o755, False, id="private"),
        pytest.param(0o777, True, id="world-writable"),
        pytest.param(0o1777, False, id="sticky, like the folder of a mounted Secret"),
    ],
)
def test_world_writable_folders_without_sticky_bit_are_detected(tmp_path: Path, mode: int, expected: bool) -> None:  # noqa: FBT001 -- a table's column
    tmp_path.chmod(mode)
    assert is_world_writable(tmp_path) is expected


def test_a_missing_folder_is_not_world_writable(tmp_path: Path) -> None:
    assert is_world_writable(tmp_path / "missing") is False


def test_a_file_that_grows_after_the_check_is_rejected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_check_file", lambda *_: None)
    (folder / "tls.key").write_bytes(b"k" * (MAX_BYTES + 1))
    with pytest.raises(FileError, match="larger than 1 MiB"):
        both(folder)


def resolved(given: Path, directory: Path) -> files._ResolvedPath:
    return files._ResolvedPath(given, str(directory), given.name)


@pytest.fixture
def two_versions(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tls.crt").write_text(name)
        (tmp_path / name / "tls.key").write_text(name)
    return tmp_path / "1", tmp_path / "2"


def test_a_link_that_changes_between_two_files_is_resolved_again(
    two_versions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [two_versions[number - 1] for number in (1, 2, 2, 2)]
    monkeypatch.setattr(files, "_resolve", lambda path: resolved(path, directories.pop(0)))
    assert both(Path("/mounted")) == [b"2", b"2"]


def test_files_of_one_directory_need_one_attempt(
    two_versions: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [two_versions[0]] * 2
    monkeypatch.setattr(files, "_resolve", lambda path: resolved(path, directories.pop(0)))
    assert both(Path("/mounted")) == [b"1", b"1"]


def test_only_regular_files_are_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tls.key").unlink()
    os.mkfifo(folder / "tls.key")
    opened: list[object] = []
    really = os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **more: (opened.append(path), really(path, *args, **more))[1])
    with pytest.raises(FileError, match="not a regular file"):
        both(folder)
    assert "tls.key" not in opened


def test_a_link_that_appears_after_resolution_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tls.key").unlink()
    (folder / "tls.key").symlink_to("tls.crt")
    monkeypatch.setattr(files, "_resolve", lambda path: resolved(path, folder))
    with pytest.raises(FileError, match="not a regular file"):
        both(folder)


def test_a_file_that_is_replaced_after_the_check_is_checked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regular = (folder / "tls.crt").stat()
    (folder / "tls.key").unlink()
    os.mkfifo(folder / "tls.key")
    monkeypatch.setattr(files, "_resolve", lambda path: resolved(path, folder))
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)
    with pytest.raises(FileError, match="not a regular file"):
        both(folder)


def test_a_pipe_in_the_place_of_a_folder_does_not_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = folder.parent / "pipe"
    os.mkfifo(pipe)
    # The folder is replaced after its path was resolved.
    monkeypatch.setattr(files, "_resolve", lambda path: resolved(path, pipe))
    with pytest.raises(FileError, match="not a directory"):
        both(folder)
