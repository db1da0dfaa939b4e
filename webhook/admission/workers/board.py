"""What processes tell each other: a small block of memory that all of them see."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# How often the event loop came round, whether connections are accepted, and what is missing for that to be of use.
_ROW: Final = struct.Struct("=Q?247s")
_STARTING: Final = "starting"


class Board:
    """One row for each worker, which only that worker writes; made before the workers are forked.

    Every process beside the supervisor is a worker here; those after the first `workers` have a name of their own.
    """

    def __init__(self, workers: int, others: Sequence[str] = ()) -> None:
        self._names = (*(f"worker {number + 1}" for number in range(workers)), *others)
        self._answering = workers
        self._workers = workers = len(self._names)
        self._memory = mmap.mmap(-1, 1 + workers * _ROW.size)
        for worker in range(workers):
            self.clear(worker)

    @property
    def rows(self) -> int:
        """How many processes there are beside the supervisor."""
        return self._workers

    def clear(self, worker: int) -> None:
        """Say that a worker is to start.

        One that answers nobody is waited for once: where it dies later, what it did for the others is still there.
        """
        _, serving, missing = self._read(worker)
        if worker >= self._answering and serving and not missing:
            self._write(worker, 0, serving=True, missing="")
        else:
            self._write(worker, 0, serving=False, missing=_STARTING)

    def beat(self, worker: int, missing: Sequence[str]) -> None:
        """Say that a worker accepts connections and is alive, and what it still misses."""
        beats, _, _ = self._read(worker)
        self._write(worker, beats + 1, serving=True, missing="; ".join(missing))

    def beats(self, worker: int) -> int:
        """Return how often a worker has said that it is alive."""
        return self._read(worker)[0]

    @property
    def is_serving(self) -> bool:
        """Whether every worker accepts connections."""
        return all(self._read(worker)[1] for worker in range(self._workers))

    def drain(self) -> None:
        """Say that all of this is about to end."""
        self._memory[0] = 1

    @property
    def is_draining(self) -> bool:
        """Whether all of this is about to end."""
        return bool(self._memory[0])

    def missing(self) -> tuple[str, ...]:
        """Say what is missing for every worker to be ready."""
        said = [(worker, self._read(worker)[2]) for worker in range(self._workers)]
        missing = tuple(f"{self._names[worker]}: {text}" for worker, text in said if text)
        return ("shutting down", *missing) if self.is_draining else missing

    def _read(self, worker: int) -> tuple[int, bool, str]:
        beats, serving, text = _ROW.unpack_from(self._memory, 1 + worker * _ROW.size)
        return beats, serving, text.rstrip(b"\0").decode("utf-8", "replace")

    def _write(self, worker: int, beats: int, *, serving: bool, missing: str) -> None:
        text = missing.encode("utf-8")
        _ROW.pack_into(self._memory, 1 + worker * _ROW.size, beats, serving, text)
