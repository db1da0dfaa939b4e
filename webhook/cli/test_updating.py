"""What `gpugate test --update` does: shows the changes, writes them, and runs the changed tests again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.webhook.check.fix import MendedFile
from gpugate.webhook.cli import mending
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.policy_tests.collecting import Collector
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.session import Run, run_tests
from gpugate.webhook.policy_tests.updating import updates

if TYPE_CHECKING:
    from gpugate.webhook.policy_tests.setup import Setup


def update(run: Run, setup: Setup) -> tuple[Run, frozenset[tuple[str, str]], list[str]]:
    """Rewrite the expectations of the tests that failed.

    Returns:
        The run with the tests of changed files run anew; file and name of those that failed before and pass now; a line
        on each test that is left to its author.

    Raises:
        UsageError: a file cannot be written, or was changed by somebody else meanwhile.
    """
    made = updates(run.failed)
    changed = [MendedFile(each.file, each.before, each.after, each.codec) for each in made.files.values()]
    sys.stderr.write(mending.diff(changed))
    for file in changed:
        mending.write(file)
    failed = {(result.case.file, result.case.name) for result in run.failed}
    again = {
        (case.file, case.name): case
        for case in Collector().collect(Input(name, explicit=True) for name in made.files).cases
    }
    cases = [again.get((case.file, case.name), case) for case, _ in run.results]
    anew = run_tests(cases, setup)
    passed = frozenset(
        (case.file, case.name)
        for case, result in anew.results
        if not isinstance(result, CaseFileError) and result.passed and (case.file, case.name) in failed
    )
    return anew, passed, made.left
