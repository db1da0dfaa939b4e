"""Runs the tests in two processes: `make unit`, or `python tests/unit/unit.py [ARGUMENTS OF PYTEST]`.

Each process collects all tests, claims folders of tests one after the other, and runs those that it claimed. A folder is
two levels below `tests`, such as `webhook/admission`, so that its servers start in one process only. pytest-xdist would
report each test to a third process, which takes 3 ms of CPU for each of 16,700 tests.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVELS: Final = 2
_PLUGIN_OF: Final = "--claims="


class Claims:
    """A plugin of pytest that runs the folders of tests that its process claims."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the claimed tests; the next folder is claimed when the last test of a folder starts."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        tests = itertools.chain(self._claimed(session), [None])
        for item, following in itertools.pairwise(tests):
            assert item is not None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def _claimed(self, session: pytest.Session) -> Iterator[pytest.Item]:
        def folder_of(item: pytest.Item) -> str:
            parts = item.path.relative_to(session.config.rootpath / "tests").parts
            return "-".join(parts[:_LEVELS])

        for folder, items in itertools.groupby(session.items, folder_of):
            if self._claim(folder):
                yield from items

    def _claim(self, folder: str) -> bool:
        try:
            (self._folder / folder).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def main(arguments: list[str]) -> int:
    """Run the tests; returns the first exit code that is not 0."""
    if arguments and arguments[0].startswith(_PLUGIN_OF):
        claims = Claims(Path(arguments[0].removeprefix(_PLUGIN_OF)))
        return int(pytest.main(arguments[1:], plugins=[claims]))
    with tempfile.TemporaryDirectory(prefix="gpugate-tests-") as folder, tempfile.TemporaryFile() as output:
        command = [sys.executable, __file__, f"{_PLUGIN_OF}{folder}", *arguments]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as other:  # noqa: S603 -- this file
            code = subprocess.run(command, check=False).returncode  # noqa: S603 -- this file
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout.buffer)
    return code or other.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
