"""Evaluate the reviews that servers recorded by two policy files, as a shadow policy file would have been evaluated.

Each review is evaluated with the last cluster data that was recorded before it. Without a current policy file, the decisions that
the servers recorded are those of the current policies.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import Counter
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gpugate import __version__
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.facts import NoFacts, Unavailable
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.record_file import (
    Damaged,
    FactsEnd,
    FactsObject,
    FactsOfKind,
    Recorded,
    Repeated,
    is_record,
    is_snapshot,
    read_lines,
    start_of,
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
from gpugate.webhook.cluster.objects import Objects, StoredField, decode
from gpugate.webhook.simulate.model import Coverage
from gpugate.webhook.simulate.replay import MOST_OWNERS
from gpugate.webhook.simulate.shadow import Shadow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Fact, Facts
    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.admission.shadow_table import Pair
    from gpugate.webhook.simulate.model import Change

_SNAPSHOTS: Final = 2
_NO_FACTS: Final = NoFacts()


class Current(NamedTuple):
    """The current policy file, and its generation, by which a record names it."""

    ruleset: Ruleset
    generation: str


def record_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a record: of a directory, or the file itself; none if it is something else.

    Raises:
        OSError: the directory cannot be read.
    """
    files = path.iterdir() if path.is_dir() else iter([path])
    return tuple(sorted(file for file in files if is_record(file) and file.is_file()))


class RecordedFacts:
    """The cluster data of a snapshot."""

    def __init__(self, kinds: Mapping[tuple[str, str], Objects | Unavailable]) -> None:
        self._kinds = kinds

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        """Return the recorded objects of a kind."""
        objects = self._kinds.get((kind.group, kind.name))
        if isinstance(objects, Objects):
            return objects.list(namespace)
        return objects or Unavailable(f"the record contains no {kind.plural}")


def read_snapshot(path: Path) -> RecordedFacts | None:
    """Read a snapshot; None if it is not complete.

    Raises:
        OSError: the file cannot be read.
    """
    kinds: dict[tuple[str, str], list[StoredField] | Unavailable] = {}
    objects: list[StoredField] = []
    cached = lru_cache(1024)(decode)
    for line in read_lines(path):
        if isinstance(line, FactsOfKind):
            objects = []
            kinds[line.group, line.kind] = Unavailable(line.unavailable) if line.unavailable else objects
        elif isinstance(line, FactsObject):
            metadata = Field(line.object)["metadata"]
            packed = msgspec.msgpack.encode(line.object)
            objects.append(StoredField(packed, b"", metadata["name"].text, metadata["namespace"].text, cached))
        elif isinstance(line, FactsEnd):
            return RecordedFacts(
                {key: fact if isinstance(fact, Unavailable) else Objects.of(fact) for key, fact in kinds.items()}
            )
        elif isinstance(line, Damaged):
            return None
    return None


class _Snapshots:
    """The snapshots of a record by time; only the last that were used are in memory."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = sorted((file for file in files if is_snapshot(file)), key=start_of)
        self._starts = [start_of(file) for file in self._files]
        self._read = lru_cache(_SNAPSHOTS)(read_snapshot)

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._files)

    def at(self, time: dt.datetime) -> Facts:
        """Return the last complete snapshot before a time, else the first one after it."""
        position = bisect_right(self._starts, time)
        for file in (*reversed(self._files[:position]), *self._files[position:]):
            facts = self._read(file)
            if facts is not None:
                return facts
        return _NO_FACTS


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
        self._snapshots = _Snapshots(files)
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
        request, phase = _request(line), Phase.MUTATE if line.phase == "mutate" else Phase.VALIDATE
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


def _request(line: Recorded) -> Request:
    return Request(
        kind=GroupVersionKind(*line.kind),
        operation=Operation(line.operation),
        object=line.object,
        old_object=line.old_object,
        subresource=line.subresource,
        parent=GroupVersionKind(*line.parent) if line.parent else None,
        name=line.name,
        generate_name=line.generate_name,
        namespace=line.namespace,
        user=line.user,
        groups=line.groups,
    )
