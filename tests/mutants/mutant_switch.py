"""Which mutant is active in this process; every instrumented module imports `active` from here.

An instrumented expression reads `mutated if _mutant_ == 17 else original`. `_mutant_` is a number while a mutant runs, and
`Reached` while tests are recorded: its comparison is always false, and notes that the expression was evaluated. The notes
are bytes of a file in shared memory, so that forks and servers started by a test write to the same ones.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

ACTIVE: Final = "GPUGATE_MUTANT"
REACHED: Final = "GPUGATE_MUTANTS_REACHED"
NONE: Final = -1


class Reached:
    """Notes each mutant that it is compared with."""

    __hash__ = None  # type: ignore[assignment] # compared only

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._notes = mmap.mmap(opened.fileno(), 0)

    def __eq__(self, number: object) -> bool:
        self._notes[number] = 1  # type: ignore[index] # instrumented code compares with numbers only
        return False

    def take(self) -> list[int]:
        """Return what was reached since the last call."""
        notes = self._notes[:]
        self._notes[:] = bytes(len(notes))
        return [number for number, reached in enumerate(notes) if reached]


def _read() -> int | Reached:
    file = os.environ.get(REACHED)
    return Reached(Path(file)) if file else int(os.environ.get(ACTIVE, NONE))


active: int | Reached = _read()
