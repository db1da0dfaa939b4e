"""Finds what in a chart would make Helm read what is not in the repository."""

from __future__ import annotations

import json
import os
import tarfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import is_git, link_out, refusal, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_REMEDY: Final = "put a file in its place, or leave the chart out with --exclude"
_SCHEMA: Final = "values.schema.json"
_ARCHIVE: Final = ".tgz"
_SUBCHARTS: Final = "charts"
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
# Drafts that Helm's libraries hold themselves (gojsonschema 1.2 of Helm 3, santhosh-tekuri/jsonschema 6 of Helm 3.18 and 4).
_DRAFTS: Final = ("http://json-schema.org/", "https://json-schema.org/")
_DEEPEST: Final = 4  # archives within archives


def obstacle(chart: str) -> Problem | None:
    """Say why a chart is not rendered; None where nothing is in the way.

    Helm follows all links and lets templates print any file below the chart's directory (`.Files.Get`), and a schema of
    values may refer to any file or URL (`$ref`). The author of a change may have written them. A link to the top of the
    repository leads to what is git's. Where nothing says which tree the chart belongs to, its links may lead anywhere.

    Args:
        chart: its directory or archive, as the user wrote it.
    """
    own = link_out(chart)
    if own is not None:
        return Problem(own, 0, 0, "a link out of the repository", _REMEDY)
    if not Path(chart).is_dir():
        return _of_archive(chart)
    top = tree_of(chart)
    visited: set[str] = set()
    for folder, folders, files in os.walk(chart, followlinks=True):
        # Of the chart's own top, `chart_stage` leaves it out.
        if folder == chart:
            folders[:], files[:] = [[name for name in names if not is_git(name)] for names in (folders, files)]
        git = next(filter(is_git, folders), None)
        if top is not None and git is not None:
            path = os.path.join(folder, git)  # noqa: PTH118 -- as below
            return Problem(path, 0, 0, "git's own files, which a template of this chart could print", _REMEDY)
        for name in sorted((*folders, *files)):
            path = os.path.join(folder, name)  # noqa: PTH118 -- the user's `./` stays
            wrong = refusal(path, top) if top is not None else ""
            if wrong:
                kind = "a link out of the repository, to which" if os.path.islink(path) else f"{wrong}, at which"  # noqa: PTH114 -- of a text
                return Problem(path, 0, 0, f"{kind} a template of this chart could look", _REMEDY)
            problem = _of_schema(path) if name == _SCHEMA else None
            if problem is None and name.endswith(_ARCHIVE) and os.path.basename(folder) == _SUBCHARTS:  # noqa: PTH119 -- of a text
                problem = _of_archive(path)
            if problem is not None:
                return problem
        # Links to directories above would be followed for ever.
        folders[:] = [name for name in sorted(folders) if _is_new(os.path.join(folder, name), visited)]  # noqa: PTH118 -- as above
    return None


def _is_new(folder: str, visited: set[str]) -> bool:
    real = os.path.realpath(folder)
    is_new = real not in visited
    visited.add(real)
    return is_new


def _of_schema(path: str) -> Problem | None:
    try:
        data = read_regular(Path(path), MAX_BYTES)
    except OSError:
        return None  # Helm says why it cannot be read
    return _refused(path, data)


def _of_archive(path: str) -> Problem | None:
    """Look at the schemas in an archive, and in those that it holds."""
    try:
        data = read_regular(Path(path), MAX_BYTES)
        return next((problem for name, text in _schemas(path, data, 1) if (problem := _refused(name, text))), None)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        cause = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)
        return Problem(path, 0, 0, f"an archive that gpugate cannot look into: {cause}", _REMEDY)


def _schemas(path: str, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    left = MAX_BYTES  # of what is unpacked: an archive can hold far more than its size
    with tarfile.open(fileobj=BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            left -= member.size
            if left < 0 or depth > _DEEPEST:
                raise ValueError(f"it holds more than {MAX_BYTES >> 20} MiB, or archives in archives in archives")
            name = member.name.rpartition("/")[2]
            opened = archive.extractfile(member) if name == _SCHEMA or name.endswith(_ARCHIVE) else None
            text = opened.read() if opened is not None else b""
            if name == _SCHEMA:
                yield f"{path}!{member.name}", text
            elif text and f"/{_SUBCHARTS}/" in member.name:
                yield from _schemas(f"{path}!{member.name}", text, depth + 1)


def _refused(path: str, data: bytes) -> Problem | None:
    try:
        # As Go reads it, which knows no limit of digits and takes any bytes for text.
        value = json.loads(data.decode(errors="replace"), parse_int=str)
    except (ValueError, RecursionError):
        return Problem(path, 0, 0, "is not JSON that gpugate can read, so its `$ref` are unknown", _REMEDY)
    waiting: list[Any] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            away = next(
                (key for key, value in node.items() if isinstance(value, str) and _leads_away(key, value)), None
            )
            if away is not None:
                wrong = f"{away}: {node[away][:200]!r} is another document, which gpugate does not let Helm read"
                return Problem(path, 0, 0, wrong, "take the definition into this file: `#/$defs/NAME`")
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return None


def _leads_away(key: str, value: str) -> bool:
    if key in _REFERENCES:
        return not value.startswith("#")
    return key == "$schema" and not value.startswith(_DRAFTS)
