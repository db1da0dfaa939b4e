"""`make audit-dependencies`: asks for known vulnerabilities of what the image holds.

`python image/advisories.py REQUIREMENTS` with pip-audit (https://github.com/pypa/pip-audit) installed. Exit codes: 0, a source
answered and knows of none; 1, it knows of some; 4, no source answered, or not for everything.

pip-audit takes an answer without advisories for one that says there are none, which is what a mirror of the package index
sends that does not carry them. So a source is believed only if it knows what is wrong with a release for which everyone does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

# In the order in which they are asked.
_SOURCES = ("pypi", "osv")
# CVE-2020-14343: PyYAML before 5.4 runs what a document says.
_KNOWN_TO_ALL = "pyyaml==5.3.1"
_FOUND, _INCOMPLETE = 1, 4
_FINDINGS = "known vulnerabilit"
NOTHING_KNOWN = "no advisory source could be reached: nothing is known"


def main() -> int:
    """Read the command line, ask, and return the exit code."""
    (requirements,) = map(Path, sys.argv[1:])
    for source in _SOURCES:
        reason = _unusable(source)
        if reason is None:
            return _asked(source, requirements)
        print(f"{source}: {reason}", file=sys.stderr)
    print(f"error: {NOTHING_KNOWN}", file=sys.stderr)
    return _INCOMPLETE


def _unusable(source: str) -> str | None:
    """Say why a source is not to be believed; None if it is."""
    with tempfile.TemporaryDirectory(prefix="gpugate-") as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text(f"{_KNOWN_TO_ALL}\n", encoding="utf-8")
        ran = _audited(source, file, "--no-deps")
    if ran.returncode == 0:
        return f"answers, and has no advisories: it says that nothing is wrong with {_KNOWN_TO_ALL}"
    if _found(ran):
        return None
    return (ran.stderr.strip().splitlines() or ["no answer"])[-1]


def _asked(source: str, requirements: Path) -> int:
    ran = _audited(source, requirements, "--require-hashes")
    print(f"asked: {source}")
    if ran.returncode == 0:
        print(ran.stdout, ran.stderr, sep="", end="")
        return 0
    print(ran.stdout, ran.stderr, sep="", end="", file=sys.stderr)
    if _found(ran):
        return _FOUND
    print(f"error: {source} did not answer for everything: not all is known", file=sys.stderr)
    return _INCOMPLETE


def _audited(source: str, requirements: Path, *options: str) -> subprocess.CompletedProcess[str]:
    asked = ("--strict", "--disable-pip", "--progress-spinner", "off", "-s", source, "-r", str(requirements))
    command = [sys.executable, "-m", "pip_audit", *asked, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- with arguments of ours


def _found(ran: subprocess.CompletedProcess[str]) -> bool:
    # Its exit code is the same for a vulnerability and for a source that does not answer; this line is not (v2.10.1).
    return any(line.startswith("Found ") and _FINDINGS in line for line in ran.stderr.splitlines())


if __name__ == "__main__":
    sys.exit(main())
