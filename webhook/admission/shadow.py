"""Evaluate answered reviews again by a shadow policy file, while the worker has nothing else to do.

A review waits in a bounded queue until its worker has no request (`IdleQueue`). Nothing here can change an answer: the review has
been answered already, the candidate has a copy of the lookups, and every error is only counted.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from gpugate import __version__
from gpugate.policies.engine.caught_error import release
from gpugate.policies.engine.config import OutOfTimeError
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.facts import Known
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.idle import IdleQueue
from gpugate.webhook.admission.shadow_table import Shadowed, ShadowTable, merged, only_mutating, pairs

if TYPE_CHECKING:
    import asyncio
    import datetime as dt
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Fact, Facts
    from gpugate.policies.sdk.objects import Kind, Request
    from gpugate.webhook.admission.cpu_budget import CpuBudget
    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.front.load import Load
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.shadow_table import Pair

EVALUATED: Final = "evaluated"
DROPPED: Final = "dropped"
LATE: Final = "late"
ERROR: Final = "failed"
RESULTS: Final = (EVALUATED, DROPPED, LATE, ERROR)

_MOST_LOOKUPS: Final = 1024


class Observer(Protocol):
    """What counts and logs the work of a shadow."""

    def result(self, result: str) -> None:
        """Count a review by one of `RESULTS`."""
        ...

    def pair(self, request: Request, pair: Pair) -> None:
        """Count a pair."""
        ...

    def new(self, request: Request, pair: Pair) -> None:
        """Log a pair of different decisions that is new for its owner."""
        ...


class ApartFacts:
    """Lookups whose derived values are apart from those of the policies in force.

    `sdk/facts.py: derived` keeps one value for each configuration with the objects. Two configurations in turn would compute
    it again for every review.
    """

    def __init__(self) -> None:
        self.facts: Facts | None = None
        self._copies: OrderedDict[tuple[Kind, str | None], tuple[Known, Known]] = OrderedDict()

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the objects; the same `Known` until one of them changes."""
        assert self.facts is not None  # noqa: S101 -- for the type checker: set before every evaluation
        fact = self.facts.list(kind, namespace)
        if not isinstance(fact, Known):
            return fact
        original, copy = self._copies.get((kind, namespace), (None, None))
        if original is not fact or copy is None:
            copy = Known(fact.items, fact.complete)
            if "by_name" in fact.__dict__:
                copy.__dict__["by_name"] = fact.by_name
            self._copies[kind, namespace] = fact, copy
            if len(self._copies) > _MOST_LOOKUPS:
                self._copies.popitem(last=False)
        return copy


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An answered review, and the objects that its policies could look up."""

    phase: Phase
    request: Request
    verdict: Verdict
    generation: str
    facts: Facts
    time: dt.datetime


class Shadow:
    """The shadow policies of one process, the reviews that wait for them, and the table of what they decide."""

    def __init__(  # noqa: PLR0913 -- the parts of one worker
        self,
        snapshot: Callable[[], Facts],
        clock: Callable[[], dt.datetime],
        budget: CpuBudget,
        seconds: float,
        observer: Observer,
        file: Path,
        *,
        current: Callable[[], str],
    ) -> None:
        """Create a shadow without policies; `use` sets them. Create and use it in the main thread.

        Args:
            snapshot: returns the cluster data as it is now, which later changes do not affect.
            clock: the time in UTC.
            budget: the limit of CPU time, which no review uses meanwhile.
            seconds: the CPU time of one evaluation.
            observer: counts and logs.
            file: the file that shows this process's table to the others, beside theirs; they have the same suffix.
            current: returns the generation of the policy file in force.
        """
        self._snapshot = snapshot
        self._clock = clock
        self._budget = budget
        self._seconds = seconds
        self._observer = observer
        self._file = file
        self._generation = current
        self._rules: Rules | None = None
        self._error = ""
        self._mutating: frozenset[str] = frozenset()
        self._facts = ApartFacts()
        self._queue = IdleQueue(self._work)
        self._table = ShadowTable()
        self._reviews: dict[str, int] = {}
        self._since = clock()
        self._current = current()
        self._is_changed = True

    @property
    def rules(self) -> Rules | None:
        """The shadow policies; None without valid ones."""
        return self._rules

    def use(self, rules: Rules) -> None:
        """Evaluate by these policies from now on; an earlier table counts no more."""
        self._rules = rules
        self._error = ""
        self._facts = ApartFacts()
        self._mutating = only_mutating(rules.ruleset.catalog)
        self._begin()

    def reject(self, error: str) -> None:
        """Keep the policies, and state why their file is invalid now."""
        self._error = error
        self._is_changed = True

    def attach(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        """Evaluate in an event loop while its load is idle."""
        self._queue.attach(loop, load)

    def offer(self, observation: Observation) -> None:
        """Queue an answered review; drop it if the queue is full."""
        review, verdict = observation.review, observation.verdict
        queue = self._queue
        if self._rules is None or not queue.is_attached or review is None or verdict is None or review.request.dry_run:
            return
        queue.note_review()
        if not queue.admits(observation.size):
            self._count(DROPPED)
            return
        waiting = _Waiting(
            observation.phase, review.request, verdict, observation.generation, self._snapshot(), self._clock()
        )
        queue.put(waiting, observation.size)

    def publish(self) -> None:
        """Write the table for the other processes, if it changed."""
        self._follow()
        if self._is_changed:
            self._is_changed = False
            draft = self._file.with_suffix(".draft")
            # A full disk must not affect reviews.
            with suppress(OSError):
                draft.write_bytes(msgspec.json.encode(self._own()))
                draft.replace(self._file)

    def document(self) -> bytes:
        """Return the tables of all processes in one, as JSON."""
        self._follow()
        own = self._own()
        whole = merged([own, *_read(file for file in self._siblings() if file != self._file)])
        return msgspec.json.encode(whole or own)

    def _siblings(self) -> Iterator[Path]:
        return self._file.parent.glob(f"*{self._file.suffix}")

    def _own(self) -> Shadowed:
        return Shadowed(
            __version__,
            self._current,
            self._rules.generation if self._rules else "",
            self._error,
            self._since,
            self._clock(),
            dict(self._reviews),
            self._table.owners(),
            self._table.left_out,
        )

    def _follow(self) -> None:
        """Begin another table if the policy file in force changed."""
        if self._current != self._generation():
            self._begin()

    def _begin(self) -> None:
        """Begin a table for the generations in use, with what this process counted before a restart."""
        self._table, self._reviews = ShadowTable(), {}
        self._current, self._since = self._generation(), self._clock()
        self._is_changed = True
        for earlier in _read([self._file]):
            own = self._own()
            if (earlier.current, earlier.candidate) == (own.current, own.candidate):
                self._table.include(earlier)
                self._reviews, self._since = dict(earlier.reviews), earlier.since

    def _work(self, waiting: _Waiting) -> None:
        self._count(self._evaluate(waiting))

    def _evaluate(self, waiting: _Waiting) -> str:
        self._follow()
        rules = self._rules
        if rules is None or waiting.generation != self._current:
            return DROPPED
        self._facts.facts = waiting.facts
        try:
            self._budget.start(self._seconds)
            verdict = evaluate(
                rules.ruleset,
                waiting.request,
                self._facts,
                today=waiting.time.date(),
                # A validated object has the patches of the policies in force. It gets those of the shadow policies too.
                phase=Phase.MUTATE if waiting.phase is Phase.MUTATE else Phase.BOTH,
                template_ceiling=Stance.WARN,
                unhurried=self._budget.paused,
            )
            self._budget.stop()
            self._record(waiting, verdict)
        except BaseException as error:  # noqa: BLE001 -- not even a SystemExit of a policy may reach the worker
            self._budget.stop()
            late = isinstance(error, OutOfTimeError)
            release(error)
            return LATE if late else ERROR
        return EVALUATED

    def _record(self, waiting: _Waiting, verdict: Verdict) -> None:
        request = waiting.request
        pairs_of_review = tuple(pairs(waiting.phase, waiting.verdict, verdict, self._mutating))
        for pair in pairs_of_review:
            self._observer.pair(request, pair)
        for pair in self._table.add(waiting.phase, request, pairs_of_review, waiting.time):
            self._observer.new(request, pair)

    def _count(self, result: str) -> None:
        self._reviews[result] = self._reviews.get(result, 0) + 1
        self._is_changed = True
        self._observer.result(result)


def _read(files: Iterable[Path]) -> Iterator[Shadowed]:
    for file in files:
        # Another process may be the first to write it, or have been killed meanwhile.
        with suppress(OSError, msgspec.DecodeError):
            yield msgspec.json.decode(file.read_bytes(), type=Shadowed)
