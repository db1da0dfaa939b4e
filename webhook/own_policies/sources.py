"""Directories of policies: `DIRECTORY/<organisation>/<name>.py` or `.yaml`, read within limits, from disk or from a commit."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.within import is_within, refuse_link

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.manifests.git import Revision

# The group of entry points with which a package names its policies.
GROUP: Final = "gpugate.policies"
MOST_FILES: Final = 500
MOST_POLICIES: Final = 500
MOST_FILE_BYTES: Final = 256 * 1024
MOST_BYTES: Final = 8 * 2**20
# Entries of one directory, of any kind; listing more takes longer than reading the largest allowed set.
_MOST_ENTRIES: Final = 5_000
_PART: Final = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*", re.ASCII)
_PYTHON: Final = ".py"
_DOCUMENTS: Final = (".yaml", ".yml")
# The head of a policy document. A search is enough for a hint at a misplaced file, and reads no YAML.
_KIND_LINE: Final = re.compile(rb"^apiVersion: *[\"']?gpugate\.dev/.*\n+kind: *[\"']?Policy[\"']? *\r?$", re.MULTILINE)
# Examples are read where they are tested, and Python's own files never.
_SKIPPED: Final = frozenset({"__pycache__", "__init__.py", "examples"})


class OwnPolicyError(GpugateError):
    """A policy outside the library cannot be read or loaded; the text has file, line and what to do."""


class OwnPolicy(Struct, frozen=True):
    """A policy outside the library.

    Attributes:
        policy: the policy.
        origin: its file, or its package with the version.
        examples: the folder of its examples, which need not exist.
    """

    policy: Policy
    origin: str
    examples: Path


class PolicySource(Struct, frozen=True):
    """One file of a directory of policies.

    Attributes:
        family: the organisation, which is the folder's name.
        name: the name of the file without its suffix; it begins with `_` if the file contains only shared code.
        file: the path, as messages show it.
        data: the content.
        examples: the folder of the examples.
    """

    family: str
    name: str
    file: str
    data: bytes
    examples: str

    @property
    def is_python(self) -> bool:
        """Whether the file contains Python; otherwise it contains YAML documents."""
        return self.file.endswith(_PYTHON)


def read_directories(
    directories: Sequence[Path], base: Revision | None = None, name: str = "--policy-path"
) -> tuple[PolicySource, ...]:
    """Read directories of policies.

    Args:
        directories: the directories.
        base: read directories of its work tree from this commit; a directory that the commit does not have is empty.
        name: what names the directories, for messages.

    Raises:
        GitError: git cannot read the commit.
        LinkError: a directory is a link out of the repository.
        OwnPolicyError: a directory is missing or too large, or a name in it is invalid.
    """
    sources: list[PolicySource] = []
    size = 0
    for directory in dict.fromkeys(directories):
        if base is not None and base.holds(str(directory)):
            listed = _committed(directory, base)
        else:
            refuse_link(directory, name)
            listed = _on_disk(directory, name)
        for source in listed:
            sources.append(source)
            size += len(source.data)
            if len(sources) > MOST_FILES:
                raise OwnPolicyError(f"{directory}: more than {MOST_FILES} files of policies: remove some")
            if size > MOST_BYTES:
                raise OwnPolicyError(f"{directory}: policies larger than {MOST_BYTES >> 20} MiB: remove some")
    return tuple(sources)


def _on_disk(directory: Path, name: str) -> Iterator[PolicySource]:
    if not directory.is_dir():
        raise OwnPolicyError(f"{name} {directory}: no such directory; create it with `gpugate new-policy`")
    top = os.path.realpath(directory)
    loose = 0
    for family in _entries(directory):
        if not family.is_dir():
            loose += 1
            _refuse_loose(directory, family.name, _small(family) if loose <= MOST_FILES else b"")
            continue
        for entry in _entries(Path(family.path)):
            if not _is_policy(entry.name):
                continue
            file = Path(entry.path)
            if not is_within(entry.path, top):
                raise OwnPolicyError(f"{file}: a link out of {directory}: put the file in its place")
            try:
                data = read_regular(file, MOST_FILE_BYTES)
            except OSError as error:
                raise OwnPolicyError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
            yield _source(directory, family.name, entry.name, data)


def _committed(directory: Path, base: Revision) -> Iterator[PolicySource]:
    files = base.tree(str(directory), MOST_BYTES, _MOST_ENTRIES, lambda path: _is_policy(PurePosixPath(path).name))
    for path, data in sorted(files.items()):
        family, _, name = path.partition("/")
        if not name:
            _refuse_loose(directory, family, data)
        elif "/" not in name and not _is_hidden(family):
            yield _source(directory, family, name, data)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as scanned:
            entries = [entry for _, entry in zip(range(_MOST_ENTRIES + 1), scanned, strict=False)]
    except OSError as error:
        raise OwnPolicyError(f"{directory}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(entries) > _MOST_ENTRIES:
        raise OwnPolicyError(f"{directory}: more than {_MOST_ENTRIES:,} entries: name a directory of policies")
    return sorted((entry for entry in entries if not _is_hidden(entry.name)), key=lambda entry: entry.name)


def _is_hidden(name: str) -> bool:
    # The kubelet mounts a ConfigMap with `..data` and another directory that begins with two dots.
    return name.startswith(".") or name in _SKIPPED


def _is_policy(name: str) -> bool:
    return name.endswith((_PYTHON, *_DOCUMENTS)) and not _is_hidden(name)


def _small(entry: os.DirEntry[str]) -> bytes:
    """Return the content of a YAML file; nothing of a large file or of one that cannot be read."""
    try:
        return read_regular(Path(entry.path), MOST_FILE_BYTES) if entry.name.endswith(_DOCUMENTS) else b""
    except OSError:
        return b""


def _refuse_loose(directory: Path, name: str, data: bytes) -> None:
    is_policy = name.endswith(_PYTHON) or (name.endswith(_DOCUMENTS) and _KIND_LINE.search(data) is not None)
    if is_policy and not _is_hidden(name):
        raise OwnPolicyError(
            f"{directory / name}: not in the folder of an organisation: move it to {directory / 'acme' / name}, "
            "where `acme` is your organisation"
        )


def _source(directory: Path, family: str, file_name: str, data: bytes) -> PolicySource:
    file = directory / family / file_name
    name = file_name.rpartition(".")[0]
    if len(data) > MOST_FILE_BYTES:
        raise OwnPolicyError(f"{file}: larger than {MOST_FILE_BYTES >> 10} KiB")
    # The names of YAML files are free, because the documents have the ids of their policies.
    names = [(family, "folder"), (name.removeprefix("_"), "file")]
    for part, sort in names if file_name.endswith(_PYTHON) else names[:1]:
        if not _PART.fullmatch(part):
            raise OwnPolicyError(
                f"{file}: invalid name of a {sort}: use lower-case letters, digits and `_`, such as no_h100_in_dev.py"
            )
    return PolicySource(family, name, str(file), data, str(directory / family / "examples" / name))


def signatures(directories: Iterable[Path]) -> tuple[tuple[object, ...], ...]:
    """Return what changes when a file of some directories changes, without reading the files; links are followed.

    A directory or file that cannot be read has no signature.
    """
    signature: list[tuple[object, ...]] = []
    for directory in directories:
        try:
            families = [entry for entry in _entries(directory) if entry.is_dir()]
            files = [file for family in families for file in _entries(Path(family.path)) if _is_policy(file.name)]
            for file in files[: MOST_FILES + 1]:
                status = file.stat()
                signature.append((file.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
        except (OSError, OwnPolicyError):
            continue
    return tuple(signature)


def digest(sources: Iterable[PolicySource]) -> bytes:
    """Return a digest of names and contents."""
    import hashlib  # noqa: PLC0415 -- loads OpenSSL, which `check` does without

    content = hashlib.sha256()
    for source in sources:
        content.update(f"{source.family}/{source.name}\0{source.file}\0{len(source.data)}\0".encode())
        content.update(source.data)
    return content.digest()
