"""When answered reviews are evaluated by the shadow policies, and that nothing of it can fail a worker."""

from __future__ import annotations

import datetime as dt
import json
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from manual_loop import Loop
from pod_reviews import pod_review

from gpugate import __version__
from gpugate.policies.engine.config import Exemption, PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.engine.verdict import Verdict
from gpugate.policies.sdk.facts import Known, Need, NoFacts, Unavailable, derived
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Violation
from gpugate.policies.sdk.objects import DEPLOYMENT, NODE_POOL, POD, GroupVersionKind, Operation, Request
from gpugate.policies.sdk.policy import Policy, mutates, validates
from gpugate.webhook.admission import idle
from gpugate.webhook.admission import shadow as module
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.review import Review
from gpugate.webhook.admission.shadow import ApartFacts, Shadow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.admission.shadow_table import Pair

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


@validates(POD)
def _behaves(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    how = pod["metadata", "labels", "how"].text
    if how == "exits":
        raise SystemExit
    if how == "loops":
        while True:
            pass
    if how == "interrupts":
        raise KeyboardInterrupt
    pools = ctx.facts.list(NODE_POOL)
    yield Violation((), f"{len(pools.items) if isinstance(pools, Known) else 0} pools")


def rules(mode: str, generation: str) -> Rules:
    needs = (Need(NODE_POOL, ("spec",)),)
    policy = Policy("pods/behaves", "", (validates(POD, needs=needs)(_behaves.run),))
    return Rules(bind((policy,), PolicyConfig(mode=mode)), generation)  # type: ignore[arg-type] -- a mode


class Observed:
    def __init__(self) -> None:
        self.results: list[str] = []
        self.pairs: list[tuple[str, str]] = []

    def result(self, result: str) -> None:
        self.results.append(result)

    def pair(self, _request: object, pair: Pair) -> None:
        self.pairs.append((pair.current, pair.candidate))

    def new(self, _request: object, _pair: Pair) -> None:
        pass


class Pools:
    """Cluster data that changes."""

    def __init__(self, pools: int) -> None:
        self.known = Known(tuple(Field({"metadata": {"name": str(number)}}) for number in range(pools)), complete=True)

    def list(self, *_: object) -> Known:
        return self.known


class Worker:
    """A gate with a shadow behind it."""

    def __init__(self, file: Path, budget: CpuBudget) -> None:
        self.loop, self.load, self.observed = Loop(), SimpleNamespace(waiting=0), Observed()
        self.facts: Any = NoFacts()
        self.gate = Gate(rules("warn", "old"), NoFacts(), lambda: NOW, self._offer, budget)
        self.shadow = Shadow(
            lambda: self.facts,
            lambda: NOW,
            budget,
            0.02,
            self.observed,
            file,
            current=lambda: self.gate.rules.generation,
        )
        self.shadow.use(rules("enforce", "new"))
        self.shadow.attach(self.loop, self.load)  # type: ignore[arg-type] -- as much of both as a shadow uses

    def _offer(self, observation: Any) -> None:
        self.shadow.offer(observation)

    def review(self, how: str = "", size: int = 0) -> dict[str, Any]:
        metadata = {"name": "p", "namespace": "n", "labels": {"how": how, "long": "x" * size}}
        body = pod_review({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, "n")
        response: dict[str, Any] = json.loads(self.gate.validate(body).body)["response"]
        return response

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.shadow.document())
        return document


@pytest.fixture
def budget() -> Iterator[CpuBudget]:
    before = signal.getsignal(signal.SIGPROF)
    yield CpuBudget()
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def worker(tmp_path: Path, budget: CpuBudget) -> Worker:
    return Worker(tmp_path / "0.shadow", budget)


def test_a_review_is_evaluated_after_its_answer(worker: Worker) -> None:
    assert worker.review()["allowed"]
    assert worker.observed.results == []
    worker.loop.run(1)
    assert (worker.observed.results, worker.observed.pairs) == (["evaluated"], [("warn", "deny")])


def test_while_requests_wait_no_review_is_evaluated(worker: Worker) -> None:
    worker.load.waiting = 1
    worker.review()
    worker.loop.run(60)
    assert worker.observed.results == []
    worker.load.waiting = 0
    worker.loop.run(1)
    assert worker.observed.results == ["evaluated"]


def test_under_load_the_queue_stays_bounded_and_the_rest_is_counted(worker: Worker) -> None:
    worker.load.waiting = 1
    answers = [worker.review() for _ in range(1_000)]
    assert all(answer["allowed"] for answer in answers)
    assert worker.observed.results == ["dropped"] * (1_000 - 256)
    worker.load.waiting = 0
    worker.loop.run(60)
    assert worker.observed.results.count("evaluated") == 256
    assert worker.document["reviews"] == {"evaluated": 256, "dropped": 744}


def test_large_reviews_wait_within_a_limit_of_bytes(worker: Worker) -> None:
    for _ in range(20):
        worker.review(size=200_000)
    worker.loop.run(60)
    assert worker.observed.results == ["dropped"] * 15 + ["evaluated"] * 5


def test_a_review_larger_than_the_limit_waits_alone(worker: Worker) -> None:
    worker.review(size=2_000_000)
    worker.review()
    worker.loop.run(60)
    assert worker.observed.results == ["dropped", "evaluated"]


@pytest.mark.parametrize(
    ("how", "result"), [("loops", "late"), ("interrupts", "failed")], ids=["over its time", "an interrupt"]
)
def test_whatever_a_policy_does_is_only_counted(worker: Worker, how: str, result: str) -> None:
    # The policy in force behaves alike and its answer says so; only the shadow is observed here.
    worker.gate.use(Rules(bind((), PolicyConfig()), "old"))
    worker.review(how)
    worker.review()
    worker.loop.run(60)
    assert worker.observed.results == [result, "evaluated"]


def test_a_policy_that_raises_is_a_decision(worker: Worker) -> None:
    worker.gate.use(Rules(bind((), PolicyConfig()), "old"))
    worker.review("exits")
    worker.loop.run(60)
    assert worker.observed.pairs == [("allow", "deny")]
    assert "failed: SystemExit" in worker.document["owners"][0]["pairs"][0]["sample"]["message"]


def test_the_cluster_data_is_that_of_the_answer(worker: Worker) -> None:
    worker.facts = Pools(3)
    worker.review()
    worker.facts = Pools(7)
    worker.loop.run(60)
    assert worker.document["owners"][0]["pairs"][0]["sample"]["message"] == "3 pools"


def test_derived_values_of_the_policies_in_force_stay(worker: Worker) -> None:
    """Otherwise each review would compute again what both sides derive from the same objects."""
    computed: list[object] = []

    def compute(known: Known, _ctx: AnyContext) -> int:
        computed.append(known)
        return len(computed)

    contexts: list[AnyContext] = []

    @validates(POD)
    def derives(_pod: Field, ctx: AnyContext) -> Iterator[Violation]:
        contexts.append(ctx)
        pools = ctx.facts.list(NODE_POOL)
        assert isinstance(pools, Known)
        derived(pools, compute, ctx)
        yield from ()

    policies = (Policy("pods/derives", "", (derives,)),)
    facts = worker.facts = Pools(2)
    worker.gate = Gate(Rules(bind(policies, PolicyConfig()), "old"), facts, lambda: NOW, worker.shadow.offer)
    worker.shadow.use(Rules(bind(policies, PolicyConfig(mode="enforce")), "new"))
    for _ in range(5):
        worker.review()
        worker.loop.run(60)
    assert len(contexts) == 10
    assert len(computed) == 2


def test_dry_runs_are_left_out(worker: Worker) -> None:
    body = json.loads(pod_review({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}, "n"))
    body["request"]["dryRun"] = True
    worker.gate.validate(json.dumps(body).encode())
    worker.loop.run(60)
    assert worker.observed.results == []


def test_other_policies_in_force_begin_another_table(worker: Worker) -> None:
    worker.review()
    worker.loop.run(60)
    worker.gate.use(rules("audit", "newer"))
    assert (worker.document["owners"], worker.document["current"]) == ([], "newer")
    worker.review()
    worker.loop.run(60)
    assert [pair["current"] for owner in worker.document["owners"] for pair in owner["pairs"]] == ["record"]


def test_a_restarted_process_continues_its_table(worker: Worker, tmp_path: Path, budget: CpuBudget) -> None:
    worker.review()
    worker.loop.run(60)
    worker.shadow.publish()
    restarted = Worker(tmp_path / "0.shadow", budget)
    restarted.review()
    restarted.loop.run(60)
    assert [pair["requests"] for pair in restarted.document["owners"][0]["pairs"]] == [2]
    assert restarted.document["reviews"] == {"evaluated": 2}


def test_a_damaged_table_of_another_process_is_left_out(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "1.shadow").write_bytes(b'{"schema": ')
    worker.review()
    worker.loop.run(60)
    assert worker.document["reviews"] == {"evaluated": 1}


def test_a_full_disk_changes_nothing(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "0.draft").mkdir()
    worker.review()
    worker.loop.run(60)
    worker.shadow.publish()
    assert worker.document["reviews"] == {"evaluated": 1}


def test_busy_workers_evaluate_a_fortieth_of_the_time(worker: Worker) -> None:
    """With a review each millisecond, evaluations pause; when no further review comes, all that wait are evaluated."""
    clock = iter(number * 0.001 for number in range(1_000_000))
    import gpugate.webhook.admission.idle as module  # noqa: PLC0415 -- its clock is replaced

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "perf_counter", lambda: next(clock))
        for _ in range(250):
            worker.review()
            worker.loop.run(0.001)
        assert 5 <= worker.observed.results.count("evaluated") <= 8
        worker.loop.run(2)
    assert worker.observed.results.count("evaluated") == 250


def offered(worker: Worker, review: Review, verdict: Verdict | None, phase: Phase = Phase.VALIDATE) -> None:
    worker.shadow.offer(Observation(phase, 0.0, "old", review, verdict, size=1))
    worker.loop.run(60)


def answered(obj: dict[str, Any], kind: str = "v1 Pod", **members: Any) -> tuple[Review, Verdict]:
    """Return a review on which the policies in force found nothing."""
    api_version, _, name = kind.partition(" ")
    request = Request(GroupVersionKind.of(api_version, name), Operation.CREATE, obj, name="p", namespace="n", **members)
    return Review("u", "admission.k8s.io/v1", request), Verdict(request)


PLAIN = answered({"metadata": {"name": "p"}})


def of_policies(*handlers: Any, config: PolicyConfig | None = None) -> Rules:
    return Rules(bind((Policy("pods/behaves", "", handlers),), config or PolicyConfig(mode="enforce")), "new")


@validates(POD, DEPLOYMENT)
def _finds(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    yield Violation((), "is bad")


@mutates(POD)
def _adds(pod: Field, _ctx: AnyContext) -> Iterator[Patch]:
    if not pod["metadata", "labels", "good"]:
        yield Patch("set", ("metadata", "labels", "good"), "yes", "adds a label")


@validates(POD)
def _needs(pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
    if not pod["metadata", "labels", "good"]:
        yield Violation((), "has no label")


class TestEvaluated:
    def test_what_is_not_offered(self, worker: Worker, tmp_path: Path, budget: CpuBudget) -> None:
        review, verdict = PLAIN
        offered(worker, review, None)
        dry, _ = answered({}, dry_run=True)
        offered(worker, dry, verdict)
        worker.shadow.offer(Observation(Phase.VALIDATE, 0.0, "old"))
        unused = Shadow(NoFacts, lambda: NOW, budget, 1, worker.observed, tmp_path / "x.shadow", current=lambda: "old")
        assert unused.rules is None
        unused.attach(worker.loop, worker.load)  # type: ignore[arg-type] -- as above
        unused.offer(Observation(Phase.VALIDATE, 0.0, "old", review, verdict, size=1))
        unused.use(rules("enforce", "new"))
        assert unused.rules is not None
        worker.loop.run(60)
        assert worker.observed.results == []
        offered(worker, *PLAIN)
        assert worker.observed.results == ["evaluated"]

    def test_without_a_loop_nothing_waits(self, worker: Worker, tmp_path: Path, budget: CpuBudget) -> None:
        other = Shadow(NoFacts, lambda: NOW, budget, 1, worker.observed, tmp_path / "x.shadow", current=lambda: "old")
        other.use(rules("enforce", "new"))
        other.offer(Observation(Phase.VALIDATE, 0.0, "old", *PLAIN, size=1))
        assert worker.observed.results == []

    def test_a_review_of_earlier_policies_in_force_is_dropped(self, worker: Worker) -> None:
        review, verdict = PLAIN
        worker.shadow.offer(Observation(Phase.VALIDATE, 0.0, "older", review, verdict, size=1))
        worker.loop.run(60)
        assert worker.observed.results == ["dropped"]

    def test_the_first_review_of_other_policies_in_force_is_evaluated(self, worker: Worker) -> None:
        worker.gate.use(rules("audit", "newer"))
        worker.review()
        worker.loop.run(60)
        assert (worker.observed.results, worker.document["current"]) == (["evaluated"], "newer")

    @pytest.mark.parametrize(
        ("phase", "pairs"),
        [
            pytest.param(Phase.VALIDATE, [], id="a validated object was patched before"),
            pytest.param(Phase.MUTATE, [("allow", "mutate")], id="of a mutated object the patches count"),
        ],
    )
    def test_a_validated_object_has_the_patches_of_the_shadow_policies(
        self, worker: Worker, phase: Phase, pairs: list[tuple[str, str]]
    ) -> None:
        worker.shadow.use(of_policies(_adds, _needs))
        offered(worker, *PLAIN, phase)
        assert (worker.observed.results, worker.observed.pairs) == (["evaluated"], pairs)

    def test_a_finding_in_a_template_only_warns(self, worker: Worker) -> None:
        worker.shadow.use(of_policies(_finds))
        template = {"spec": {"template": {"metadata": {}, "spec": {"containers": []}}}}
        offered(worker, *answered(template, "apps/v1 Deployment"))
        assert ("allow", "deny") in worker.observed.pairs
        worker.observed.pairs.clear()
        worker.shadow.use(of_policies(validates(POD)(_finds.run)))
        offered(worker, *answered(template, "apps/v1 Deployment"))
        assert worker.observed.pairs == [("allow", "warn")]

    def test_an_exemption_holds_at_the_time_of_the_answer(self, tmp_path: Path, budget: CpuBudget) -> None:
        expires = dt.date(2026, 11, 21)
        exemption = Exemption(policies=("pods/behaves",), reason="INC-1", owner="platform", expires=expires)
        now, observed, loop = [NOW], Observed(), Loop()
        shadow = Shadow(NoFacts, lambda: now[0], budget, 1, observed, tmp_path / "x.shadow", current=lambda: "old")
        shadow.use(of_policies(_finds, config=PolicyConfig(mode="enforce", exemptions=(exemption,))))
        shadow.attach(loop, SimpleNamespace(waiting=0))  # type: ignore[arg-type] -- as above
        for days in (0, 2):
            now[0] = NOW + dt.timedelta(days=days)
            shadow.offer(Observation(Phase.VALIDATE, 0.0, "old", *PLAIN, size=1))
            now[0] += dt.timedelta(days=2)
            loop.run(60)
        # Exempted first: the finding is only recorded.
        assert observed.pairs == [("allow", "record"), ("allow", "deny")]

    def test_evaluations_pause_after_each_review(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        """After work of 10 ms a worker pauses for 400 ms, or until 100 ms after the last review."""
        clock = iter(number * 0.01 for number in range(1_000))
        monkeypatch.setattr(idle, "perf_counter", lambda: next(clock))
        worker.loop.now = 60.0
        for seconds in (1, 0.004, 0.09):
            worker.shadow.offer(Observation(Phase.VALIDATE, 0.0, "old", *PLAIN, size=1))
            worker.loop.run(seconds)
        assert worker.observed.results == ["evaluated"] * 2
        worker.loop.run(0.02)
        assert worker.observed.results == ["evaluated"] * 3

    def test_new_pairs_are_logged_once(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        logged: list[str] = []
        monkeypatch.setattr(
            worker.observed, "new", lambda request, pair: logged.append(f"{request.name} {pair.message}")
        )
        worker.shadow.use(of_policies(_finds))
        for _ in range(2):
            offered(worker, *PLAIN)
        assert (logged, worker.observed.pairs) == (["p is bad"], [("allow", "deny")] * 2)

    def test_a_failed_evaluation_keeps_no_frames(self, worker: Worker) -> None:
        errors: list[BaseException] = []

        @validates(POD)
        def interrupts(_pod: Field, _ctx: AnyContext) -> Iterator[Violation]:
            errors.append(KeyboardInterrupt())
            raise errors[0]
            yield

        worker.shadow.use(of_policies(interrupts))
        offered(worker, *PLAIN)
        assert (worker.observed.results, errors[0].__traceback__) == (["failed"], None)


class TestPublished:
    def published(self, worker: Worker) -> dict[str, Any] | None:
        """Return the table that the process publishes now, None if it publishes none."""
        file = worker.shadow._file
        file.unlink(missing_ok=True)
        worker.shadow.publish()
        assert [path.name for path in file.parent.iterdir()] in ([file.name], [])
        return json.loads(file.read_bytes()) if file.exists() else None

    def test_a_table_is_written_if_it_changed(self, worker: Worker) -> None:
        first = self.published(worker)
        assert first is not None
        assert (first["schema"], first["gpugate"], first["current"], first["candidate"]) == (
            "gpugate.dev/shadow/v1", __version__, "old", "new",
        )  # fmt: skip
        assert self.published(worker) is None
        worker.review()
        worker.loop.run(60)
        assert (self.published(worker) or {})["reviews"] == {"evaluated": 1}
        assert self.published(worker) is None
        worker.shadow.reject("line 3: unknown policy")
        assert (self.published(worker) or {})["error"] == "line 3: unknown policy"
        assert self.published(worker) is None
        worker.gate.use(rules("audit", "newer"))
        table = self.published(worker)
        assert table is not None
        assert (table["current"], table["reviews"], table["owners"]) == ("newer", {}, [])
        worker.shadow.use(rules("enforce", "newest"))
        table = self.published(worker)
        assert table is not None
        assert (table["candidate"], table["error"]) == ("newest", "")

    def test_the_document_adds_up_the_tables_of_all_processes(
        self, worker: Worker, tmp_path: Path, budget: CpuBudget
    ) -> None:
        other = Worker(tmp_path / "1.shadow", budget)
        for each, reviews in ((worker, 1), (other, 2)):
            for _ in range(reviews):
                each.review()
                each.loop.run(60)
            each.shadow.publish()
        (tmp_path / "2.other").write_bytes((tmp_path / "1.shadow").read_bytes())
        assert worker.document["reviews"] == other.document["reviews"] == {"evaluated": 3}
        (owner,) = worker.document["owners"]
        assert [pair["requests"] for pair in owner["pairs"]] == [3]

    def test_a_restarted_process_with_other_policies_begins_anew(
        self, worker: Worker, tmp_path: Path, budget: CpuBudget
    ) -> None:
        worker.review()
        worker.loop.run(60)
        worker.shadow.publish()
        restarted = Worker(tmp_path / "0.shadow", budget)
        assert restarted.document["reviews"] == {"evaluated": 1}
        restarted.shadow.use(rules("enforce", "newer"))
        assert restarted.document["reviews"] == {}

    def test_its_time_begins_with_its_policies_and_survives_a_restart(self, tmp_path: Path, budget: CpuBudget) -> None:
        now = [NOW]

        def started() -> Shadow:
            shadow = Shadow(
                NoFacts, lambda: now[0], budget, 1, Observed(), tmp_path / "0.shadow", current=lambda: "old"
            )
            shadow.use(rules("enforce", "new"))
            return shadow

        def times(shadow: Shadow) -> list[str]:
            document = json.loads(shadow.document())
            return [document["since"][11:16], document["until"][11:16]]

        shadow = started()
        now[0] += dt.timedelta(hours=1)
        shadow.publish()
        now[0] += dt.timedelta(hours=1)
        assert (times(shadow), times(started())) == (["00:00", "02:00"], ["00:00", "02:00"])
        shadow.use(rules("enforce", "newer"))
        assert times(shadow) == ["02:00", "02:00"]


class TestLookups:
    def test_the_copy_of_a_lookup_is_the_same_until_its_objects_change(self) -> None:
        pools, facts = Pools(2), ApartFacts()
        facts.facts = pools
        first = facts.list(NODE_POOL)
        assert isinstance(first, Known)
        assert (first is not pools.known, first.items, first.complete) == (True, pools.known.items, True)
        assert facts.list(NODE_POOL) is first
        # Another lookup has its own copy.
        assert facts.list(NODE_POOL, "n") is not first
        assert facts.list(POD) is not first
        assert facts.list(NODE_POOL) is first
        pools.known = Known(pools.known.items, complete=False)
        changed = facts.list(NODE_POOL)
        assert isinstance(changed, Known)
        assert (changed is first, changed.complete) == (False, False)

    def test_a_table_by_name_is_shared_with_the_original(self) -> None:
        pools, facts = Pools(2), ApartFacts()
        facts.facts = pools
        by_name = pools.known.by_name
        copy = facts.list(NODE_POOL)
        assert isinstance(copy, Known)
        assert copy.__dict__["by_name"] is by_name

    def test_missing_data_is_missing(self) -> None:
        facts = ApartFacts()
        facts.facts = NoFacts()
        assert isinstance(facts.list(NODE_POOL), Unavailable)

    def test_the_memory_of_lookups_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_MOST_LOOKUPS", 2)
        facts = ApartFacts()
        facts.facts = Pools(1)
        copies = [facts.list(NODE_POOL, namespace) for namespace in "abc"]
        # The first is the oldest.
        assert [facts.list(NODE_POOL, namespace) is copy for namespace, copy in zip("cba", copies[::-1], strict=True)] == [
            True, True, False,
        ]  # fmt: skip


def test_the_results_are_labels_of_a_metric() -> None:
    assert module.RESULTS == ("evaluated", "dropped", "late", "failed")
