"""What one worker does with the parts that it creates; its processes are in tests of their own."""

from __future__ import annotations

import asyncio
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.objects import NODE_POOL, POD, GroupVersionKind, Operation, Request
from gpugate.webhook.admission import serve_worker
from gpugate.webhook.admission.cpu_budget import MOST_CPU_SECONDS
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.gate import QUICK_SECONDS, Rules
from gpugate.webhook.admission.options import Recording, ServeOptions
from gpugate.webhook.admission.policy_reload import Reload, RulesFiles, load_rules
from gpugate.webhook.admission.redaction import Vocabulary
from gpugate.webhook.admission.shadow_table import Pair
from gpugate.webhook.cluster.reflector import KindState, KindStatus

if TYPE_CHECKING:
    from collections.abc import Callable

AUDIT = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n"
# They have needs, and the rules in force at the start have none.
NEW = load_rules(None)
ALL_NEEDS = set(Needs(NEW.ruleset.rules).kinds)
FRONT: Any = SimpleNamespace(slots=SimpleNamespace(open=3), load=SimpleNamespace(bodies=SimpleNamespace(bytes=7)))


class Said:
    """Remembers each call of any of its methods, with the calls of others in one list."""

    def __init__(self, name: str, calls: list[tuple[Any, ...]], **results: Any) -> None:
        self._name, self._calls, self._results = name, calls, results

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self._calls.append((f"{self._name}.{method}", *given, *([named] if named else [])))
            return self._results.get(method)

        return call


class Cluster:
    """The watched cluster data of a worker."""

    def __init__(self) -> None:
        self.facts = SimpleNamespace(snapshot=NoFacts)
        self.needs: list[set[Any]] = []
        self.unread_kinds: tuple[Any, ...] = ()
        self.missing_kinds: tuple[str, ...] = ()
        self.is_stopped = False

    def update_needs(self, needs: Needs) -> None:
        self.needs.append(set(needs.kinds))

    def unread(self) -> tuple[Any, ...]:
        return self.unread_kinds

    def missing(self) -> tuple[str, ...]:
        return self.missing_kinds

    def ages(self) -> dict[Any, float]:
        return {NODE_POOL: 2.5}

    def stop(self) -> None:
        self.is_stopped = True


class Worker(serve_worker._Parts):
    """The parts of a worker, and `calls` of what it shares with other processes."""

    def __init__(self, cluster: Cluster | None = None, number: int = 0, **parts: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._given = cluster
        said = {name: Said(name, self.calls) for name in ("metrics", "log", "guarding")}
        self.shared = SimpleNamespace(
            **{
                "options": ServeOptions("127.0.0.1", 0, workers=1),
                "rules": Rules(bind((), PolicyConfig()), "old"),
                "files": RulesFiles(None),
                "board": SimpleNamespace(missing=lambda: ("worker 2: starting",)),
                "may_load": lambda _: True,
                "report_start": lambda: self.calls.append(("report_start",)),
                "poll_certificate": lambda **given: self.calls.append(("poll_certificate", given)),
                "policy_texts": lambda: ("inference",),
                "hand_over": None,
                "shadow": None,
                "vocabulary": None,
                **said,
                **parts,
            }
        )
        super().__init__(number, self.shared, self.shared.hand_over)  # type: ignore[arg-type] # what is used of it

    def _watched_cluster(self) -> Any:
        return self._given

    @property
    def generation(self) -> str:
        """The generation of the rules in force."""
        return self._gate.rules.generation

    def said(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(serve_worker, "monotonic", clock)
    return clock


def test_a_worker_starts_its_log_before_it_reports() -> None:
    assert Worker().calls[:2] == [("log.start",), ("report_start",)]


def test_probes_and_scrapes_are_answered_for_all_processes() -> None:
    worker = Worker(metrics=Said("metrics", [], exposition=("text/plain", b"all")))
    assert (worker.missing(), worker.exposition("*/*")) == (("worker 2: starting",), ("text/plain", b"all"))
    assert worker.shadowed() is None


def test_without_a_cluster_a_new_ruleset_is_in_force_at_once() -> None:
    worker = Worker()
    worker._use(NEW)
    assert (worker.generation, worker._missing()) == (NEW.generation, ())
    assert worker.said("metrics.know") == [(NEW.ruleset.catalog,)]


def test_a_new_ruleset_waits_until_its_cluster_data_is_read(clock: Clock) -> None:
    cluster = Cluster()
    worker = Worker(cluster)
    cluster.unread_kinds = (NODE_POOL,)
    worker._use(NEW)
    worker._tick(FRONT)
    assert (worker.generation, cluster.needs) == ("old", [ALL_NEEDS])

    cluster.unread_kinds = ()
    worker._tick(FRONT)
    assert worker.generation == NEW.generation
    clock.now += 60
    worker._gate.use(Rules(NEW.ruleset, "newer"))
    worker._tick(FRONT)
    assert worker.generation == "newer"


def test_a_new_ruleset_does_not_wait_longer_than_ten_seconds(clock: Clock) -> None:
    cluster = Cluster()
    worker = Worker(cluster)
    cluster.unread_kinds = (NODE_POOL,)
    worker._use(NEW)
    for seconds, generation in ((9.9, "old"), (0.1, NEW.generation)):
        clock.now += seconds
        worker._tick(FRONT)
        assert worker.generation == generation


def test_the_cluster_data_is_that_of_both_policy_files() -> None:
    cluster = Cluster()
    worker = Worker(cluster)
    worker._shadow = SimpleNamespace(rules=NEW.ruleset.rules)  # type: ignore[assignment] # what is used of it
    worker._use(Rules(bind((), PolicyConfig()), "new"))
    assert cluster.needs == [ALL_NEEDS]


def test_the_words_of_a_new_policy_file_may_be_recorded() -> None:
    worker = Worker(vocabulary=Vocabulary(()))
    worker._use(NEW)
    assert worker._vocabulary is not None
    assert worker._vocabulary.knows("inference")


@pytest.mark.parametrize(("error", "ok"), [("", True), ("invalid", False)])
def test_a_reload_is_measured_and_logged_by_the_supervisor_only(error: str, ok: bool) -> None:  # noqa: FBT001 -- a table's column
    worker = Worker()
    worker._reloaded(Reload("3f2a", error))
    assert worker.said("metrics.reloaded") == [("3f2a", ok)]
    assert worker.said("log.event") == []


def test_each_part_observes_each_review() -> None:
    worker = Worker()
    observation = Observation(Phase.VALIDATE, 0.1, "3f2a")
    worker._observe(observation)
    worker._tracer, worker._recorder = Said("tracer", worker.calls), Said("recorder", worker.calls)  # type: ignore[assignment] # in their place
    worker._shadow = SimpleNamespace(shadow=Said("shadow", worker.calls))  # type: ignore[assignment] # as above
    worker._observe(observation)
    parts = ["metrics.observe", "log.observe", "tracer.observe", "shadow.offer", "recorder.offer"]
    assert [name for name, *_ in worker.calls[2:]] == [*parts[:2], *parts]
    assert all(given == [observation] for _, *given in worker.calls[2:])


def test_each_second_everything_is_updated(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT)
    cluster = Cluster()
    worker = Worker(cluster, files=RulesFiles(file))
    worker._recorder = Said("recorder", worker.calls)  # type: ignore[assignment] # in its place
    worker._shadow = Said("shadow", worker.calls)  # type: ignore[assignment] # as above
    worker._shadow.rules = ()  # type: ignore[union-attr]
    worker._tick(FRONT)
    expected = {
        "metrics.facts_age": [("NodePool", 2.5)],
        "metrics.connections": [(3,)],
        "metrics.body_bytes": [(7,)],
        "poll_certificate": [({},)],
        "shadow.tick": [()],
        "recorder.tick": [({"may_snapshot": True},)],
    }
    assert {name: worker.said(name) for name in expected} == expected
    assert worker.generation == load_rules(file).generation

    cluster.missing_kinds = ("nodepools.karpenter.sh not listed yet",)
    worker._tick(FRONT)
    assert worker._missing() == cluster.missing_kinds
    assert worker.said("recorder.tick")[-1] == ({"may_snapshot": False},)


def test_a_sighup_reloads_all_files() -> None:
    worker = Worker()
    worker._reload()
    # Without a policy file there is nothing to reload.
    assert worker.said("metrics.reloaded") == [("old", True)]
    assert worker.said("poll_certificate") == [({"force": True},)]
    worker._shadow = SimpleNamespace(policy_file=Said("shadow", worker.calls))  # type: ignore[assignment] # in its place
    worker._reload()
    assert worker.said("shadow.reload") == [()]


def test_a_worker_that_ends_closes_its_parts_and_its_log_last() -> None:
    cluster = Cluster()
    worker = Worker(cluster)
    worker._tracer, worker._recorder = Said("tracer", worker.calls), Said("recorder", worker.calls)  # type: ignore[assignment] # in their place
    worker._stop()
    ended = ["guarding.leave", "recorder.close", "tracer.close", "log.close"]
    assert ([name for name, *_ in worker.calls[2:]], cluster.is_stopped) == (ended, True)
    alone = Worker()
    alone._stop()
    assert alone.calls[2:] == [("guarding.leave",), ("log.close",)]


@pytest.mark.parametrize(
    ("state", "measured", "lines"),
    [
        (KindState(NODE_POOL, KindStatus.SYNCED, 4), (("NodePool", 4), True), []),
        (
            KindState(NODE_POOL, KindStatus.NOT_SERVED, reason="no such kind"),
            (("NodePool", None), False),
            [
                (
                    "warning",
                    "cluster data not available",
                    {"resource": "nodepools.karpenter.sh", "standing": "not_served", "reason": "no such kind"},
                )
            ],
        ),
    ],
    ids=["read", "unavailable"],
)
def test_the_state_of_a_kind_is_measured_and_a_problem_is_logged(
    state: KindState, measured: tuple[Any, bool], lines: list[Any]
) -> None:
    worker = Worker()
    worker._log_kind_state(state)
    values, served = measured
    assert worker.said("metrics.facts") == [(*values, {"served": served})]
    assert worker.said("log.event") == lines


@pytest.mark.parametrize(
    ("client_ca", "names"), [(None, None), (Path("clients.crt"), frozenset({"a", "b"}))], ids=["any", "named"]
)
def test_clients_are_limited_by_name_if_they_have_certificates(
    client_ca: Path | None, names: frozenset[str] | None
) -> None:
    worker = Worker(options=ServeOptions("127.0.0.1", 0, client_ca=client_ca, client_names=("a", "b")))
    worker._recorder = Said("recorder", worker.calls)  # type: ignore[assignment] # in its place
    worker._shadow = SimpleNamespace(shadow=Said("shadow", worker.calls))  # type: ignore[assignment] # as above

    async def create() -> Any:
        return worker._front()

    front = asyncio.run(create())
    assert front.client_names == names
    for attached in ("shadow.attach", "recorder.attach"):
        assert worker.said(attached) == [(front.loop, front.load)]


@pytest.mark.parametrize("hand_over", [None, object()], ids=["one worker", "several"])
def test_expensive_reviews_are_handed_over_if_there_is_a_process_for_them(hand_over: Any) -> None:
    async def create() -> Any:
        return Worker(hand_over=hand_over)._front()

    assert asyncio.run(create()).config.app._hand_over is hand_over


HOSTS = [("gpu-node.example", "gpu-node.example"), ("a/b c_d", "a-b-c-d"), ("x" * 200, "x" * 100), ("", "host")]


@pytest.mark.parametrize(("node", "host"), HOSTS)
def test_a_host_is_a_part_of_a_file_name(monkeypatch: pytest.MonkeyPatch, node: str, host: str) -> None:
    monkeypatch.setattr(platform, "node", lambda: node)
    assert serve_worker._host() == host


class TestRecording:
    """The recorder that a process creates, with the arguments instead of it."""

    @pytest.fixture(autouse=True)
    def _arguments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serve_worker, "Recorder", lambda *given, **named: SimpleNamespace(given=given, **named))
        monkeypatch.setattr(platform, "node", lambda: "host")

    def recorder(self, workers: int = 1, most_bytes: int = 1200, number: int = 0, **parts: Any) -> Any:
        recording = Recording(Path("records"), 0.5, most_bytes)
        options = ServeOptions("127.0.0.1", 0, workers=workers, recording=recording)
        self.worker = Worker(number=number, **{"options": options, "vocabulary": Vocabulary(("queue",))} | parts)
        return self.worker._recorder

    @pytest.mark.parametrize(
        ("workers", "most_bytes", "file_bytes"),
        # Four files of each process; several workers have another process for expensive reviews.
        [(1, 1200, 300), (2, 1200, 100), (1, 3, 1)],
    )
    def test_the_files_of_all_processes_fit_into_the_limit(
        self, workers: int, most_bytes: int, file_bytes: int
    ) -> None:
        hand_over = Said("hand_over", []) if workers > 1 else None
        folder, fraction, *_ = self.recorder(workers, most_bytes, 1, hand_over=hand_over).given
        assert (folder.path, folder.name) == (Path("records"), "host-1")
        assert (folder.most_bytes, folder.file_bytes, fraction) == (most_bytes, file_bytes, 0.5)

    @pytest.mark.parametrize(
        ("parts", "is_recording"),
        [
            ({}, True),
            ({"vocabulary": None}, False),
            ({"options": ServeOptions("127.0.0.1", 0)}, False),
        ],
        ids=["on", "without words", "off"],
    )
    def test_without_a_recording_there_is_no_recorder(self, parts: dict[str, Any], *, is_recording: bool) -> None:
        assert (self.recorder(**parts) is not None) is is_recording

    @pytest.mark.parametrize(("number", "has_facts"), [(0, True), (1, False)])
    def test_one_process_records_the_cluster_data(self, number: int, *, has_facts: bool) -> None:
        cluster = Cluster()
        recorder = self.recorder(number=number, cluster=cluster)
        assert (recorder.facts is cluster.facts, recorder.facts is None) == (has_facts, not has_facts)

    def test_a_process_without_a_cluster_records_no_cluster_data(self) -> None:
        assert self.recorder().facts is None

    def test_a_recorder_reads_the_words_and_the_rules_in_force(self) -> None:
        _, _, vocabulary, rules, _, count = self.recorder().given
        assert (vocabulary().knows("queue"), rules().generation) == (True, "old")
        self.worker._use(NEW)
        assert (vocabulary().knows("inference"), rules().generation) == (True, NEW.generation)
        count("recorded", 2)
        assert self.worker.said("metrics.record_result") == [("recorded", 2)]


class Closes:
    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("workers", ["one", "several", "expensive"])
def test_a_process_serves_its_listener_only(monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    """One worker evaluates expensive reviews itself; several hand them over to a process that has no other listener."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        serve_worker, "_Parts", lambda *given: SimpleNamespace(run=lambda *ports: calls.append((given, ports)))
    )
    hand_over = SimpleNamespace(listener=Closes()) if workers != "one" else None
    shared: Any = SimpleNamespace(
        hand_over=hand_over,
        admission=Closes(),
        health=Closes(),
        context=object(),
        guarding=Said("guarding", calls),
    )
    if workers == "expensive":
        serve_worker.run_expensive(2, shared, hand_over)  # type: ignore[arg-type] # what is used of it
    else:
        serve_worker.run_worker(2, shared)

    closed = (
        shared.admission.is_closed,
        shared.health.is_closed,
        hand_over is not None and hand_over.listener.is_closed,
    )
    entered, (given, ports) = calls
    if workers == "expensive":
        assert hand_over is not None
        assert (given, ports, closed) == ((2, shared, None), ((hand_over.listener, None), None), (True, True, False))
    else:
        expected = ((2, shared, hand_over), ((shared.admission, shared.context), shared.health))
        assert ((given, ports), closed) == (expected, (False, False, workers == "several"))
    # A worker that hands a review over does not count its CPU time as a failure of a policy.
    assert entered == ("guarding.enter", 2, {"counts_cpu": workers != "several"})


class ShadowWorker(Worker):
    """A worker with a shadow policy file."""

    def __init__(self, folder: Path, cluster: Cluster | None = None, number: int = 0, **parts: Any) -> None:
        shadow = SimpleNamespace(
            **{"files": RulesFiles(folder / "shadow.yaml"), "folder": folder, "rules": NEW, "error": ""} | parts
        )
        super().__init__(cluster, number, shadow=shadow)
        assert self._shadow is not None
        self.parts = self._shadow


@pytest.mark.parametrize(
    ("rules", "error"), [(NEW, ""), (None, "invalid"), (NEW, "invalid")], ids=["valid", "invalid", "became invalid"]
)
def test_a_shadow_begins_with_what_the_supervisor_knows(tmp_path: Path, rules: Rules | None, error: str) -> None:
    worker = ShadowWorker(tmp_path, rules=rules, error=error)
    assert worker.parts.shadow.rules is rules
    document = worker.shadowed()
    assert document is not None
    assert (b"invalid" in document) is bool(error)


def test_a_changed_shadow_policy_file_is_used_and_an_invalid_one_is_reported(tmp_path: Path) -> None:
    worker = ShadowWorker(tmp_path)
    (tmp_path / "shadow.yaml").write_text(AUDIT)
    worker.parts.tick()
    used = worker.parts.shadow.rules
    assert used is not None
    assert used.generation == load_rules(tmp_path / "shadow.yaml").generation

    (tmp_path / "shadow.yaml").write_text("mode: [")
    worker.parts.tick()
    assert worker.parts.shadow.rules is used
    assert worker.said("metrics.shadow_reloaded") == [({"ok": True},), ({"ok": False},)]
    assert b"not YAML" in (worker.shadowed() or b"")


def test_only_a_shadow_that_is_valid_shows_its_table(tmp_path: Path) -> None:
    ShadowWorker(tmp_path, number=3).parts.tick()
    assert [file.name for file in tmp_path.iterdir()] == ["3.shadow"]


def test_the_cluster_data_of_a_shadow_does_not_delay_readiness(tmp_path: Path) -> None:
    cluster = Cluster()
    (tmp_path / "shadow.yaml").write_text(AUDIT)
    worker = ShadowWorker(tmp_path, cluster)
    cluster.missing_kinds = ("nodepools.karpenter.sh not listed yet",)
    worker.parts.tick()
    assert (cluster.needs, worker.parts.rules) == ([], ())

    cluster.missing_kinds = ()
    for _ in range(2):
        worker.parts.tick()
    assert cluster.needs == [ALL_NEEDS]
    assert worker.parts.shadow.rules is not None
    assert worker.parts.rules == worker.parts.shadow.rules.ruleset.rules


@pytest.mark.parametrize(("number", "seconds"), [(0, QUICK_SECONDS), (1, MOST_CPU_SECONDS)])
def test_only_the_process_for_expensive_reviews_takes_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, seconds: float
) -> None:
    given: list[Any] = []
    create = serve_worker.Shadow
    monkeypatch.setattr(serve_worker, "Shadow", lambda *args, **named: given.append(args) or create(*args, **named))
    ShadowWorker(tmp_path, number=number)
    assert [args[3] for args in given] == [seconds]


CHANGED = Pair("nodepools/missing-gpu-limit", "warn", "deny")


@pytest.mark.parametrize(
    ("user", "requester"), [("alice", "person"), ("system:serviceaccount:kube-system:job-controller", "controller")]
)
def test_a_new_difference_is_logged_with_its_owner(tmp_path: Path, user: str, requester: str) -> None:
    worker = ShadowWorker(tmp_path)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1", "controller": True}
    request = Request(
        GroupVersionKind("", "v1", "Pod"),
        Operation.CREATE,
        {"metadata": {"ownerReferences": [owner]}},
        generate_name="train-",
        namespace="team",
        user=user,
    )
    worker.parts.new(request, CHANGED)
    fields = {
        "policy": "nodepools/missing-gpu-limit",
        "current": "warn",
        "candidate": "deny",
        "kind": "v1 Pod",
        "namespace": "team",
        "name": "train-*",
        "owner": "Job/team/train",
        "operation": "CREATE",
        "requester": requester,
    }
    assert worker.said("log.event") == [("info", "the shadow policy file decides differently", fields)]


def test_results_of_a_shadow_are_measured(tmp_path: Path) -> None:
    worker = ShadowWorker(tmp_path)
    request = Request(GroupVersionKind("", "v1", POD.name), Operation.DELETE, None)
    worker.parts.result("evaluated")
    worker.parts.pair(request, CHANGED)
    assert worker.said("metrics.shadow_result") == [("evaluated",)]
    assert worker.said("metrics.shadow_pair") == [(request, CHANGED)]
