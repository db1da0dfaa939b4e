"""Record answered reviews without what may be secret, while the worker has nothing else to do.

A review is redacted in the worker that answered it, before anything of it reaches the thread that writes. Reviews that differ in
nothing but the copy of their workload are one line and a count. Nothing here can change or delay an answer: what does not fit into
the queues, and what the disk does not accept, is only counted.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson

from gpugate import __version__
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.facts import Unavailable
from gpugate.policies.sdk.objects import Operation
from gpugate.webhook.admission.idle import IdleQueue
from gpugate.webhook.admission.record_file import (
    DROPPED,
    FAILED,
    RECORDED,
    SCHEMA,
    FactsEnd,
    FactsObject,
    FactsOfKind,
    Head,
    Recorded,
    RecordWriter,
    Repeated,
    encode,
)
from gpugate.webhook.admission.redaction import redacted
from gpugate.webhook.admission.shadow_table import decided_by, decision_words, only_mutating
from gpugate.webhook.report.copies import digest
from gpugate.webhook.report.ownership import controller

if TYPE_CHECKING:
    import asyncio
    import datetime as dt
    from collections.abc import Callable, Iterator

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import GroupVersionKind, Kind, Request
    from gpugate.webhook.admission.decisions import Observation
    from gpugate.webhook.admission.front.load import Load
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.record_file import Count, Folder, PhaseName
    from gpugate.webhook.admission.redaction import Object, Vocabulary

REPEATED: Final = "repeated"
RESULTS: Final = (RECORDED, REPEATED, DROPPED, FAILED)

# Each file begins with an empty memory of reviews, so that a reader needs no other file.
_FILE_SECONDS: Final = 3600.0
_REPEATED_SECONDS: Final = 30.0
# After a file that could not be written.
_RETRY_SECONDS: Final = 60.0
_MOST_REMEMBERED: Final = 20_000
# Objects of a snapshot that are redacted at once: about a millisecond.
_OBJECTS_AT_ONCE: Final = 8
# The volume that the API server adds for the token of a ServiceAccount has a random name.
_TOKEN_VOLUME: Final = re.compile(rb"kube-api-access-[a-z0-9]{5}")
# What is different in each write of an object, beside the managed fields, which are not recorded.
_VERSIONS: Final = frozenset({"creationTimestamp", "generation", "resourceVersion", "uid"})


class SnapshotSource(Protocol):
    """Cluster data as it is now."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that policies look up."""
        ...

    def snapshot(self) -> Facts:
        """Return the objects, which later changes do not affect."""
        ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An answered review."""

    phase: Phase
    request: Request
    verdict: Verdict
    generation: str
    time: dt.datetime


class _Known(NamedTuple):
    """A review in the current file, the time of the last one like it, and how many of these are not written yet."""

    id: int
    last: dt.datetime
    more: int = 0


class Recorder:
    """Records the reviews of one process, and in one process of a server also snapshots of the cluster data."""

    def __init__(  # noqa: PLR0913 -- the parts of one worker
        self,
        folder: Folder,
        fraction: float,
        vocabulary: Callable[[], Vocabulary],
        rules: Callable[[], Rules],
        clock: Callable[[], dt.datetime],
        count: Count,
        *,
        facts: SnapshotSource | None = None,
    ) -> None:
        """Create a recorder; `attach` starts it, in the process that answers reviews.

        Args:
            folder: where to write.
            fraction: the part of all reviews to record, up to 1.
            vocabulary: returns the words that may stay in texts.
            rules: returns the policies in force.
            clock: the time in UTC.
            count: counts reviews by one of `RESULTS`; called from any thread.
            facts: the cluster data to record each hour; None records none.
        """
        self._fraction = fraction
        self._vocabulary = vocabulary
        self._rules = rules
        self._clock = clock
        self._count = count
        self._facts = facts
        head = Head(SCHEMA, __version__, clock())
        self._writer = RecordWriter(folder, "reviews", count, head)
        self._snapshots = RecordWriter(folder, "facts", lambda _result, _count: None, head) if facts else None
        self._queue: IdleQueue[Callable[[], None]] = IdleQueue(lambda work: work())
        self._file = 0
        self._next_id = 0
        self._began = self._repeated = self._snapshot_began = clock()
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        # The policies in force, and those of them that only mutate.
        self._mutating: tuple[Rules, frozenset[str]] | None = None
        self._snapshot: Iterator[None] | None = None
        self._snapshot_number = 0

    def attach(self, loop: asyncio.AbstractEventLoop, load: Load) -> None:
        """Record in an event loop while its load is idle."""
        self._queue.attach(loop, load)
        self._writer.start()
        if self._snapshots:
            self._snapshots.start()

    def offer(self, observation: Observation) -> None:
        """Queue an answered review, if it belongs to the recorded fraction; drop it if the queue is full."""
        review, verdict = observation.review, observation.verdict
        if review is None or verdict is None or review.request.dry_run or not self._queue.is_attached:
            return
        # The API server chooses a random uid for each review.
        if zlib.crc32(review.uid.encode()) >= self._fraction * 2**32:
            return
        self._queue.note_review()
        if self._writer.broken >= self._file:
            self._count(FAILED, 1)
            return
        if not self._queue.admits(observation.size):
            self._count(DROPPED, 1)
            return
        waiting = _Waiting(observation.phase, review.request, verdict, observation.generation, self._clock())
        self._queue.put(lambda: self._record_safely(waiting), observation.size)

    def tick(self, *, may_snapshot: bool = False) -> None:
        """Begin another file after an hour, after a full or broken one, and write counts and snapshots that are due.

        `may_snapshot` tells whether the cluster data has been read.
        """
        now = self._clock()
        age = (now - self._began).total_seconds()
        is_broken = self._writer.broken >= self._file
        if age >= (_RETRY_SECONDS if is_broken else _FILE_SECONDS) or (
            not is_broken and self._writer.full >= self._file
        ):
            self._begin(now)
        elif (now - self._repeated).total_seconds() >= _REPEATED_SECONDS:
            self._write_repeated(now)
        if may_snapshot:
            self._begin_snapshot(now)

    def close(self) -> None:
        """Write what is known, for a limited time."""
        self._write_repeated(self._clock())
        self._writer.close()
        if self._snapshots:
            self._snapshots.close()

    def _begin(self, now: dt.datetime) -> None:
        self._write_repeated(now)
        self._known.clear()
        self._file += 1
        self._next_id = 0
        self._began = now

    def _record_safely(self, waiting: _Waiting) -> None:
        try:
            self._record(waiting)
        except Exception:  # noqa: BLE001 -- an object that cannot be recorded must not reach the worker
            self._count(FAILED, 1)

    def _record(self, waiting: _Waiting) -> None:
        request, vocabulary = waiting.request, self._vocabulary()
        obj = redacted(request.object, vocabulary) if request.object is not None else None
        old = redacted(request.old_object, vocabulary) if request.old_object is not None else None
        decisions = decision_words(decided_by(waiting.phase, waiting.verdict, self._only_mutating()))
        key = _key(waiting, obj, old, decisions)
        known = self._known.get(key)
        if known is not None:
            self._known[key] = known._replace(more=known.more + 1, last=waiting.time)
            self._known.move_to_end(key)
            self._count(REPEATED, 1)
            return
        number = self._next_id
        recorded = Recorded(
            number,
            waiting.time,
            phase_name(waiting.phase),
            waiting.generation,
            _names(request.kind),
            request.operation.value,
            decisions,
            request.subresource,
            _names(request.parent) if request.parent else None,
            request.name,
            request.generate_name,
            request.namespace,
            request.user,
            request.groups,
            obj,
            old,
        )
        if not self._writer.put(self._file, encode(recorded), waiting.time, 1):
            self._count(DROPPED, 1)
            return
        self._next_id += 1
        self._known[key] = _Known(number, waiting.time)
        if len(self._known) > _MOST_REMEMBERED:
            _, oldest = self._known.popitem(last=False)
            self._put_repeated(oldest)

    def _only_mutating(self) -> frozenset[str]:
        rules = self._rules()
        if self._mutating is None or self._mutating[0] is not rules:
            self._mutating = rules, only_mutating(rules.ruleset.catalog)
        return self._mutating[1]

    def _write_repeated(self, now: dt.datetime) -> None:
        self._repeated = now
        for key, known in self._known.items():
            if self._put_repeated(known):
                self._known[key] = known._replace(more=0)

    def _put_repeated(self, known: _Known) -> bool:
        """Queue the count of a review; return whether there is one, and room for it."""
        if not known.more:
            return False
        line = encode(Repeated(known.id, known.more, known.last))
        return self._writer.put(self._file, line, known.last, 0)

    def _begin_snapshot(self, now: dt.datetime) -> None:
        """Begin a snapshot if one is due; it is written while the worker is idle."""
        if self._facts is None or not self._queue.is_attached or self._snapshot is not None:
            return
        if not self._snapshot_number or (now - self._snapshot_began).total_seconds() >= _FILE_SECONDS:
            self._snapshot_number += 1
            self._snapshot_began = now
            self._snapshot = self._write_snapshot(self._facts, now, self._snapshot_number)
            self._queue_step()

    def _queue_step(self) -> None:
        # Also into a full queue, which would end the snapshot otherwise.
        self._queue.put(self._step, 0)

    def _step(self) -> None:
        assert self._snapshot is not None  # noqa: S101 -- for the type checker: a snapshot has one step in the queue
        try:
            next(self._snapshot)
        except StopIteration:
            self._snapshot = None
        except Exception:  # noqa: BLE001 -- an object that cannot be recorded ends the snapshot, and no more
            self._snapshot = None
        else:
            self._queue_step()

    def _write_snapshot(self, source: SnapshotSource, now: dt.datetime, number: int) -> Iterator[None]:
        """Write the objects of all kinds, some at a time."""
        facts, total = source.snapshot(), 0
        for kind in source.kinds:
            fact = facts.list(kind)
            line = FactsOfKind(kind.group, kind.name, fact.reason if isinstance(fact, Unavailable) else "")
            yield from self._put_snapshot(encode(line), now, number)
            for position, item in enumerate(() if isinstance(fact, Unavailable) else fact.items):
                obj = redacted(item.mapping, self._vocabulary())
                yield from self._put_snapshot(encode(FactsObject(obj)), now, number)
                total += 1
                if position % _OBJECTS_AT_ONCE == 0:
                    yield
        yield from self._put_snapshot(encode(FactsEnd(total)), now, number)

    def _put_snapshot(self, line: bytes, now: dt.datetime, number: int) -> Iterator[None]:
        """Queue a line as soon as there is room."""
        assert self._snapshots is not None  # noqa: S101 -- for the type checker: there are facts
        while not self._snapshots.put(number, line, now, 0):
            yield


def phase_name(phase: Phase) -> PhaseName:
    """Return the name of the webhook of a phase."""
    return "mutate" if phase is Phase.MUTATE else "validate"


def _names(kind: GroupVersionKind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.kind


def _key(waiting: _Waiting, obj: Object | None, old: Object | None, decisions: dict[str, str]) -> bytes:
    """Return what is the same for reviews that only differ in the copy of their workload, or in the version of their object."""
    request = waiting.request
    name: str = request.name
    content: object = _same(obj)
    if request.operation is Operation.CREATE and request.kind.kind == "Pod" and obj is not None:
        owner = controller(obj)
        if owner is not None:
            name = ""
            content = [owner.kind, owner.name, _digest(obj).hex()]
    parts: list[Any] = [
        *(waiting.phase.value, waiting.generation, _names(request.kind), request.operation.value, request.subresource),
        *(name, request.generate_name, request.namespace, request.user, request.groups, decisions, content, _same(old)),
    ]
    return hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _digest(pod: Object) -> bytes:
    named: Object = orjson.loads(_TOKEN_VOLUME.sub(b"kube-api-access", orjson.dumps(pod)))
    return digest(named)


def _same(obj: Object | None) -> Object | None:
    """Leave out the status and what is different in each write of an object."""
    metadata = obj.get("metadata") if obj else None
    if obj is None or not isinstance(metadata, dict):
        return obj
    same = {key: value for key, value in obj.items() if key != "status"}
    same["metadata"] = {key: value for key, value in metadata.items() if key not in _VERSIONS}
    return same
