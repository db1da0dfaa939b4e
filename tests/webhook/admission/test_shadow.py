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

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Known, Need, NoFacts, derived
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.objects import NODE_POOL, POD
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.shadow import Shadow

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
