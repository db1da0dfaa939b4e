"""Pack files into an archive, the same bytes for the same files, and read a hostile archive within limits.

An archive is a tar of regular files in gzip. It contains no times, owners or directories, its names are sorted, and gzip
stores it without compression: the output of a compressor differs between versions of zlib, and then the digest of a bundle
would depend on the machine.
"""

from __future__ import annotations

import struct
import tarfile
import zlib
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_FILES: Final = 1_500
MOST_BYTES: Final = 16 << 20
"""Content of all files, without the headers."""
_MOST_NAME: Final = 240
_BLOCK: Final = tarfile.BLOCKSIZE
_MOST_UNPACKED: Final = MOST_BYTES + (2 * MOST_FILES + 64) * _BLOCK
_MOST_STORED: Final = 0xFFFF  # bytes of a block that deflate stores (RFC 1951, 3.2.4)
MOST_PACKED: Final = _MOST_UNPACKED + (_MOST_UNPACKED // _MOST_STORED + 1) * 5 + 32
# Flags, time and extra flags 0, and an unknown operating system (RFC 1952, 2.3.1).
_GZIP_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP: Final = 31  # zlib's number for its largest window, in the format of gzip
_PART: Final = 1 << 16
# Names that mean something else on the systems on which bundles are unpacked.
_INVALID: Final = frozenset('\\:*?"<>|')


class ArchiveError(GpugateError):
    """Files cannot be packed, or an archive is invalid or hostile; the text says why."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of some files, by their relative names with `/`.

    Raises:
        ArchiveError: there are too many or too large files, or a name is invalid.
    """
    _refuse(files)
    blocks: list[bytes] = []
    for name, data in sorted(files.items()):
        header = tarfile.TarInfo(name)
        header.size, header.mode = len(data), 0o644
        try:
            blocks.append(header.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict"))
        except ValueError:
            raise ArchiveError(f"{name}: the name is too long for an archive: shorten it") from None
        blocks.append(data + b"\0" * (-len(data) % _BLOCK))
    blocks.append(b"\0" * (2 * _BLOCK))
    return _stored(b"".join(blocks))


def _stored(data: bytes) -> bytes:
    parts = [_GZIP_HEAD]
    for start in range(0, len(data), _MOST_STORED):
        part = data[start : start + _MOST_STORED]
        is_last = start + _MOST_STORED >= len(data)
        parts += [struct.pack("<BHH", is_last, len(part), len(part) ^ 0xFFFF), part]
    return b"".join([*parts, struct.pack("<II", zlib.crc32(data), len(data))])


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of an archive: name -> content.

    Memory and time are bounded by the limits of a bundle, whatever the archive says of itself. Only regular files with
    relative names are accepted: no links, devices, directories or extended headers, which `pack` does not write.

    Raises:
        ArchiveError: the archive is invalid, or exceeds a limit.
    """
    files: dict[str, bytes] = {}
    for name, content in _members(_unzipped(data)):
        if name in files:
            raise ArchiveError(f"the archive contains {name!r} twice")
        files[name] = content
        if len(files) > MOST_FILES:
            break
    _refuse(files)
    return files


def _unzipped(data: bytes) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    parts, size = [], 0
    try:
        rest = data
        while rest and not decompressor.eof:
            part = decompressor.decompress(rest, _PART)
            rest = decompressor.unconsumed_tail
            size += len(part)
            if size > _MOST_UNPACKED:
                raise ArchiveError(f"the archive unpacks to more than {_MOST_UNPACKED >> 20} MiB")
            parts.append(part)
    except zlib.error:
        raise ArchiveError("the layer is not gzip, or is damaged") from None
    if not decompressor.eof:
        raise ArchiveError("the archive is truncated")
    if decompressor.unused_data:
        raise ArchiveError("the archive has content after its end")
    return b"".join(parts)


def _members(tar: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while True:
        header = tar[at : at + _BLOCK]
        if not header.strip(b"\0"):
            break
        try:
            member = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError):
            raise ArchiveError("the archive is not a tar, or is damaged") from None
        if member.type not in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            raise ArchiveError(f"the archive contains {member.name!r}, which is not a regular file")
        start = at + _BLOCK
        if not 0 <= member.size <= len(tar) - start:
            raise ArchiveError(f"the archive is truncated in {member.name!r}")
        yield member.name, tar[start : start + member.size]
        at = start + member.size + -member.size % _BLOCK
    if tar[at:].strip(b"\0"):
        raise ArchiveError("the archive has content after its end")


def _refuse(files: Mapping[str, bytes]) -> None:
    if len(files) > MOST_FILES:
        raise ArchiveError(f"more than {MOST_FILES:,} files: remove some")
    if sum(map(len, files.values())) > MOST_BYTES:
        raise ArchiveError(f"the files are larger than {MOST_BYTES >> 20} MiB: remove some")
    folded: dict[str, str] = {}
    for name in files:
        wrong = _wrong_name(name)
        if wrong:
            raise ArchiveError(f"invalid file name {name!r}: {wrong}")
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            raise ArchiveError(f"the names {other!r} and {name!r} are one file where case is ignored: rename one")
    for name in folded:
        parent = next((above for above in _parents(name) if above in folded), None)
        if parent:
            raise ArchiveError(f"{folded[parent]!r} is a file and a directory")


def _wrong_name(name: str) -> str:
    parts = name.split("/")
    if not name or len(name.encode(errors="replace")) > _MOST_NAME:
        return f"empty, or longer than {_MOST_NAME} bytes"
    if name.startswith("/"):
        return "absolute"
    if any(part in {"", ".", ".."} for part in parts):
        return "contains an empty part, `.` or `..`"
    if any(part.lower() == ".git" for part in parts):
        return "in .git"
    if not name.isprintable() or not _INVALID.isdisjoint(name) or any(part[-1] in ". " for part in parts):
        return "contains characters that no file name can have on some systems"
    return ""


def _parents(name: str) -> Iterator[str]:
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)
