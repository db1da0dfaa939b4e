"""Shares tests out among processes: those of a file stay together, and so do files that wait for the same."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

_EXAMPLES = "the library's examples, sent to the API server"
_IMAGE = "the image; and of what users install, all that needs the control plane of the other tests"
_TOGETHER = {
    "e2e/test_examples.py": _EXAMPLES,
    "e2e/test_verdicts_agree.py": _EXAMPLES,
    "e2e/chart/test_applied.py": _IMAGE,
    **{f"e2e/image/{file.name}": _IMAGE for file in Path(__file__).with_name("image").glob("test_*.py")},
}


class SharedFixtures(LoadScopeScheduling):
    """Gives a process all tests of a file, or of several whose fixtures take longer than their tests."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _TOGETHER.get(file, file)
