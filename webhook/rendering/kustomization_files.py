"""What a kustomization names: which files and directories it uses, and what it would need a network or a program for."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.limits import MAX_BYTES
from gpugate.webhook.manifests.positions import Positions
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.rendered_sources import KUSTOMIZATION_FILES
from gpugate.webhook.manifests.within import GIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Path as FieldPath

_GROUP: Final = "kustomize.config.k8s.io/"
# Fields that list files or directories (sigs.k8s.io/kustomize/api v0.20 types.Kustomization).
_LISTS: Final = (
    "resources",
    "bases",
    "components",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "patchesStrategicMerge",
)
_WITH_PATH: Final = ("patches", "patchesJson6902", "replacements")
_GENERATORS: Final = ("configMapGenerator", "secretGenerator")
_FILES_OF_GENERATORS: Final = ("files", "envs")
_URL: Final = "://"
_REMOTE_SIGNS: Final = ("git@", "github.com/", "?ref=")
_FOREIGN: Final = ("helmCharts", "helmChartInflationGenerator")


@dataclass(frozen=True, slots=True)
class KustomizationFile:
    """A kustomization that was read.

    Attributes:
        directory: real path of its directory.
        file: the file's name for people.
        is_component: it is a part of others and cannot be built alone.
        directories: real paths of the directories that it builds on.
        files: real paths of the files that it uses.
        remote: what it would fetch, with its place.
        of_git: what it would read of git's own files, with its place.
        inflates: where it names Helm charts.
        sort_options: the order in which it wants objects written.
    """

    directory: str
    file: str
    text: str = ""
    is_component: bool = False
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    remote: tuple[tuple[str, int, int], ...] = ()
    of_git: tuple[tuple[str, int, int], ...] = ()
    inflates: tuple[int, int] | None = None
    sort_options: Any = None


@dataclass(slots=True)
class _Used:
    directories: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    remote: list[tuple[str, FieldPath]] = field(default_factory=list)
    of_git: list[tuple[str, FieldPath]] = field(default_factory=list)


def read_kustomization(directory: str, name: str = "") -> KustomizationFile | Problem | None:
    """Read the kustomization of a directory; None when there is none, or a file of that name is something else.

    Args:
        directory: as the user wrote it.
        name: the file's name, where it is known.
    """
    names = [name] if name else [each for each in KUSTOMIZATION_FILES if Path(directory, each).is_file()]
    if not names:
        return None
    shown = os.path.join(directory, names[0])  # noqa: PTH118 -- the user's `./` stays
    try:
        with Path(shown).open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        return Problem(shown, 0, 0, (error.strerror or "cannot be read").lower(), "make it readable for you")
    found = list(read_bytes(shown, data))
    wrong = next((part for part in found if isinstance(part, Problem) and not part.warning), None)
    if wrong:
        return wrong
    document = next((part for part in found if isinstance(part, Document)), None)
    value = document.value if document else {}
    if not document or not isinstance(value, dict) or not str(value.get("apiVersion") or _GROUP).startswith(_GROUP):
        return None
    real = os.path.realpath(directory)
    used = _used(real, value)
    placed = used.remote or used.of_git or any(each in value for each in _FOREIGN)
    positions = Positions(document) if placed else None

    def place(path: FieldPath) -> tuple[int, int]:
        span = positions.find(path) if positions else None
        return (span.line, span.column) if span else (0, 0)

    return KustomizationFile(
        directory=real,
        file=shown,
        text=document.text,
        is_component=value.get("kind") == "Component",
        directories=tuple(used.directories),
        files=tuple(used.files),
        remote=tuple((what, *place(path)) for what, path in used.remote),
        of_git=tuple((what, *place(path)) for what, path in used.of_git),
        inflates=next((place((each,)) for each in _FOREIGN if each in value), None),
        sort_options=value.get("sortOptions"),
    )


def _used(directory: str, value: dict[str, Any]) -> _Used:
    used = _Used()
    for entry, path in _entries(value):
        try:
            real = os.path.realpath(os.path.join(directory, entry))  # noqa: PTH118 -- a text for realpath
        except ValueError:
            continue  # a NUL, or half of a character: no name of a file, and kustomize says so
        # os.path, because pathlib raises for names that are too long, as a patch on one line is.
        if GIT in Path(real).parts:
            used.of_git.append((entry, path))
        elif _URL in entry:
            # kustomize fetches it also where a file has that name.
            used.remote.append((entry, path))
        elif os.path.isdir(real):  # noqa: PTH112 -- as above
            used.directories.append(real)
        elif os.path.exists(real) or not any(sign in entry for sign in _REMOTE_SIGNS):  # noqa: PTH110 -- as above
            # Also what is missing, which was perhaps deleted; kustomize says so.
            used.files.append(real)
        else:
            used.remote.append((entry, path))
    return used


def _entries(value: dict[str, Any]) -> Iterator[tuple[str, FieldPath]]:
    """Yield every name of a file or directory; texts over several lines are YAML in the place of a file."""
    for key in _LISTS:
        for index, entry in enumerate(_list(value.get(key))):
            if isinstance(entry, str) and "\n" not in entry:
                yield entry, (key, index)
    for key in _WITH_PATH:
        for index, entry in enumerate(_list(value.get(key))):
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                yield entry["path"], (key, index, "path")
    openapi = value.get("openapi")
    if isinstance(openapi, dict) and isinstance(openapi.get("path"), str):
        yield openapi["path"], ("openapi", "path")
    for key in _GENERATORS:
        for index, entry in enumerate(_list(value.get(key))):
            yield from _generator_files(entry, (key, index))


def _generator_files(entry: Any, path: FieldPath) -> Iterator[tuple[str, FieldPath]]:
    for key in _FILES_OF_GENERATORS if isinstance(entry, dict) else ():
        for number, file in enumerate(_list(entry.get(key))):
            if isinstance(file, str):
                yield file.partition("=")[2] or file, (*path, key, number)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
