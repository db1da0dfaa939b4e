"""Tests of case files, and manifests with expectations, as tests of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.policy_tests.cases import Case
from gpugate.webhook.policy_tests.errors import CaseFileError
from gpugate.webhook.policy_tests.reporting import mistake
from gpugate.webhook.policy_tests.session import Run, run_one

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.webhook.policy_tests.collecting import Collected
    from gpugate.webhook.policy_tests.inline import InlineCase
    from gpugate.webhook.policy_tests.results import CaseResult
    from gpugate.webhook.pytest_plugin.coverage import Coverage

EXPECTATIONS = "expectations"


class CaseFailedError(Exception):
    """A verdict is not what a test expects."""

    def __init__(self, result: CaseResult, left: str = "") -> None:
        super().__init__(f"{len(result.failures)} differences")
        self.result = result
        self.left = left


class CaseFile(pytest.File):
    """A case file, or a file of manifests with expectations."""

    def __init__(self, *, collected: Collected, coverage: Coverage, **kwargs: Any) -> None:  # Any: pytest's, passed on
        super().__init__(**kwargs)
        self._collected = collected
        self._coverage = coverage

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, collected: Collected, coverage: Coverage) -> CaseFile:
        """Make the node of a file."""
        made: CaseFile = cls.from_parent(parent, path=path, collected=collected, coverage=coverage)
        return made

    def collect(self) -> Iterator[pytest.Item]:
        """Return its tests.

        Raises:
            CaseFileError: it cannot be read.
        """
        for error in self._collected.broken:
            raise error
        for case in self._collected.cases:
            name = case.name if isinstance(case, Case) else EXPECTATIONS
            yield CaseItem.from_parent(self, name=name, case=case, coverage=self._coverage)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show the place of a mistake in the file."""
        del style  # of tracebacks, and a file has none
        if isinstance(excinfo.value, CaseFileError):
            return str(mistake(excinfo.value))
        return super().repr_failure(excinfo)


class CaseItem(pytest.Item):
    """One test."""

    def __init__(self, *, case: Case | InlineCase, coverage: Coverage, **kwargs: Any) -> None:  # Any: as above
        super().__init__(**kwargs)
        self.case = case
        self._coverage = coverage

    def runtest(self) -> None:
        """Run it.

        Raises:
            CaseFailedError: the verdict is not what it expects.
            CaseFileError: it cannot be run.
        """
        result = run_one(self.case, self._coverage.setup)
        if isinstance(result, CaseFileError):
            raise result
        self._coverage.add(result)
        if result.passed:
            return
        if self.config.getoption("--gpugate-update"):
            self._update(result)
        raise CaseFailedError(result)

    def _update(self, result: CaseResult) -> None:
        from gpugate.webhook.cli.test import update  # noqa: PLC0415 -- few runs rewrite anything

        _, passing, left = update(Run([(self.case, result)]), self._coverage.setup)
        if passing:
            pytest.skip(f"its expectations were rewritten: {self.case.file}:{self.case.line}")
        raise CaseFailedError(result, "; ".join(left))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show what was expected and what came, with a frame of the file."""
        if isinstance(excinfo.value, CaseFailedError):
            shown = [str(failure) for failure in excinfo.value.result.failures]
            accept = excinfo.value.left or f"accept with: pytest --gpugate --gpugate-update {_quoted(self.nodeid)}"
            return "\n\n".join([*shown, accept])
        if isinstance(excinfo.value, CaseFileError):
            return str(mistake(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the test stands; pytest counts lines from 0."""
        return self.path, self.case.line - 1, self.name


def _quoted(nodeid: str) -> str:
    import shlex  # noqa: PLC0415 -- only for a failure

    return shlex.quote(nodeid)
