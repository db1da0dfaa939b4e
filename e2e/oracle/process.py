"""The oracle as a process: one for all tests, a question and an answer at a time."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Refused(Exception):  # noqa: N818 -- an answer, not an error
    """Kubernetes' or Karpenter's own code refuses what it was asked about; the text is its own."""


class Oracle:
    """Asks and waits for the answer.

    Attributes:
        asked: how many questions were put.
    """

    def __init__(self, program: Path) -> None:
        self.asked = 0
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 -- ours

    def ask(self, name: str, about: Any) -> Any:
        """Return the answer to one question; `about` is sent as JSON.

        Raises:
            Refused: the code asked refuses it.
            EOFError: the oracle ended; what it said is on stderr.
        """
        assert self._process.stdin
        assert self._process.stdout
        # Characters as they are: the API server reads a quantity before escapes are undone.
        self._process.stdin.write(json.dumps({"ask": name, "about": about}, ensure_ascii=False).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the oracle ended at a question about {name}")
        self.asked += 1
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["answer"]

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.communicate(timeout=30)
