"""A Code Quality report, which GitLab shows in a merge request and next to its lines.

Paths are relative to the top of the repository. Each fingerprint is unique, because it stands for one entry. GitLab
shows only the description of the first version of a finding, so it names the policy. Source: GitLab 18 documentation,
"Code Quality report format".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.webhook.report import words
from gpugate.webhook.report.fingerprints import Fingerprints
from gpugate.webhook.report.located import Located, Report, Severity
from gpugate.webhook.report.plain import plain, plain_json

if TYPE_CHECKING:
    from pathlib import Path

_SEVERITIES: Final = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}

_Object = dict[str, Any]  # Any: the JSON edge


def write(report: Report, root: Path, project: Path) -> str:
    """Write a report.

    Args:
        report: the report.
        root: the working directory of the run, to which paths are relative.
        project: the top of the working copy, which GitLab sets in `CI_PROJECT_DIR`.
    """
    fingerprints = Fingerprints(project)
    entries = [_entry(finding, root, project, fingerprints) for finding in report.findings]
    return plain_json(msgspec.json.format(msgspec.json.encode(entries), indent=2).decode()) + "\n"


def _entry(finding: Located, root: Path, project: Path, fingerprints: Fingerprints) -> _Object:
    about = f" ({finding.object})" if finding.object else ""
    fixes = [f"Fix: {line}" for line in words.fixes(finding)][:1]
    text = ". ".join(plain(line) for line in [f"{words.message(finding)}{about}", *fixes])
    code = words.code(finding)
    return {
        "description": f"{code}: {text}",
        "check_name": code,
        "fingerprint": fingerprints.of(finding),
        "severity": _SEVERITIES[finding.severity],
        # A line is required, so findings of a whole file are reported at its first line.
        "location": {
            "path": _path(finding.location.file, root, project),
            "lines": {"begin": max(1, finding.location.line)},
        },
    }


def _path(file: str, root: Path, project: Path) -> str:
    """Return a path relative to the project; unchanged if it is elsewhere, such as `-` for standard input."""
    whole = type(root)(os.path.normpath(root / file))
    return plain(whole.relative_to(project).as_posix() if whole.is_relative_to(project) else file)
