"""Which reviews a recorder writes, when, and which of them are one line. Its files are lists in memory here."""

from __future__ import annotations

import datetime as dt
import zlib
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from manual_loop import Loop

from gpugate import __version__
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.facts import Known, Unavailable
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Stance
from gpugate.policies.sdk.objects import DEVICE_CLASS, NODE_POOL, POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates
from gpugate.webhook.admission import idle, recorder
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.admission.record_file import (
    FactsEnd,
    FactsObject,
    FactsOfKind,
    Folder,
    Head,
    Recorded,
    Repeated,
)
from gpugate.webhook.admission.recorder import RESULTS, Recorder, phase_name
from gpugate.webhook.admission.redaction import Vocabulary
from gpugate.webhook.admission.review import Review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpugate.policies.sdk.objects import Kind

START = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)
LINE = msgspec.json.Decoder(Head | Recorded | Repeated | FactsOfKind | FactsObject | FactsEnd)


@dataclass
class Writer:
    """The files of one content, in memory; `room` is for how many more lines there is room."""

    folder: Folder
    content: str
    count: Callable[[str, int], None]
    head: Head
    lines: list[tuple[int, Any, dt.datetime, int]] = field(default_factory=list)
    room: int = 1_000_000
    broken: int = -1
    full: int = -1
    started: int = 0
    closed: int = 0

    def start(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed += 1

    def put(self, file: int, line: bytes, time: dt.datetime, reviews: int) -> bool:
        if not self.room:
            return False
        self.room -= 1
        self.lines.append((file, LINE.decode(line), time, reviews))
        return True

    def of(self, kind: type[Any]) -> list[tuple[int, Any]]:
        return [(file, line) for file, line, _, _ in self.lines if isinstance(line, kind)]


class Cluster:
    """Cluster data of two kinds; the pools that it had when a snapshot was taken."""

    kinds: tuple[Kind, ...] = (NODE_POOL, DEVICE_CLASS)

    def __init__(self, pools: int) -> None:
        self.pools: list[Any] = [{"metadata": {"name": f"pool-{number}"}} for number in range(pools)]

    def snapshot(self) -> Cluster:
        copy = Cluster(0)
        copy.pools = list(self.pools)
        return copy

    def list(self, kind: object, _namespace: str | None = None) -> Known | Unavailable:
        if kind is DEVICE_CLASS:
            return Unavailable("deviceclasses not served")
        return Known(tuple(map(Field, self.pools)), complete=True)


@mutates(POD)
def _changes(pod: Field, _: AnyContext) -> Iterator[Patch]:
    yield Patch("set", pod["metadata", "labels", "x"].path, "y", "adds a label")


def rules(*policies: str) -> Rules:
    return Rules(bind(tuple(Policy(policy, "", (_changes,)) for policy in policies), PolicyConfig()), "g")


class Worker:
    """A recorder, and the parts of a worker around it."""

    def __init__(self, folder: Path, fraction: float, cluster: Cluster | None, *, attached: bool) -> None:
        self.now = START
        self.loop, self.load = Loop(), SimpleNamespace(waiting=0)
        self.results: list[tuple[str, int]] = []
        self.rules = rules()
        self.folder = Folder(folder, "host-0", 1 << 20, 1 << 18)
        self.recorder = Recorder(
            self.folder,
            fraction,
            lambda: Vocabulary(frozenset()),
            lambda: self.rules,
            lambda: self.now,
            lambda result, count: self.results.append((result, count)),
            facts=cluster,
        )
        self.reviews: Writer = self.recorder._writer  # type: ignore[assignment] -- replaced in `start`
        self.facts: Writer = self.recorder._snapshots  # type: ignore[assignment] -- replaced in `start`
        if attached:
            self.recorder.attach(self.loop, self.load)  # type: ignore[arg-type] -- as much of both as a recorder uses

    def pass_time(self, seconds: float, *, may_snapshot: bool = False) -> None:
        """Let time pass, tick and do the work that waits."""
        self.now += dt.timedelta(seconds=seconds)
        self.recorder.tick(may_snapshot=may_snapshot)
        self.loop.run(60)

    def offer(self, observation: Observation) -> None:
        self.recorder.offer(observation)
        self.loop.run(60)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    monkeypatch.setattr(recorder, "RecordWriter", Writer)

    def start_worker(fraction: float = 1.0, cluster: Cluster | None = None, *, attached: bool = True) -> Worker:
        return Worker(tmp_path, fraction, cluster, attached=attached)

    return start_worker


def request(**members: Any) -> Request:
    given: dict[str, Any] = {
        "kind": GroupVersionKind("example.org", "v1", "Thing"),
        "operation": Operation.UPDATE,
        "object": {"spec": {"port": 1}},
        "old_object": {"spec": {"port": 0}},
        "name": "n",
        "namespace": "ml",
        "user": "alice",
        "groups": ("a", "b"),
    }
    return Request(**given | members)


def answered(
    requested: Request | None = None,
    outcomes: tuple[Outcome, ...] = (),
    phase: Phase = Phase.VALIDATE,
    generation: str = "g",
    uid: str = "u",
    size: int = 1,
) -> Observation:
    requested = requested or request()
    review = Review(uid, "admission.k8s.io/v1", requested)
    return Observation(phase, 0.0, generation, review, Verdict(requested, outcomes), size=size)


def denied(policy: str) -> Outcome:
    return Outcome(policy, Stance.ENFORCE, (Finding(policy, (), "is bad", Stance.ENFORCE),))


def test_a_line_has_everything_of_a_review(start: Callable[..., Worker]) -> None:
    worker = start()
    requested = request(
        subresource="scale",
        parent=GroupVersionKind("karpenter.sh", "v1", "NodePool"),
        generate_name="n-",
    )
    worker.offer(answered(requested, (denied("pods/x"),), Phase.MUTATE, "g2"))
    recorded = Recorded(
        id=0,
        time=START,
        phase="mutate",
        generation="g2",
        kind=("example.org", "v1", "Thing"),
        operation="UPDATE",
        decisions={"pods/x": "warn"},
        subresource="scale",
        parent=("karpenter.sh", "v1", "NodePool"),
        name="n",
        generate_name="n-",
        namespace="ml",
        user="alice",
        groups=("a", "b"),
        object={"spec": {"port": 1}},
        old_object={"spec": {"port": 0}},
    )
    assert worker.reviews.lines == [(0, recorded, START, 1)]
    # The writer counts it as soon as it is on disk.
    assert worker.results == []


@pytest.mark.parametrize("member", ["object", "old_object"])
def test_an_object_that_a_review_does_not_have_is_missing(start: Callable[..., Worker], member: str) -> None:
    worker = start()
    worker.offer(answered(request(**{member: None})))
    ((_, recorded),) = worker.reviews.of(Recorded)
    assert (getattr(recorded, member), recorded.parent) == (None, None)
    assert worker.results == []


def test_both_objects_are_redacted(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.offer(answered(request(object={"note": "zebra"}, old_object={"note": "yak"})))
    ((_, recorded),) = worker.reviews.of(Recorded)
    assert (recorded.object, recorded.old_object) == ({"note": "redacted"}, {"note": "redacted"})


def test_the_files_begin_with_the_version_and_have_their_content(start: Callable[..., Worker]) -> None:
    worker = start(cluster=Cluster(1))
    head = Head("gpugate.dev/record/v1", __version__, START)
    for writer, content in ((worker.reviews, "reviews"), (worker.facts, "facts")):
        assert (writer.folder, writer.content, writer.head, writer.started) == (worker.folder, content, head, 1)
    worker.recorder.close()
    assert (worker.reviews.closed, worker.facts.closed) == (1, 1)


def test_without_cluster_data_there_is_no_snapshot(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.pass_time(0, may_snapshot=True)
    worker.recorder.close()
    assert (worker.facts, worker.reviews.closed) == (None, 1)


LEFT_OUT = {
    "a dry run": answered(request(dry_run=True)),
    "a review that was refused": Observation(Phase.VALIDATE, 0.0, "g"),
    "a review without a verdict": replace(answered(), verdict=None),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_some_reviews_are_left_out(start: Callable[..., Worker], case: str) -> None:
    worker = start()
    worker.offer(LEFT_OUT[case])
    assert (worker.reviews.lines, worker.results) == ([], [])


def test_before_a_worker_has_begun_nothing_is_recorded(start: Callable[..., Worker]) -> None:
    worker = start(attached=False, cluster=Cluster(1))
    worker.offer(answered())
    worker.pass_time(0, may_snapshot=True)
    assert (worker.reviews.lines, worker.results, worker.facts.lines) == ([], [], [])


@pytest.mark.parametrize(("more", "recorded"), [(0, False), (1, True)])
def test_the_fraction_is_that_of_the_checksums_of_uids(
    start: Callable[..., Worker],
    more: int,
    recorded: bool,  # noqa: FBT001 -- a table's column
) -> None:
    worker = start((zlib.crc32(b"u") + more) / 2**32)
    worker.offer(answered())
    assert (len(worker.reviews.lines), worker.results) == (int(recorded), [])


def test_reviews_of_a_broken_file_are_failed_at_once(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.reviews.broken = 0
    worker.offer(answered())
    assert (worker.reviews.lines, worker.results) == ([], [("failed", 1)])


def test_the_waiting_reviews_are_limited_in_bytes(start: Callable[..., Worker]) -> None:
    worker = start()
    for size in (idle._MOST_BYTES, 1):
        worker.recorder.offer(answered(size=size))
    assert worker.results == [("dropped", 1)]
    worker.loop.run(60)
    assert len(worker.reviews.lines) == 1
    worker.offer(answered())
    assert worker.results == [("dropped", 1), ("repeated", 1)]


def test_recording_pauses_while_reviews_come(start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    """As shadow evaluations do: after work of 10 ms a worker pauses for 400 ms, or 100 ms after the last review."""
    clock = iter(number * 0.01 for number in range(1_000))
    monkeypatch.setattr(idle, "perf_counter", lambda: next(clock))
    worker = start()
    worker.offer(answered(request(name="a")))
    worker.loop.now = 60.0
    worker.recorder.offer(answered(request(name="b")))
    worker.loop.run(1)
    worker.recorder.offer(answered(request(name="c")))
    worker.loop.run(0.004)
    worker.recorder.offer(answered(request(name="d")))
    worker.loop.run(0.09)
    assert [line.name for _, line in worker.reviews.of(Recorded)] == ["a", "b", "c"]
    worker.loop.run(0.02)
    assert len(worker.reviews.lines) == 4


def test_an_object_that_cannot_be_redacted_is_failed_and_the_next_is_recorded(
    start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    worker = start()
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "redacted", fail)
        worker.offer(answered())
    worker.offer(answered())
    assert (worker.results, len(worker.reviews.lines)) == ([("failed", 1)], 1)


def test_without_room_for_its_line_a_review_is_dropped_and_not_remembered(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.reviews.room = 0
    worker.offer(answered())
    assert worker.results == [("dropped", 1)]
    worker.reviews.room = 9
    worker.offer(answered())
    worker.offer(answered(request(name="other")))
    assert [line.id for _, line in worker.reviews.of(Recorded)] == [0, 1]


POD_KIND = GroupVersionKind("", "v1", "Pod")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}


def pod(
    name: str, kind: str = "ReplicaSet", owner: str = "web", image: str = "i", volume: str = "abcde"
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "ownerReferences": [{**OWNER, "kind": kind, "name": owner}]},
        "spec": {"containers": [{"image": image, "volumeMounts": [{"name": f"kube-api-access-{volume}"}]}]},
    }


def of_pod(name: str = "p", operation: Operation = Operation.CREATE, **given: str) -> Observation:
    return answered(request(kind=POD_KIND, operation=operation, object=pod(name, **given), old_object=None, name=name))


def versioned(version: int, **more: Any) -> dict[str, Any]:
    metadata = {
        "name": "n",
        "resourceVersion": str(version),
        "uid": f"u{version}",
        "generation": version,
        "creationTimestamp": f"2026-11-21T10:00:0{version}Z",
        "managedFields": [{"manager": str(version)}],
    }
    return {"metadata": metadata, "status": {"port": version}, **more}


ALIKE: dict[str, tuple[Observation, Observation]] = {
    "another uid": (answered(), answered(uid="u2")),
    "another size": (answered(), answered(size=2)),
    "another write of the object": (
        answered(request(object=versioned(1))),
        answered(request(object=versioned(2))),
    ),
    "another write of the old object": (
        answered(request(old_object=versioned(1))),
        answered(request(old_object=versioned(2))),
    ),
    "another order of members": (
        answered(request(object={"spec": {"port": 1, "size": 2}})),
        answered(request(object={"spec": {"size": 2, "port": 1}})),
    ),
    "another copy of its workload": (of_pod("p"), of_pod("q")),
    "the volume of a token": (of_pod(), of_pod(volume="fghij")),
}  # fmt: skip
OTHER: dict[str, tuple[Observation, Observation]] = {
    "webhook": (answered(), answered(phase=Phase.MUTATE)),
    "generation": (answered(), answered(generation="h")),
    "group": (answered(), answered(request(kind=GroupVersionKind("example.com", "v1", "Thing")))),
    "version": (answered(), answered(request(kind=GroupVersionKind("example.org", "v2", "Thing")))),
    "kind": (answered(), answered(request(kind=GroupVersionKind("example.org", "v1", "Other")))),
    "operation": (answered(), answered(request(operation=Operation.CREATE))),
    "subresource": (answered(), answered(request(subresource="scale"))),
    "name": (answered(), answered(request(name="m"))),
    "prefix of the name": (answered(), answered(request(generate_name="n-"))),
    "namespace": (answered(), answered(request(namespace="other"))),
    "user": (answered(), answered(request(user="bob"))),
    "groups": (answered(), answered(request(groups=("a",)))),
    "decisions": (answered(), answered(outcomes=(denied("pods/x"),))),
    "object": (answered(), answered(request(object={"spec": {"port": 2}}))),
    "no object": (answered(), answered(request(object=None))),
    "old object": (answered(), answered(request(old_object={"spec": {"port": 2}}))),
    "no old object": (answered(), answered(request(old_object=None))),
    "label": (
        answered(request(object={"metadata": {"labels": {"a": "b"}}})),
        answered(request(object={"metadata": {"labels": {"a": "c"}}})),
    ),
    "metadata that is no object": (
        answered(request(object={"metadata": 1})),
        answered(request(object={"metadata": 2})),
    ),
    "Pod without a controller": (
        answered(request(kind=POD_KIND, operation=Operation.CREATE, object={"spec": {}}, name="p")),
        answered(request(kind=POD_KIND, operation=Operation.CREATE, object={"spec": {}}, name="q")),
    ),
    "kind of the controller": (of_pod(), of_pod(kind="Job")),
    "name of the controller": (of_pod(), of_pod(owner="other")),
    "Pod template": (of_pod(), of_pod(image="j")),
    "name of an updated Pod": (of_pod("p", Operation.UPDATE), of_pod("q", Operation.UPDATE)),
    "name of another kind with a controller": (
        answered(request(operation=Operation.CREATE, object=pod("p"), name="p")),
        answered(request(operation=Operation.CREATE, object=pod("q"), name="q")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ALIKE)
def test_reviews_that_no_policy_can_tell_apart_are_one_line(start: Callable[..., Worker], case: str) -> None:
    worker = start()
    for observation in ALIKE[case]:
        worker.offer(observation)
    assert (len(worker.reviews.lines), worker.results) == (1, [("repeated", 1)])


@pytest.mark.parametrize("case", OTHER)
def test_what_a_policy_may_decide_by_makes_another_line(start: Callable[..., Worker], case: str) -> None:
    worker = start()
    for observation in OTHER[case]:
        worker.offer(observation)
    assert (len(worker.reviews.lines), worker.results) == (2, [])


class TestRepeated:
    def test_a_count_is_written_every_30_seconds_once(self, start: Callable[..., Worker]) -> None:
        worker = start()
        for seconds in (0, 10, 10):
            worker.pass_time(seconds)
            worker.offer(answered())
        worker.pass_time(9.9)
        assert worker.reviews.of(Repeated) == []
        worker.pass_time(0.1)
        last = START + dt.timedelta(seconds=20)
        assert worker.reviews.lines[1:] == [(0, Repeated(0, 2, last), last, 0)]
        worker.pass_time(30)
        assert len(worker.reviews.of(Repeated)) == 1
        worker.offer(answered())
        worker.pass_time(29.9)
        assert len(worker.reviews.of(Repeated)) == 1
        worker.pass_time(0.1)
        assert worker.reviews.of(Repeated)[1:] == [(0, Repeated(0, 1, START + dt.timedelta(seconds=60)))]

    def test_a_count_without_room_is_written_the_next_time(self, start: Callable[..., Worker]) -> None:
        worker = start()
        worker.offer(answered())
        worker.offer(answered())
        worker.reviews.room = 0
        worker.pass_time(30)
        worker.reviews.room = 9
        worker.pass_time(30)
        worker.pass_time(30)
        assert worker.reviews.of(Repeated) == [(0, Repeated(0, 1, START))]

    def test_a_count_is_written_at_the_end(self, start: Callable[..., Worker]) -> None:
        worker = start()
        worker.offer(answered())
        worker.recorder.close()
        assert worker.reviews.of(Repeated) == []
        worker.offer(answered())
        worker.recorder.close()
        assert worker.reviews.of(Repeated) == [(0, Repeated(0, 1, START))]

    def test_only_the_latest_reviews_are_remembered(
        self, start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorder, "_MOST_REMEMBERED", 2)
        worker = start()
        for name in "abbac":
            worker.offer(answered(request(name=name)))
        # That of `b` is written when `c` takes its place.
        assert worker.reviews.of(Repeated) == [(0, Repeated(1, 1, START))]
        for name in "ab":
            worker.offer(answered(request(name=name)))
        assert [line.name for _, line in worker.reviews.of(Recorded)] == ["a", "b", "c", "b"]

    def test_the_memory_is_limited(self) -> None:
        # About a kilobyte each.
        assert 1_000 <= recorder._MOST_REMEMBERED <= 50_000


class TestFiles:
    @pytest.mark.parametrize(
        ("broken", "full", "seconds", "file"),
        [
            pytest.param(-1, -1, 3599, 0, id="before an hour"),
            pytest.param(-1, -1, 3600, 1, id="after an hour"),
            pytest.param(-1, 0, 0, 1, id="full"),
            pytest.param(0, -1, 59, 0, id="before a broken one is tried again"),
            pytest.param(0, -1, 60, 1, id="after a broken one"),
            pytest.param(0, 0, 59, 0, id="full and broken"),
        ],
    )
    def test_another_file_begins(
        self, start: Callable[..., Worker], broken: int, full: int, seconds: float, file: int
    ) -> None:
        worker = start()
        worker.offer(answered())
        worker.reviews.broken, worker.reviews.full = broken, full
        worker.pass_time(seconds)
        # The file that broke is given up; in another one, a review is recorded again.
        worker.reviews.broken = -1
        worker.offer(answered())
        assert worker.reviews.of(Recorded)[-1][0] == file
        assert worker.results == ([] if file else [("repeated", 1)])

    def test_each_file_is_complete_in_itself(self, start: Callable[..., Worker]) -> None:
        worker = start()
        for _ in range(2):
            for name in ("a", "b", "b"):
                worker.offer(answered(request(name=name)))
            worker.pass_time(3600)
        ids = [(file, line.id) for file, line, *_ in worker.reviews.lines]
        assert ids == [(0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (1, 1)]
        assert [file for file, _ in worker.reviews.of(Repeated)] == [0, 1]

    def test_the_hour_of_a_file_begins_with_it(self, start: Callable[..., Worker]) -> None:
        worker = start()
        worker.reviews.full = 0
        worker.pass_time(1_800)
        worker.pass_time(3_599)
        worker.offer(answered())
        worker.pass_time(1)
        worker.offer(answered())
        assert [file for file, _ in worker.reviews.of(Recorded)] == [1, 2]

    @pytest.mark.parametrize(("broken", "file"), [(0, 1), (1, 2)])
    def test_what_broke_before_the_current_file_does_not_matter(
        self, start: Callable[..., Worker], broken: int, file: int
    ) -> None:
        worker = start()
        worker.reviews.broken = 0
        worker.pass_time(60)
        worker.reviews.broken = broken
        worker.pass_time(60)
        worker.reviews.broken = -1
        worker.offer(answered())
        assert [each for each, _ in worker.reviews.of(Recorded)] == [file]


def only_mutating(worker: Worker) -> dict[str, str]:
    """Return the decisions of a validating review, in which findings of policies that only mutate do not count."""
    outcomes = (denied("pods/a"), denied("pods/b"))
    worker.reviews.lines.clear()
    worker.offer(answered(request(name=f"n{worker.loop.now}"), outcomes))
    ((_, recorded),) = worker.reviews.of(Recorded)
    decisions: dict[str, str] = recorded.decisions
    return decisions


def test_the_policies_in_force_tell_which_only_mutate(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.rules = rules("pods/a")
    assert [only_mutating(worker) for _ in range(2)] == [{"pods/b": "deny"}] * 2
    worker.rules = rules("pods/b")
    assert [only_mutating(worker) for _ in range(2)] == [{"pods/a": "deny"}] * 2


class TestSnapshot:
    def numbers(self, worker: Worker) -> list[int]:
        return [file for file, _ in worker.facts.of(FactsEnd)]

    def test_it_has_the_objects_of_all_kinds(self, start: Callable[..., Worker]) -> None:
        worker = start(cluster=Cluster(2))
        worker.pass_time(0)
        assert worker.facts.lines == []
        worker.pass_time(10, may_snapshot=True)
        lines = [
            FactsOfKind("karpenter.sh", "NodePool"),
            FactsObject({"metadata": {"name": "pool-0"}}),
            FactsObject({"metadata": {"name": "pool-1"}}),
            FactsOfKind("resource.k8s.io", "DeviceClass", "deviceclasses not served"),
            FactsEnd(2),
        ]
        time = START + dt.timedelta(seconds=10)
        assert worker.facts.lines == [(1, line, time, 0) for line in lines]
        # The reviews are counted, not the lines of a snapshot.
        worker.facts.count("recorded", 1)
        assert worker.results == []

    def test_there_is_one_each_hour(self, start: Callable[..., Worker]) -> None:
        worker = start(cluster=Cluster(1))
        worker.pass_time(1_800, may_snapshot=True)
        worker.pass_time(3_599, may_snapshot=True)
        assert self.numbers(worker) == [1]
        worker.pass_time(1, may_snapshot=True)
        worker.pass_time(3_599, may_snapshot=True)
        assert self.numbers(worker) == [1, 2]
        worker.pass_time(1, may_snapshot=True)
        assert self.numbers(worker) == [1, 2, 3]

    def test_its_objects_are_those_of_one_moment_and_are_written_a_few_at_a_time(
        self, start: Callable[..., Worker]
    ) -> None:
        cluster = Cluster(30)
        worker = start(cluster=cluster)
        worker.recorder.tick(may_snapshot=True)
        written = [0]
        while worker.loop.calls:
            _, call = worker.loop.calls.pop(0)
            worker.loop.now += 60
            call()
            written.append(len(worker.facts.of(FactsObject)))
            cluster.pools.append({"metadata": {"name": "late"}})
        assert max(after - before for before, after in pairwise(written)) == 8
        assert written[-1] == 30

    def test_it_waits_for_room(self, start: Callable[..., Worker]) -> None:
        worker = start(cluster=Cluster(20))
        worker.facts.room = 5
        worker.recorder.tick(may_snapshot=True)
        worker.loop.run(0.01)
        worker.now += dt.timedelta(hours=2)
        # Another does not begin meanwhile.
        worker.recorder.tick(may_snapshot=True)
        worker.loop.run(0.01)
        assert len(worker.facts.lines) == 5
        worker.facts.room = 1_000
        worker.loop.run(60)
        names = [line.object["metadata"]["name"] for _, line in worker.facts.of(FactsObject)]
        assert (names, self.numbers(worker)) == ([f"pool-{number}" for number in range(20)], [1])

    def test_an_object_that_cannot_be_recorded_ends_it_and_the_next_is_written(
        self, start: Callable[..., Worker]
    ) -> None:
        cluster = Cluster(3)
        worker = start(cluster=cluster)
        pool, cluster.pools[1] = cluster.pools[1], {"spec": {"port": 2**80}}
        cluster.pools[1]["spec"]["other"] = object()
        worker.pass_time(0, may_snapshot=True)
        assert self.numbers(worker) == []
        cluster.pools[1] = pool
        worker.pass_time(3_600, may_snapshot=True)
        assert self.numbers(worker) == [2]

    def test_a_full_queue_does_not_end_it(self, start: Callable[..., Worker]) -> None:
        worker = start(cluster=Cluster(1))
        worker.recorder.offer(answered(size=2 * idle._MOST_BYTES))
        worker.recorder.tick(may_snapshot=True)
        worker.loop.run(60)
        assert self.numbers(worker) == [1]


def test_the_results_are_labels_of_a_metric() -> None:
    assert RESULTS == ("recorded", "repeated", "dropped", "failed")


def test_the_phase_is_the_webhook() -> None:
    names = {phase: phase_name(phase) for phase in Phase}
    assert names == {Phase.MUTATE: "mutate", Phase.VALIDATE: "validate", Phase.BOTH: "validate"}
