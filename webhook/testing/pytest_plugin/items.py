"""Collect case files and marked manifests as pytest items.

Only files that pytest visits can become tests. A pattern that matches none of them is an error: with a typo, or for a
directory missing in `testpaths`, it would otherwise always pass.

All objects are evaluated in one run of `gpugate check`, so that they are cluster data for each other.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.manifests.documents import Positions
from gpugate.webhook.manifests.inputs import Input, expand
from gpugate.webhook.manifests.load import parts
from gpugate.webhook.manifests.objects import Manifest
from gpugate.webhook.report import text
from gpugate.webhook.report.located import ObjectName, Report, Severity
from gpugate.webhook.report.view import View
from gpugate.webhook.testing.cases import CaseFileError, ExampleCase, InlineCase
from gpugate.webhook.testing.collecting import Collector
from gpugate.webhook.testing.pytest_plugin.reviewing import checked
from gpugate.webhook.testing.pytest_plugin.surroundings import relative_name, surroundings
from gpugate.webhook.testing.results import PolicyCoverage
from gpugate.webhook.testing.run import Run, Tally, mistake, run_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.manifests.documents import Document
    from gpugate.webhook.report.located import Located
    from gpugate.webhook.testing.cases import AnyCase
    from gpugate.webhook.testing.collecting import Collected
    from gpugate.webhook.testing.comparing import CaseResult
    from gpugate.webhook.testing.setup import Setup

_KEY: Final = "gpugate_collected"
_MOST_NAMES: Final = 3


class Patterns:
    """The files that patterns of the settings match, and those of them that were collected, in whichever process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        patterns: list[str] = config.getini("gpugate_manifests")
        self._matched = {pattern: _matches(config.rootpath, pattern) for pattern in patterns}
        self.files = frozenset(file for files in self._matched.values() for file in files)
        self.collected: set[Path] = set()
        self._is_finished = False

    def pytest_collection_finish(self) -> None:
        """Note that nothing kept pytest from collecting everything."""
        self._is_finished = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the collected files to the main process, or fail the run if a file was not evaluated."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # Any: what xdist can send
        if output is not None:
            output[_KEY] = sorted(map(str, self.collected)) if self._is_finished else None
        elif session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} and any(self._wrong()):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # Any: xdist has no types
        """Add the files that another process collected."""
        sent = getattr(node, "workeroutput", {}).get(_KEY)
        if sent is not None:
            self._is_finished = True
            self.collected.update(map(Path, sent))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the patterns."""
        wrong = list(self._wrong())
        if wrong:
            terminalreporter.section("gpugate_manifests", red=True)
            for line in wrong:
                terminalreporter.line(line)

    def _wrong(self) -> Iterator[str]:
        if not self._is_finished:
            return
        source = relative_name(self._config.inipath) if self._config.inipath else "-o"
        for pattern, files in self._matched.items():
            if not files:
                yield f"{source}: gpugate_manifests: {pattern} matches no file below {self._config.rootpath}: correct it"
            left = sorted(file for file in files if file not in self.collected and self._is_wanted(file))
            if left:
                more = f" and {len(left) - _MOST_NAMES} more" if len(left) > _MOST_NAMES else ""
                names = ", ".join(map(relative_name, left[:_MOST_NAMES]))
                yield (
                    f"{source}: gpugate_manifests: {pattern} matches {names}{more}, which pytest did not collect, so that "
                    "nothing judged them: add their directory to `testpaths`"
                )

    def _is_wanted(self, file: Path) -> bool:
        """Tell whether the arguments of the run include a file; without arguments, all files."""
        if self._config.args_source is not pytest.Config.ArgsSource.ARGS:
            return True
        here = self._config.invocation_params.dir
        paths = (os.path.join(here, argument.partition("::")[0]) for argument in self._config.args)  # noqa: PTH118 -- below
        named = (os.path.normpath(path) for path in paths)  # `resolve` would follow links, which pytest does not
        return any(file.is_relative_to(path) for path in named)


def _matches(root: Path, pattern: str) -> frozenset[Path]:
    try:
        return frozenset(file for file in root.glob(pattern) if file.is_file())
    except (NotImplementedError, ValueError):
        return frozenset()  # a whole path, or none


_COVERAGE_KEY: Final = "gpugate_coverage"


class Coverage:
    """Sums up the coverage and reports it at the end; `wanted` is the minimum in percent, None if not requested."""

    def __init__(self, setup: Setup, wanted: float | None) -> None:
        self.setup = setup
        self._wanted = wanted
        self._tally = Tally(setup.bound(setup.config)[0])
        self._others: list[PolicyCoverage] = []

    def add(self, result: CaseResult) -> None:
        """Add a test that was run in this process."""
        if self._wanted is not None:
            self._tally.add(result)

    @property
    def total(self) -> PolicyCoverage:
        """The policies exercised in all processes."""
        every = [self._tally.coverage(), *self._others]
        bound = dict.fromkeys(policy for coverage in every for policy in coverage.bound)
        failing = frozenset[str]().union(*(coverage.failing for coverage in every))
        return PolicyCoverage(tuple(bound), failing, frozenset[str]().union(*(coverage.passed for coverage in every)))

    @property
    def is_low(self) -> bool:
        """Whether the coverage is below the minimum."""
        return self._wanted is not None and self.total.percent < self._wanted

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the coverage to the main process, or fail the run if it is too low."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # Any: what xdist can send
        if output is not None:
            mine = self._tally.coverage()
            output[_COVERAGE_KEY] = [list(mine.bound), sorted(mine.failing), sorted(mine.passed)]
        elif self.is_low and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # Any: xdist has no types
        """Add the coverage of another process."""
        sent = getattr(node, "workeroutput", {}).get(_COVERAGE_KEY)
        if sent:
            bound, failing, passed = sent
            self._others.append(PolicyCoverage(tuple(bound), frozenset(failing), frozenset(passed)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the coverage, and the policies without a test."""
        if self._wanted is None:
            return
        total = self.total
        enough = f", and {self._wanted:g} % is asked for" if self.is_low else ""
        terminalreporter.section("gpugate policy coverage")
        terminalreporter.line(f"{len(total.covered)}/{len(total.bound)} ({total.percent:.0f} %){enough}")
        for kind, policies in (("failing", total.without_failing), ("passing", total.without_passing)):
            if policies:
                terminalreporter.line(f"without a {kind} case: {', '.join(policies)}")


class ObjectDeniedError(Exception):
    """Admission would deny an object; `findings` say why."""

    def __init__(self, findings: list[Located]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings


class Objects:
    """The files of the setting and their findings, evaluated when the first test is run."""

    def __init__(self, config: pytest.Config, patterns: Patterns) -> None:
        self._config = config
        self._patterns = patterns

    @cached_property
    def denials(self) -> tuple[Located, ...]:
        """The denials, and the errors of files that could not be read or evaluated.

        Raises:
            GpugateError: the project file or the policy file is refused.
        """
        files = map(relative_name, sorted(self._patterns.files))
        report, _ = checked(["--no-render", "--", *files], self._config)
        return tuple(finding for finding in report.findings if finding.severity is Severity.ERROR)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that the setting names."""
        if file_path not in self._patterns.files:
            return None
        self._patterns.collected.add(file_path)
        return ObjectFile.of(parent, file_path, self)


class ObjectFile(pytest.File):
    """A file of manifests."""

    def __init__(self, *, objects: Objects, **kwargs: Any) -> None:  # Any: pytest's own arguments, passed on
        super().__init__(**kwargs)
        self._objects = objects

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, objects: Objects) -> ObjectFile:
        """Make the node of a file."""
        node: ObjectFile = cls.from_parent(parent, path=path, objects=objects)
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Return a test for each object, and one for the file as a whole."""
        file = relative_name(self.path)
        yield ObjectItem.from_parent(self, name="can be read", file=file, objects=self._objects)
        counts: Counter[str] = Counter()
        for part in parts(Input(file, explicit=True), "default"):
            if isinstance(part, Manifest):
                request = part.request
                name = ObjectName(request.kind.api_version, request.kind.kind, request.namespace, request.shown_name)
                counts[str(name)] += 1
                number = f" ({counts[str(name)]})" if counts[str(name)] > 1 else ""
                yield ObjectItem.from_parent(
                    self, name=f"{name}{number}", file=file, objects=self._objects, of=name, manifest=part
                )


class ObjectItem(pytest.Item):
    """An object, or the errors of a file outside of its objects."""

    def __init__(
        self,
        *,
        file: str,
        objects: Objects,
        of: ObjectName | None = None,
        manifest: Manifest | None = None,
        **kwargs: Any,  # Any: pytest's own arguments, passed on
    ) -> None:
        super().__init__(**kwargs)
        self._file = file
        self._objects = objects
        self._of = of
        self._document: Document | None = manifest.document if manifest else None
        self._line = Positions(manifest.document).find(manifest.prefix).line if manifest else 1

    def runtest(self) -> None:
        """Fail if admission would deny the object."""
        denials = [denial for denial in self._objects.denials if self._concerns(denial)]
        if denials:
            raise ObjectDeniedError(denials)

    def _concerns(self, finding: Located) -> bool:
        if finding.location.file != self._file or finding.object != self._of:
            return False
        if self._document is None:
            return True
        first = self._document.first_line
        return first <= finding.location.line < first + max(1, len(self._document.text.splitlines()))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show the findings with frames of the file, as `gpugate check` does."""
        if isinstance(excinfo.value, ObjectDeniedError):
            return text.write(Report(tuple(excinfo.value.findings)), view=View(quiet=True)).rstrip("\n")
        if isinstance(excinfo.value, GpugateError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the object; pytest counts lines from 0."""
        return self.path, self._line - 1, self.name


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
        node: CaseFile = cls.from_parent(parent, path=path, collected=collected, coverage=coverage)
        return node

    def collect(self) -> Iterator[pytest.Item]:
        """Return its tests.

        Raises:
            CaseFileError: it cannot be read.
        """
        for error in self._collected.broken:
            raise error
        for case in self._collected.cases:
            name = EXPECTATIONS if isinstance(case, InlineCase) else case.name
            yield CaseItem.from_parent(self, name=name, case=case, coverage=self._coverage)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show the location of an error in the file."""
        del style  # of tracebacks, and a file has none
        if isinstance(excinfo.value, CaseFileError):
            return str(mistake(excinfo.value))
        return super().repr_failure(excinfo)


class CaseItem(pytest.Item):
    """One test."""

    def __init__(self, *, case: AnyCase, coverage: Coverage, **kwargs: Any) -> None:  # Any: as above
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
        from gpugate.webhook.testing.command import update  # noqa: PLC0415 -- few runs rewrite anything

        _, passing, left = update(Run([(self.case, result)]), self._coverage.setup)
        if passing:
            pytest.skip(f"its expectations were rewritten: {self.case.file}:{self.case.line}")
        raise CaseFailedError(result, "; ".join(left))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show the expected and actual values, with a frame of the file."""
        if isinstance(excinfo.value, CaseFailedError):
            failures = [str(failure) for failure in excinfo.value.result.failures]
            if isinstance(self.case, ExampleCase):
                return "\n\n".join(failures)
            accept = excinfo.value.left or f"accept with: pytest --gpugate --gpugate-update {_quoted(self.nodeid)}"
            return "\n\n".join([*failures, accept])
        if isinstance(excinfo.value, CaseFileError):
            return str(mistake(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the test; pytest counts lines from 0."""
        return self.path, self.case.line - 1, self.name


def _quoted(nodeid: str) -> str:
    import shlex  # noqa: PLC0415 -- only for a failure

    return shlex.quote(nodeid)


class PolicyTests:
    """The hooks that pytest calls if policy tests are enabled."""

    def __init__(self, config: pytest.Config) -> None:
        if config.getoption("--gpugate-update") and _is_distributed(config):
            raise pytest.UsageError("--gpugate-update writes files, which processes cannot share: leave out -n")
        self._collector = Collector()
        self._coverage = Coverage(surroundings(config), config.getoption("--gpugate-coverage"))
        config.pluginmanager.register(self._coverage, "gpugate-coverage")
        patterns = Patterns(config)
        config.pluginmanager.register(patterns, "gpugate-patterns")
        config.pluginmanager.register(Objects(config, patterns), "gpugate-objects")

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that holds tests."""
        if not file_path.name.endswith((".yaml", ".yml")):
            return None
        collected = self._collector.collect(expand([relative_name(file_path)]))
        if not collected.cases and not collected.broken:
            return None
        return CaseFile.of(parent, file_path, collected, self._coverage)


def _is_distributed(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) or hasattr(config, "workerinput")
