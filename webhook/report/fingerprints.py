"""What makes a finding the same one in two runs: policy, object and field, so that it outlives changes to the lines around."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from gpugate.webhook.report import words
from gpugate.webhook.report.uris import relative

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpugate.webhook.report.located import Located


class Fingerprints:
    """Gives each finding of one report a fingerprint that no other one of it has; `root` is where paths start."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: Counter[str] = Counter()

    def of(self, finding: Located) -> str:
        """Return the fingerprint; the second of two that are alike is numbered, so call it once for each."""
        name = finding.object
        # Without an object there is only the file and what is said of it.
        about: Sequence[str] = (relative(finding.place.file, self._root), finding.message)
        if name:
            about = (name.api_version, name.kind, name.namespace, name.name, finding.path)
        found = hashlib.sha256("\0".join((words.code(finding), *about)).encode(errors="replace")).hexdigest()
        self._seen[found] += 1
        return found if self._seen[found] == 1 else f"{found}:{self._seen[found]}"
