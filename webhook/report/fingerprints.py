"""Fingerprints that identify a finding across runs: policy, object and field, independent of line numbers."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpugate.webhook.report import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.report.located import Located


def relative(file: str, root: Path) -> str:
    """Return a path relative to `root`, with slashes, if the file is below it; else unchanged."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix()


def uri(file: str, root: Path) -> str:
    """Return a path as a URI reference: relative below `root`, else absolute."""
    path = relative(file, root)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


class Fingerprints:
    """Unique fingerprints for the findings of one report; paths are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._counts: Counter[str] = Counter()

    def of(self, finding: Located) -> str:
        """Return the fingerprint. Equal ones are numbered, so call it once for each finding."""
        name = finding.object
        # Without an object, the file and the message identify the finding.
        about: Sequence[str] = (relative(finding.location.file, self._root), finding.message)
        if name:
            about = (name.api_version, name.kind, name.namespace, name.name, finding.path)
        fingerprint = hashlib.sha256("\0".join((words.code(finding), *about)).encode(errors="replace")).hexdigest()
        self._counts[fingerprint] += 1
        return fingerprint if self._counts[fingerprint] == 1 else f"{fingerprint}:{self._counts[fingerprint]}"
