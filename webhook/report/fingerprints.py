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
    """Return a path from `root` on, with slashes, when the file is below it; else as it was given."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    return path.as_posix()


def uri(file: str, root: Path) -> str:
    """Return a path as the reference to a file in an URI: relative below `root`, else absolute."""
    path = relative(file, root)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


class Fingerprints:
    """Gives each finding of one report a fingerprint that no other one of it has; `root` is where paths start."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._counts: Counter[str] = Counter()

    def of(self, finding: Located) -> str:
        """Return the fingerprint; the second of two that are alike is numbered, so call it once for each."""
        name = finding.object
        # Without an object there is only the file and what is said of it.
        about: Sequence[str] = (relative(finding.location.file, self._root), finding.message)
        if name:
            about = (name.api_version, name.kind, name.namespace, name.name, finding.path)
        fingerprint = hashlib.sha256("\0".join((words.code(finding), *about)).encode(errors="replace")).hexdigest()
        self._counts[fingerprint] += 1
        return fingerprint if self._counts[fingerprint] == 1 else f"{fingerprint}:{self._counts[fingerprint]}"
