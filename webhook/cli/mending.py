"""What `--fix` and `--diff` do with the changes that the findings of a run ask for."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.webhook.check.fix import MendedFile, mend
from gpugate.webhook.check.run import numbered
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.run import CheckResult
    from gpugate.webhook.manifests.inputs import Input, Passed
    from gpugate.webhook.manifests.problems import Problem

# One of them is set by every CI system whose logs hold commands.
_CI: Final = ("CI", "TF_BUILD", "TEAMCITY_VERSION")


@dataclass(frozen=True, slots=True)
class Mended:
    """The files that change, how many changes that are, and where one could not be made."""

    files: tuple[MendedFile, ...]
    changes: int
    left: tuple[str, ...]


def mended(
    found: Sequence[Input | Problem | Passed], result: CheckResult, ruleset: Ruleset, options: Options, *, unsafe: bool
) -> Mended:
    """Make the changes that findings ask for, on the texts alone."""
    wanted = {
        finding.place.file
        for finding in result.report.findings
        if finding.safely_fixable or (unsafe and finding.unsafely_fixable)
    }
    numbers = {number: file for number, file in numbered(found) if file.label in wanted}
    others = [fact for number, facts in result.facts if number not in numbers for fact in facts]
    files = mend(list(numbers.values()), others, ruleset, options, unsafe=unsafe)
    return Mended(
        tuple(file for file in files if file.after != file.before),
        sum(len(file.policies) for file in files),
        (*(line for file in files for line in file.left), *_rendered(result)),
    )


def _rendered(result: CheckResult) -> Iterator[str]:
    """Say what cannot be mended because no file has it as it was judged."""
    for finding in result.report.findings:
        if finding.place.is_template and not finding.exempt and (finding.fix or finding.patches):
            yield f"{finding.place.where}: {finding.policy} is left to you: what is judged is rendered from this file"


def diff(files: Sequence[MendedFile]) -> str:
    """Return the changes as a unified diff that `patch -p0` applies; on a terminal and in CI it is made harmless."""
    return "".join(line for file in files for line in _diff(file))


def _diff(file: MendedFile) -> Iterator[str]:
    name = file.file.label
    before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    is_read = sys.stdout.isatty() or any(os.environ.get(name) for name in _CI)
    for line in difflib.unified_diff(before, after, name, name):
        shown = plain(line.rstrip("\r\n")) + "\n" if is_read else line
        yield shown if shown.endswith("\n") else f"{shown}\n\\ No newline at end of file\n"


def write(file: MendedFile) -> None:
    """Write a file as a whole or not at all, where it really is and with the mode that it has.

    Raises:
        UsageError: it cannot be written, or was changed by somebody else meanwhile.
    """
    target = Path(os.path.realpath(file.file.name))
    # A name that nobody can foresee: a repository might have a link there, which would be followed.
    unfinished = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        if target.read_bytes() != file.before.encode(file.codec):
            raise UsageError(f"{file.file.label}: was changed meanwhile; run again")
        try:
            unfinished.write_bytes(file.after.encode(file.codec))
            shutil.copymode(target, unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file.file.label}: {(error.strerror or 'cannot be written').lower()}") from None
