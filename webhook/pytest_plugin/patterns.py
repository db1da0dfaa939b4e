"""Sees to it that what `gpugate_manifests` names is judged: every pattern matches files, and pytest collects them.

Only what pytest comes across can become a test. A pattern with a typo, or for a directory that `testpaths` lacks or
`norecursedirs` has, would else pass for good.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpugate.webhook.pytest_plugin.surroundings import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        """Hand over to the process that reports, or fail the run where something was not judged."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)  # Any: what xdist can send
        if output is not None:
            output[_KEY] = sorted(map(str, self.collected)) if self._is_finished else None
        elif session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} and any(self._wrong()):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # Any: xdist has no types
        """Take in what another process collected."""
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
        source = shown(self._config.inipath) if self._config.inipath else "-o"
        for pattern, files in self._matched.items():
            if not files:
                yield f"{source}: gpugate_manifests: {pattern} matches no file below {self._config.rootpath}: correct it"
            left = sorted(file for file in files if file not in self.collected and self._is_wanted(file))
            if left:
                more = f" and {len(left) - _MOST_NAMES} more" if len(left) > _MOST_NAMES else ""
                names = ", ".join(map(shown, left[:_MOST_NAMES]))
                yield (
                    f"{source}: gpugate_manifests: {pattern} matches {names}{more}, which pytest did not collect, so that "
                    "nothing judged them: add their directory to `testpaths`"
                )

    def _is_wanted(self, file: Path) -> bool:
        """Tell whether a run is about a file: about everything, or about what somebody names it among."""
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
