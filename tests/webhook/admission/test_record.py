"""What a recorder writes, and that nothing of the disk reaches a worker."""

from __future__ import annotations

import datetime as dt
import errno
import gzip
import json
import os
import re
import stat
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from eventually import eventually
from manual_loop import Loop
from pod_reviews import pod_review
from recorded_pods import PODS, Secrets

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Known, NoFacts, Unavailable
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import DEVICE_CLASS, NODE_POOL
from gpugate.webhook.admission import record_file, recorder
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.record_file import (
    Damaged,
    FactsEnd,
    FactsObject,
    FactsOfKind,
    Folder,
    Head,
    Recorded,
    Repeated,
    is_snapshot,
    read_lines,
)
from gpugate.webhook.admission.recorder import Recorder
from gpugate.webhook.admission.redaction import Vocabulary, library_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

START = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)


@cache
def rules() -> Rules:
    return Rules(bind(CATALOG, PolicyConfig()), "generation")


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(library_texts())


class Cluster:
    """Cluster data of two kinds."""

    kinds = (NODE_POOL, DEVICE_CLASS)

    def snapshot(self) -> Cluster:
        return self

    def list(self, kind: object, _namespace: str | None = None) -> Known | Unavailable:
        if kind is DEVICE_CLASS:
            return Unavailable("deviceclasses not served")
        pools = ({"metadata": {"name": f"pool-{number}", "annotations": {"x": "private"}}} for number in range(20))
        return Known(tuple(map(Field, pools)), complete=True)


class Worker:
    """A gate with a recorder behind it."""

    def __init__(self, folder: Path, most: int, fraction: float, *, of_cluster: bool) -> None:
        self.folder = folder
        self.now = START
        self.loop, self.load = Loop(), SimpleNamespace(waiting=0)
        self.results: list[tuple[str, int]] = []
        self.recorder = Recorder(
            Folder(folder, "host-0", most, most // 4),
            fraction,
            vocabulary,
            rules,
            lambda: self.now,
            lambda result, count: self.results.append((result, count)),
            facts=Cluster() if of_cluster else None,
        )
        self.gate = Gate(rules(), NoFacts(), lambda: self.now, self.recorder.offer)
        self.recorder.attach(self.loop, self.load)  # type: ignore[arg-type] -- as much of both as a recorder uses

    def review(self, pod: dict[str, Any] | None = None, uid: str = "u", **metadata: Any) -> dict[str, Any]:
        pod = pod or {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", **metadata}}
        review = json.loads(pod_review(pod, pod["metadata"]["namespace"]))
        review["request"]["uid"] = uid
        response: dict[str, Any] = json.loads(self.gate.validate(json.dumps(review).encode()).body)["response"]
        return response

    def write(self) -> None:
        """Record what waits, and write it."""
        self.loop.run(60)
        self.recorder.close()

    def count(self, result: str) -> int:
        return sum(count for name, count in self.results if name == result)

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.ndjson.gz"))

    def lines(self, kind: type[Any] = Recorded) -> list[Any]:
        return [line for file in self.files() for line in read_lines(file) if isinstance(line, kind)]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    workers = []

    def start_worker(
        folder: Path | None = None, most: int = 1 << 20, fraction: float = 1.0, *, of_cluster: bool = False
    ) -> Worker:
        workers.append(Worker(folder or tmp_path / "record", most, fraction, of_cluster=of_cluster))
        return workers[-1]

    yield start_worker
    for worker in workers:
        worker.recorder.close()


def of_deployment(number: int) -> dict[str, Any]:
    """A Pod of a ReplicaSet, with what is different in each of its Pods."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5b9", "uid": "1", "controller": True}
    token = f"kube-api-access-{number:05d}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-5b9-", "namespace": "n", "ownerReferences": [owner], "uid": str(number)},
        "spec": {
            "containers": [{"name": "c", "image": "i:1", "volumeMounts": [{"name": token, "mountPath": "/token"}]}],
            "volumes": [{"name": token, "projected": {}}],
        },
    }


def test_a_review_is_recorded_after_its_answer_with_its_decisions(start: Callable[..., Worker]) -> None:
    worker = start()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "c", "image": "i:1", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]},
    }  # fmt: skip
    assert not worker.review(pod)["allowed"]
    assert worker.files() == []
    worker.write()
    (line,) = worker.lines()
    assert (line.decisions["pods/hidden-gpu-access"], line.generation, line.phase) == ("deny", "generation", "validate")
    assert line.object == pod
    assert worker.results == [("recorded", 1)]


def test_no_byte_of_a_record_contains_a_planted_secret(start: Callable[..., Worker]) -> None:
    worker, secrets = start(most=256 << 20), Secrets(4)
    for number in range(PODS):
        worker.review(secrets.pod(number))
        worker.loop.run(1)
    worker.write()
    assert worker.count("recorded") == PODS
    (file,) = worker.files()
    text = "\n".join(str(line) for line in read_lines(file))
    raw = file.read_bytes().decode("latin-1")
    runs = [run for secret in secrets.planted for run in re.split(r"[^\w]", secret) if len(run) >= 8]
    assert [run for run in runs if run in text or run in raw] == []


def test_pods_of_one_workload_are_one_line_and_a_count(start: Callable[..., Worker]) -> None:
    worker = start()
    for number in range(500):
        worker.review(of_deployment(number))
        worker.loop.run(1)
    worker.write()
    assert (len(worker.lines()), worker.count("repeated"), worker.count("recorded")) == (1, 499, 1)
    (repeated,) = worker.lines(Repeated)
    assert (repeated.id, repeated.count) == (0, 499)


def test_what_a_policy_may_decide_by_makes_another_line(start: Callable[..., Worker]) -> None:
    worker = start()
    for metadata in ({}, {"labels": {"a": "b"}}, {"name": "q"}, {"namespace": "other"}):
        worker.review(**metadata)
        worker.loop.run(1)
    worker.write()
    assert len(worker.lines()) == 4


def test_another_write_of_the_same_object_is_counted(start: Callable[..., Worker]) -> None:
    worker = start()
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {}}
    for number in range(3):
        metadata = {"name": "p", "namespace": "n", "resourceVersion": str(number), "uid": f"u-{number}"}
        worker.review({**pod, "metadata": metadata, "status": {"observedGeneration": number}})
        worker.loop.run(1)
    worker.write()
    (repeated,) = worker.lines(Repeated)
    assert (len(worker.lines()), repeated.count) == (1, 2)


def test_a_later_review_of_a_known_object_is_known_longer(
    start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_MOST_REMEMBERED", 2)
    worker = start()
    for name in ("a", "b", "a", "c", "a", "b"):
        worker.review(name=name)
        worker.loop.run(1)
    worker.write()
    # What was known for the longest time without a review is forgotten: `b`, when `c` came.
    assert [line.object["metadata"]["name"] for line in worker.lines()] == ["a", "b", "c", "b"]
    assert [(repeated.id, repeated.count) for repeated in worker.lines(Repeated)] == [(0, 2)]


def test_more_lines_than_the_disk_accepts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "_MOST_QUEUED", 100)
    folder = Folder(tmp_path, "host-0", 1 << 20, 1 << 20)
    writer = record_file.RecordWriter(folder, "reviews", lambda *_: None, record_file.Head("", "", START))
    assert [writer.put(0, b"x" * size, START, 1) for size in (60, 40, 1)] == [True, True, False]


def test_a_fraction_of_the_reviews_is_recorded(start: Callable[..., Worker]) -> None:
    worker = start(fraction=0.25)
    for number in range(400):
        worker.review(uid=f"uid-{number}", name=f"p-{number}")
        worker.loop.run(1)
    worker.write()
    assert 60 <= len(worker.lines()) <= 140


def test_under_load_the_queue_stays_bounded_and_the_rest_is_counted(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.load.waiting = 1
    for number in range(300):
        worker.review(name=f"p-{number}")
    worker.load.waiting = 0
    worker.write()
    assert (worker.count("dropped"), worker.count("recorded")) == (44, 256)


def test_files_are_readable_by_their_owner_only(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.review()
    worker.write()
    (file,) = worker.files()
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(worker.folder.stat().st_mode)) == (0o600, 0o700)


def test_another_file_begins_after_an_hour_and_is_complete_in_itself(start: Callable[..., Worker]) -> None:
    worker = start()
    for hour in range(3):
        worker.now = START + dt.timedelta(hours=hour)
        worker.recorder.tick()
        worker.review()
        worker.review()
        worker.loop.run(60)
    worker.write()
    assert len(worker.files()) == 3
    for file in worker.files():
        head, review, repeated = read_lines(file)
        assert isinstance(head, Head)
        assert isinstance(review, Recorded)
        assert isinstance(repeated, Repeated)


def test_the_oldest_files_are_removed_and_others_stay(start: Callable[..., Worker]) -> None:
    worker = start(most=20_000)
    worker.folder.mkdir()
    # The second is named like a file of a record, but not after a time.
    others = [worker.folder / name for name in ("notes.ndjson.gz", "gpugate-x-reviews-20260230T990000Z-1.ndjson.gz")]
    for other in others:
        other.write_bytes(b"x" * 50_000)
    for number in range(60):
        worker.now = START + dt.timedelta(hours=number)
        worker.recorder.tick()
        # Text that does not compress.
        worker.review(labels={"long": os.urandom(500).hex()}, name=f"p-{number}")
        worker.loop.run(60)
    worker.write()
    sizes = [file.stat().st_size for file in worker.files() if file not in others]
    assert sum(sizes) <= 20_000
    assert max(line.time for line in worker.lines()) == worker.now
    assert all(other.exists() for other in others)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), id="a full disk"),
        pytest.param(MemoryError(), id="no memory"),
    ],
)
def test_a_file_that_cannot_be_written_only_counts_and_recording_resumes(
    error: Exception, start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise error

    worker = start()
    with monkeypatch.context() as patch:
        patch.setattr(record_file.os, "write", fail)
        assert worker.review()["allowed"]
        worker.loop.run(60)
        assert eventually(lambda: worker.count("failed") == 1)
        assert worker.review()["allowed"]
        assert worker.count("failed") == 2
    worker.now += dt.timedelta(seconds=61)
    worker.recorder.tick()
    worker.review()
    worker.write()
    assert (worker.count("recorded"), len(worker.lines())) == (1, 1)


def test_a_path_that_cannot_be_a_directory_only_counts(tmp_path: Path, start: Callable[..., Worker]) -> None:
    (tmp_path / "file").write_text("")
    worker = start(tmp_path / "file" / "record")
    assert worker.review()["allowed"]
    worker.write()
    assert worker.results == [("failed", 1)]


def test_a_removed_directory_is_created_again(start: Callable[..., Worker]) -> None:
    worker = start()
    worker.review(name="a")
    worker.loop.run(60)
    assert eventually(lambda: worker.count("recorded") == 1)
    for file in worker.files():
        file.unlink()
    worker.folder.rmdir()
    worker.review(name="b")
    worker.loop.run(60)
    assert eventually(lambda: worker.count("failed") == 1)
    worker.now += dt.timedelta(seconds=61)
    worker.recorder.tick()
    worker.review(name="c")
    worker.write()
    assert [line.name for line in worker.lines()] == ["p"]


def test_a_truncated_or_damaged_file_is_read_up_to_there(start: Callable[..., Worker]) -> None:
    worker = start()
    for number in range(50):
        worker.review(name=f"p-{number}")
        worker.loop.run(1)
    worker.write()
    (file,) = worker.files()
    data = file.read_bytes()
    for end in range(0, len(data), 97):
        file.write_bytes(data[:end])
        assert not any(isinstance(line, Damaged) for line in read_lines(file))
    file.write_bytes(data[:200] + os.urandom(100) + data[300:])
    assert len(list(read_lines(file))) <= 51


def test_a_snapshot_of_the_cluster_data_is_written_each_hour(start: Callable[..., Worker]) -> None:
    worker = start(of_cluster=True)
    worker.recorder.tick()
    worker.loop.run(60)
    assert not worker.files()
    for minutes in (0, 30, 61):
        worker.now = START + dt.timedelta(minutes=minutes)
        worker.recorder.tick(may_snapshot=True)
        worker.loop.run(60)
    worker.write()
    files = [file for file in worker.files() if is_snapshot(file)]
    assert len(files) == 2
    lines = list(read_lines(files[0]))
    assert [line for line in lines if isinstance(line, FactsOfKind)] == [
        FactsOfKind("karpenter.sh", "NodePool"),
        FactsOfKind("resource.k8s.io", "DeviceClass", "deviceclasses not served"),
    ]
    objects = [line.object for line in lines if isinstance(line, FactsObject)]
    assert objects[3]["metadata"] == {"name": "pool-3", "annotations": {"x": "redacted"}}
    assert lines[-1] == FactsEnd(20)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'"time": "2026-11-23T10:00:00", "object": null', id="time-without-offset"),
        pytest.param(b'"time": "2026-11-23T10:00:00Z", "object": {"a": "\\ud800"}', id="half-a-character"),
        pytest.param(b'"time": "2026-11-23T10:00:00Z", "object": {"a": NaN}', id="not-a-number"),
        pytest.param(b'"time": "2026-11-23T10:00:00Z", "object": ' + b"[" * 9_000, id="deep-and-truncated"),
    ],
)
def test_a_hostile_line_is_damaged_and_the_others_are_read(tmp_path: Path, line: bytes) -> None:
    hostile = b'{"line": "review", "id": 1, "phase": "validate", "generation": "", "kind": ["", "v1", "Pod"], "operation": "CREATE", '
    plain = record_file.encode(record_file.FactsEnd(1))
    file = tmp_path / "a.ndjson.gz"
    file.write_bytes(gzip.compress(hostile + line + b"}\n" + plain))

    assert [type(read) for read in read_lines(file)] == [Damaged, record_file.FactsEnd]


def test_a_deep_object_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson.gz"
    file.write_bytes(
        gzip.compress(b'{"line": "object", "object": {"b": 1, "a": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}\n")
    )

    (line,) = read_lines(file)

    assert isinstance(line, record_file.FactsObject)
    assert line.object["b"] == 1
