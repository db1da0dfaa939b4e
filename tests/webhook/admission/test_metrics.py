from __future__ import annotations

import datetime as dt
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.verdict import Finding, Outcome, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.metrics import Metrics
from gpugate.webhook.admission.review import Review, ReviewError, UnattributableError
from gpugate.webhook.admission.shadow_table import Pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POD = Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, {}, name="a", namespace="team", user="u")
POLICY = "pods/missing-gpu-toleration"
DENIED = Outcome(POLICY, Stance.ENFORCE, (Finding(POLICY, (), "m", Stance.ENFORCE),))
WARNED = Outcome(POLICY, Stance.WARN, (Finding(POLICY, (), "m", Stance.WARN),))
RECORDED = Outcome(POLICY, Stance.AUDIT, (Finding(POLICY, (), "m", Stance.AUDIT),))
PATCHED = Outcome(POLICY, Stance.ENFORCE, patches=(Patch("set", ("spec",), 1, "r"),))
SKIPPED = Outcome(POLICY, Stance.ENFORCE, skipped=("no nodepools to look up",))
BROKE = Outcome(POLICY, Stance.WARN, error="KeyError")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CATALOG)


def samples(metrics: Metrics, prefix: str = "gpugate_") -> dict[str, float]:
    """Return every sample that is not zero, as `name{labels}`."""
    lines = metrics.exposition("")[1].decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith(prefix))
    return {name: float(value) for name, value in values.items() if float(value) and "_created" not in name}


def evaluated(*outcomes: Outcome, phase: Phase = Phase.VALIDATE, request: Request = POD) -> Observation:
    operations = ({"op": "add", "path": "/spec", "value": 1},) if PATCHED in outcomes else ()
    verdict = Verdict(request, outcomes, operations=operations)
    return Observation(phase, 0.0004, "3f2a", Review("u", "admission.k8s.io/v1", request), verdict)


@pytest.mark.parametrize(
    ("observation", "labels"),
    [
        pytest.param(evaluated(), 'decision="allow",kind="Pod",operation="CREATE",phase="validate"', id="passed"),
        pytest.param(evaluated(DENIED), 'decision="deny",kind="Pod",operation="CREATE",phase="validate"', id="denied"),
        pytest.param(
            evaluated(PATCHED, phase=Phase.MUTATE),
            'decision="mutate",kind="Pod",operation="CREATE",phase="mutate"',
            id="patched",
        ),
        pytest.param(evaluated(BROKE), 'decision="error",kind="Pod",operation="CREATE",phase="validate"', id="broke"),
        pytest.param(
            Observation(
                Phase.VALIDATE,
                0.1,
                "3f2a",
                Review("u", "admission.k8s.io/v1", POD),
                Verdict(POD, malformed=(Violation((), "m"),)),
            ),
            'decision="malformed",kind="Pod",operation="CREATE",phase="validate"',
            id="malformed",
        ),
        pytest.param(
            evaluated(request=Request(GroupVersionKind("x.io", "v1", "Pod"), Operation.DELETE, None)),
            'decision="allow",kind="other",operation="DELETE",phase="validate"',
            id="kind-of-another-group",
        ),
        pytest.param(
            Observation(Phase.MUTATE, 0.1, "3f2a", error=UnattributableError(400, "m")),
            'decision="failed",kind="unread",operation="unread",phase="mutate"',
            id="unread",
        ),
    ],
)
def test_reviews_by_decision(metrics: Metrics, observation: Observation, labels: str) -> None:
    metrics.observe(observation)
    assert samples(metrics, "gpugate_reviews_total") == {f"gpugate_reviews_total{{{labels}}}": 1}


@pytest.mark.parametrize(
    ("outcome", "phase", "decisions", "mode"),
    [
        pytest.param(DENIED, Phase.VALIDATE, ["deny"], "enforce", id="denied"),
        pytest.param(DENIED, Phase.MUTATE, ["warn"], "enforce", id="a-mutating-answer-never-denies"),
        pytest.param(PATCHED, Phase.MUTATE, ["mutate"], "enforce", id="patched"),
        pytest.param(WARNED, Phase.VALIDATE, ["warn"], "warn", id="warned"),
        pytest.param(RECORDED, Phase.VALIDATE, ["record"], "audit", id="recorded"),
        pytest.param(SKIPPED, Phase.VALIDATE, ["skip"], "enforce", id="skipped"),
        pytest.param(BROKE, Phase.VALIDATE, ["error"], "warn", id="broke"),
        pytest.param(Outcome(POLICY, Stance.ENFORCE), Phase.VALIDATE, [], "enforce", id="passed"),
        pytest.param(
            Outcome(POLICY, Stance.ENFORCE, (*DENIED.findings, *WARNED.findings), skipped=("x",)),
            Phase.VALIDATE,
            ["deny", "skip", "warn"],
            "enforce",
            id="several",
        ),
    ],
)
def test_what_each_policy_decided(
    metrics: Metrics, outcome: Outcome, phase: Phase, decisions: list[str], mode: str
) -> None:
    metrics.observe(evaluated(outcome, phase=phase))
    assert samples(metrics, "gpugate_policy_outcomes_total") == {
        f'gpugate_policy_outcomes_total{{decision="{decision}",mode="{mode}",policy="{POLICY}"}}': 1
        for decision in decisions
    }


@pytest.mark.parametrize(("code", "label"), [(400, "400"), (413, "413"), (500, "500"), (504, "504"), (418, "other")])
def test_refusals_by_code(metrics: Metrics, code: int, label: str) -> None:
    metrics.observe(Observation(Phase.VALIDATE, 0.1, "3f2a", error=ReviewError(code, "m")))
    assert samples(metrics, "gpugate_failed") == {f'gpugate_failed_reviews_total{{code="{label}"}}': 1}


def test_durations_in_seconds(metrics: Metrics) -> None:
    metrics.observe(evaluated())
    name = "gpugate_review_duration_seconds"
    found = samples(metrics, name)
    assert (found[f'{name}_sum{{phase="validate"}}'], found[f'{name}_count{{phase="validate"}}']) == (0.0004, 1)
    assert f'{name}_bucket{{le="0.00025",phase="validate"}}' not in found
    assert found[f'{name}_bucket{{le="0.0005",phase="validate"}}'] == 1


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(
            lambda m: m.front(FrontEvent.SHED_WORK), {'gpugate_server_events_total{event="shed_work"}': 1}, id="front"
        ),
        pytest.param(lambda m: m.connections(25), {"gpugate_connections": 25}, id="connections"),
        pytest.param(lambda m: m.body_bytes(6000), {"gpugate_body_bytes": 6000}, id="body-bytes"),
        pytest.param(lambda m: m.log_dropped(3), {"gpugate_log_lines_dropped_total": 3}, id="log-dropped"),
        pytest.param(lambda m: m.worker_restarted(), {"gpugate_worker_restarts_total": 1}, id="worker-restarted"),
        pytest.param(
            lambda m: m.certificate(dt.datetime(2026, 11, 21, tzinfo=dt.UTC)),
            {"gpugate_certificate_expiry_timestamp_seconds": 1795219200},
            id="certificate",
        ),
        pytest.param(
            lambda m: m.certificate_reloaded(ok=True),
            {"gpugate_certificate_last_reload_successful": 1},
            id="certificate-reloaded",
        ),
        pytest.param(
            lambda m: m.facts("NodePool", 12),
            {
                'gpugate_cluster_data_available{kind="NodePool"}': 1,
                'gpugate_cluster_data_served{kind="NodePool"}': 1,
                'gpugate_cluster_data_objects{kind="NodePool"}': 12,
            },
            id="facts",
        ),
        pytest.param(
            lambda m: m.facts("NodePool", None),
            {'gpugate_cluster_data_served{kind="NodePool"}': 1},
            id="facts-unavailable",
        ),
        pytest.param(lambda m: m.facts("NodePool", None, served=False), {}, id="facts-of-a-kind-that-is-not-there"),
        pytest.param(
            lambda m: m.facts("Secret", 1),
            {
                'gpugate_cluster_data_available{kind="other"}': 1,
                'gpugate_cluster_data_served{kind="other"}': 1,
                'gpugate_cluster_data_objects{kind="other"}': 1,
            },
            id="facts-of-an-unknown-kind",
        ),
        pytest.param(
            lambda m: m.reloaded("00000000ffff", ok=False), {"gpugate_config_hash": 0xFFFF}, id="failed-reload"
        ),
    ],
)
def test_what_happens_to_the_server(
    metrics: Metrics, report: Callable[[Metrics], None], expected: dict[str, float]
) -> None:
    report(metrics)
    assert samples(metrics) == expected


def test_reload_that_succeeded(metrics: Metrics) -> None:
    metrics.reloaded("shipped", ok=True)
    found = samples(metrics, "gpugate_config")
    assert found["gpugate_config_last_reload_successful"] == 1
    assert found["gpugate_config_last_reload_success_timestamp_seconds"] > 1_700_000_000
    assert "gpugate_config_hash" not in found


def test_unknown_values_are_not_reported(metrics: Metrics) -> None:
    assert b"gpugate_certificate_expiry" not in metrics.exposition("")[1]


def test_the_number_of_series_does_not_depend_on_reviews(metrics: Metrics) -> None:
    def review(number: int) -> Observation:
        kind = GroupVersionKind(f"group-{number}.io", "v1", f"Kind{number}")
        name = f"name-{number}"
        request = Request(kind, Operation.CREATE, {}, name=name, namespace=name, user=name, groups=(name,))
        return evaluated(DENIED, request=request)

    metrics.observe(review(0))
    before = len(metrics.exposition("")[1].splitlines())
    for number in range(1, 10_000):
        metrics.observe(review(number))
    assert len(metrics.exposition("")[1].splitlines()) == before


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        pytest.param("", "text/plain", "", id="plain"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text",
            "# EOF\n",
            id="as-prometheus-asks",
        ),
        pytest.param("text/html", "text/plain", "", id="anything-else"),
    ],
)
def test_format(metrics: Metrics, accept: str, content_type: str, end: str) -> None:
    sent_type, body = metrics.exposition(accept)
    assert sent_type.startswith(content_type)
    assert body.decode().endswith(end)


@pytest.fixture
def switching() -> Iterator[None]:
    """Let threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_threads_of_several_kinds_report_at_once() -> None:
    kinds = ("NodePool", "Node", "Namespace", "Job", "Deployment", "ReplicaSet")
    with ThreadPoolExecutor(len(kinds)) as threads:
        for _ in range(50):
            metrics, start = Metrics(CATALOG), Barrier(len(kinds))

            def report(kind: str, metrics: Metrics = metrics, start: Barrier = start) -> None:
                start.wait()
                metrics.facts(kind, 1)

            list(threads.map(report, kinds))
            found = samples(metrics, "gpugate_cluster_data_available")
            assert found == {f'gpugate_cluster_data_available{{kind="{kind}"}}': 1.0 for kind in kinds}


@pytest.mark.parametrize(
    ("policy", "label"), [(POLICY, POLICY), ("malformed", "malformed"), ("acme/of-another-set", "other")]
)
def test_differences_are_counted_by_known_policies(metrics: Metrics, policy: str, label: str) -> None:
    metrics.shadow_pair(POD, Pair(policy, "warn", "deny"))
    labels = f'policy="{label}",kind="Pod",operation="CREATE",from="warn",to="deny"'
    (found,) = samples(metrics, "gpugate_shadow_outcomes_total")
    assert sorted(found.partition("{")[2].strip("}").split(",")) == sorted(labels.split(","))


@pytest.mark.parametrize(
    "metric", ["gpugate_shadow_reviews_total", "gpugate_record_reviews_total"], ids=["shadow", "record"]
)
def test_reviews_are_counted_by_their_result(metrics: Metrics, metric: str) -> None:
    metrics.shadow_result("late")
    metrics.record_result("late", 1)
    assert samples(metrics, metric) == {f'{metric}{{result="late"}}': 1}
    metrics.record_result("late", 4)
    assert samples(metrics, "gpugate_record_reviews_total") == {'gpugate_record_reviews_total{result="late"}': 5}
