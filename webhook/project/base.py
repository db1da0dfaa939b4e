"""What holds for changes of strangers: the settings of the revision that a change is to be merged into.

A change can write the project file, the policy file, the baseline and the schemas that it is checked by. With `--trust base`
these are read from the base revision, and the manifests from the change.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.git import GitError, Revision, revision
from gpugate.webhook.project.find import FILE, PYPROJECT, VARIABLE, Found, table, way_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The branch or commit that a change is to be merged into, in CI: variable -> how git calls it here. The first one that is
# set counts. Source: GitHub "Variables reference"; GitLab 18 "Predefined CI/CD variables reference".
VARIABLES: Final = {
    "GITHUB_BASE_REF": "origin/{}",
    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "{}",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA": "{}",
}


def base_of(reference: str | None, environment: Mapping[str, str], directory: Path) -> Revision:
    """Return the base revision: the one that is named, else the one that the variables of CI name.

    Raises:
        GitError: none is named, or git does not know it.
    """
    named = (form.format(environment[name]) for name, form in VARIABLES.items() if environment.get(name))
    chosen = reference or next(named, None)
    if chosen is None:
        raise GitError(f"--trust base: name the base with --base REV; none of {', '.join(VARIABLES)} is set")
    return revision(chosen, str(directory))


def read_from(base: Revision | None, path: Path, limit: int) -> bytes | None:
    """Return the content of a file of the base; None where there is no base, or the file is not of the repository.

    Raises:
        GitError: it is of the repository, and the base has no such file.
    """
    if base is None or not base.holds(str(path)):
        return None
    data = base.file(str(path), limit)
    if data is None:
        raise GitError(f"{path}: {base.name} has no such file: merge it first, or leave out --trust base")
    return data


def find_in(base: Revision, directory: Path, environment: Mapping[str, str]) -> Found | None:
    """Return the project file of the base that holds in a directory, as `find` does; None where it has none.

    Raises:
        GitError: git cannot say.
        ProjectFileError: a pyproject.toml is not TOML.
    """
    named = environment.get(VARIABLE)
    if named:
        return Found(Path(named))
    for folder in way_up(directory, environment.get("HOME", "")):
        for name in (FILE, PYPROJECT):
            file = folder / name
            data = base.file(str(file), MAX_BYTES) if base.holds(str(file)) else None
            if data is not None and (name == FILE or table(file, data) is not None):
                return Found(Path(os.path.relpath(file, directory)))
    return None


@contextmanager
def folder_of(base: Revision | None, folder: Path | None, usual: Path) -> Iterator[Path | None]:
    """Give a folder of the base as one on disk while the context lasts, and the folder itself where there is no base.

    Raises:
        GitError: git cannot say what is in it.
    """
    wanted = folder or usual
    if base is None or not base.holds(str(wanted)):
        yield folder
        return
    files = base.files(str(wanted), MAX_BYTES)
    if not files and folder is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="gpugate-") as temporary:
        for name, data in files.items():
            Path(temporary, name).write_bytes(data)
        yield Path(temporary)
