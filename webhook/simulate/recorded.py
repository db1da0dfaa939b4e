"""Evaluate the reviews that servers recorded by two policy files, as a shadow policy file would have been evaluated.

Each review is evaluated with the last cluster data that was recorded before it. Without a current policy file, the decisions that
the servers recorded are those of the current policies.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpugate import __version__
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission.record_file import (
    Damaged,
    Recorded,
    Repeated,
    is_snapshot,
    read_lines,
)
from gpugate.webhook.admission.shadow_table import (
    DECISIONS,
    Decided,
    Shadowed,
    ShadowTable,
    compared,
    decided_by,
    decision_words,
    only_mutating,
)
from gpugate.webhook.audit.words import plural
from gpugate.webhook.simulate.model import Coverage
from gpugate.webhook.simulate.record_content import Snapshots, phase_of, request_of
from gpugate.webhook.simulate.replay import MOST_OWNERS
from gpugate.webhook.simulate.shadow import Shadow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.admission.shadow_table import Pair
    from gpugate.webhook.simulate.model import Change


class Current(NamedTuple):
    """The current policy file, and its generation, by which a record names it."""

    ruleset: Ruleset
    generation: str


class _Decision(NamedTuple):
    """How a review was decided by both policy files; reviews like it count too."""

    phase: Phase
    request: Request
    pairs: tuple[Pair, ...]
    differs: bool


class RecordReplay:
    """Evaluates the files of a record and adds up the pairs of decisions."""

    def __init__(self, files: Sequence[Path], candidate: Ruleset, current: Current | None = None) -> None:
        """Read and evaluate all files.

        Args:
            files: those of `record_files`.
            candidate: the candidate policies.
            current: the current policies; None for the decisions that were recorded.

        Raises:
            OSError: a file cannot be read.
        """
        self._candidate = candidate
        self._current = current
        self._mutating = only_mutating(candidate.catalog)
        self._table = ShadowTable(MOST_OWNERS)
        self._snapshots = Snapshots(files)
        self._generations: set[str] = set()
        self._damaged: Counter[str] = Counter()
        self._reviews = self._differing = 0
        self._compared = False
        self._first: dt.datetime | None = None
        self._last: dt.datetime | None = None
        for file in files:
            if not is_snapshot(file):
                self._replay(file)

    @property
    def differing(self) -> int:
        """The number of reviews that the current policy file decides differently than it did when they were recorded."""
        return self._differing

    @cached_property
    def shadow(self) -> Shadow:
        """What the candidate policies decide differently, as a server with them as shadow policies shows it."""
        time = self._last or dt.datetime.min.replace(tzinfo=dt.UTC)
        document = Shadowed(
            __version__,
            self._current.generation if self._current else "recorded",
            "candidate",
            "",
            self._first or time,
            time,
            {"evaluated": self._reviews},
            self._table.owners(),
            self._table.left_out,
        )
        return Shadow(document, 1)

    def coverage(self) -> Coverage:
        """Return what was evaluated."""
        not_evaluated = dict(sorted(self._damaged.items()))
        if self._table.left_out:
            not_evaluated[f"reviews of more than {MOST_OWNERS:,} owners"] = self._table.left_out
        return Coverage(
            requests=self._reviews + self._damaged.total(),
            evaluated=self._reviews - self._table.left_out,
            not_evaluated=not_evaluated,
            first=self._first,
            last=self._last,
        )

    def changes(self) -> Iterator[Change]:
        """Yield the owners whose reviews the candidate policies decide differently."""
        for change in self.shadow.changes():
            yield msgspec.structs.replace(change, source="requests")

    def remarks(self) -> Iterator[str]:
        """Yield what limits the result."""
        yield "recorded reviews: a request counts once for each webhook that received it"
        if not self._snapshots.count:
            yield "the record contains no cluster data: policies that need it were not evaluated"
        if len(self._generations) > 1:
            yield f"{len(self._generations)} policy files were in force in the recorded time"
        if self._current is not None and not self._compared:
            yield "the current policy file was not in force in the recorded time: its decisions were not compared with the recorded ones"
        if self._differing:
            yield (
                f"{plural(self._differing, 'review')} decided differently by the current policy file than when it was recorded: "
                "cluster data changed within the hour, or a policy reads what a record does not contain"
            )

    def _replay(self, file: Path) -> None:
        decisions: dict[int, _Decision] = {}
        for line in read_lines(file):
            if isinstance(line, Recorded):
                decision = decisions[line.id] = self._decide(line)
                self._add(decision, line.time, 1)
            elif isinstance(line, Repeated):
                known = decisions.get(line.id)
                if known is not None:
                    self._add(known, line.last, max(line.count, 0))
            elif isinstance(line, Damaged):
                self._damaged[line.reason] += 1

    def _add(self, decision: _Decision, time: dt.datetime, reviews: int) -> None:
        self._reviews += reviews
        self._differing += reviews if decision.differs else 0
        self._first = min(self._first or time, time)
        self._last = max(self._last or time, time)
        for _ in self._table.add(decision.phase, decision.request, decision.pairs, time, reviews):
            pass

    def _decide(self, line: Recorded) -> _Decision:
        request, phase = request_of(line), phase_of(line)
        facts = self._snapshots.at(line.time)
        self._generations.add(line.generation)
        before, differs = _recorded(line.decisions), False
        if self._current is not None:
            evaluated = decided_by(
                phase,
                _evaluate(self._current.ruleset, request, facts, phase, line.time),
                only_mutating(self._current.ruleset.catalog),
            )
            if line.generation == self._current.generation:
                self._compared = True
                differs = decision_words(evaluated) != line.decisions
            before = evaluated
        # A validated object has the patches of the policies in force. It gets those of the candidate policies too.
        candidate_phase = Phase.MUTATE if phase is Phase.MUTATE else Phase.BOTH
        verdict = _evaluate(self._candidate, request, facts, candidate_phase, line.time)
        after = decided_by(phase, verdict, self._mutating)
        return _Decision(phase, request, tuple(compared(before, after)), differs)


def _recorded(decisions: Mapping[str, str]) -> dict[str, Decided]:
    """Return the decisions of a record; a newer version may have further words, which count as not evaluated."""
    known = {decision: decision for decision in DECISIONS}
    return {
        policy: Decided(known[word]) if word in known else Decided(is_evaluated=False)
        for policy, word in decisions.items()
    }


def _evaluate(ruleset: Ruleset, request: Request, facts: Facts, phase: Phase, time: dt.datetime) -> Verdict:
    return evaluate(ruleset, request, facts, today=time.date(), phase=phase, template_ceiling=Stance.WARN)
