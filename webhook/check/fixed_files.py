"""Fixes of all files of a run: repeated until no fix causes another finding, as a diff, and written."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.structs import Struct, replace
from gpugate.webhook.check.fix import FixedFile, apply_fixes
from gpugate.webhook.check.run import numbered
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.run import CheckResult
    from gpugate.webhook.manifests.inputs import Found
    from gpugate.webhook.report.located import Located

# CI systems that execute commands in logs set one of these.
_CI: Final = ("CI", "TF_BUILD", "TEAMCITY_VERSION")


# Each checks all files again. A fix in one file may cause a finding in another, rarely that one a third.
_PASSES: Final = 10


class Fixes(Struct, frozen=True):
    """The files with changes, and a line for each fix that was not applied."""

    files: tuple[FixedFile, ...]
    left: tuple[str, ...]

    @property
    def changes(self) -> int:
        """The number of changes."""
        return sum(len(file.policies) for file in self.files)


def fix_files(
    inputs: Sequence[Found],
    result: CheckResult,
    fix: Callable[[Sequence[Found], CheckResult], Fixes],
    again: Callable[[list[Found]], CheckResult],
) -> tuple[Fixes, CheckResult]:
    """Compute the fixes of findings, also of those that another fix causes in another file. Writes no file.

    Args:
        inputs: the files of the run.
        result: the result of a check of them.
        fix: computes the fixes of the findings of one check.
        again: checks the files with their new texts.

    Returns:
        All fixes, and the result of the last check.
    """
    files = dict[str, FixedFile]()
    left: tuple[str, ...] = ()
    for _ in range(_PASSES):
        fixes = fix(inputs, result)
        left = fixes.left
        if not fixes.files:
            break
        for file in fixes.files:
            first = files.get(file.file.name)
            files[file.file.name] = file if first is None else first.followed_by(file)
        new = {name: file.after.encode(file.codec) for name, file in files.items()}
        inputs = [
            replace(part, data=new[part.name]) if isinstance(part, Input) and part.name in new else part
            for part in inputs
        ]
        result = again(list(inputs))
        if any(file.is_unfinished for file in fixes.files):
            break
    else:
        left = (*left, f"fixes are incomplete after {_PASSES} passes, each of which caused another finding; run again")
    ordered = (files[part.name] for part in inputs if isinstance(part, Input) and part.name in files)
    return Fixes(tuple(file for file in ordered if file.after != file.before), left), result


def fixes_of(
    inputs: Sequence[Found], result: CheckResult, ruleset: Ruleset, options: Options, *, unsafe: bool
) -> Fixes:
    """Compute the fixes of the findings of one check."""
    fixable = {
        finding.location.file
        for finding in _with_related(result.report.findings)
        if finding.safely_fixable or (unsafe and finding.unsafely_fixable)
    }
    numbers = {number: file for number, file in numbered(inputs) if file.label in fixable}
    others = [fact for number, facts in result.facts for fact in facts if number not in numbers or fact.object is None]
    files = apply_fixes(list(numbers.values()), others, ruleset, options, unsafe=unsafe)
    return Fixes(
        tuple(file for file in files if file.after != file.before),
        (*(line for file in files for line in file.left), *_rendered(result)),
    )


def _with_related(findings: Iterable[Located]) -> Iterator[Located]:
    """Yield findings and their further locations, which have separate fixes."""
    for finding in findings:
        yield finding
        yield from finding.related


def _rendered(result: CheckResult) -> Iterator[str]:
    """Yield a line for each fix that does not apply, because no file contains the evaluated object."""
    for finding in _with_related(result.report.findings):
        if finding.location.is_template and not finding.exempt and (finding.fix or finding.patches):
            why = "the evaluated object is rendered from this file"
            if finding.location.unrendered:
                why = "its chart or kustomization was not rendered"
            elif finding.location.file.endswith(".tf"):
                why = "gpugate does not edit Terraform"
            yield f"{finding.location.where}: {finding.policy} was not fixed: {why}"


def diff_of(files: Sequence[FixedFile]) -> str:
    """Return the changes as a unified diff that `patch -p0` applies; on a terminal and in CI without control characters."""
    return "".join(line for file in files for line in _diff(file))


def _diff(file: FixedFile) -> Iterator[str]:
    import difflib  # noqa: PLC0415 -- only --diff needs it, and it costs start-up time

    name = file.file.label
    before, after = file.before.splitlines(keepends=True), file.after.splitlines(keepends=True)
    is_read = sys.stdout.isatty() or any(os.environ.get(name) for name in _CI)
    for line in difflib.unified_diff(before, after, name, name):
        printed = plain(line.rstrip("\r\n")) + "\n" if is_read else line
        yield printed if printed.endswith("\n") else f"{printed}\n\\ No newline at end of file\n"


def write_fixed(file: FixedFile) -> None:
    """Write a file as a whole or not at all, at the target of links and with its present mode.

    Raises:
        UsageError: it cannot be written, or changed during the run.
    """
    target = Path(os.path.realpath(file.file.name))
    # An unpredictable name: a repository might have a link at a known one, which would be followed.
    unfinished = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        if target.read_bytes() != file.before.encode(file.codec):
            raise UsageError(f"{file.file.label}: changed during the run; run again")
        try:
            unfinished.write_bytes(file.after.encode(file.codec))
            shutil.copymode(target, unfinished)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file.file.label}: {(error.strerror or 'cannot be written').lower()}") from None
