from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import OTHER, OUTCOME_DECISIONS, REVIEW_DECISIONS, UNREAD, Observation
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.metrics import METRICS, Metric, Metrics
from gpugate.webhook.admission.recorder import RESULTS as RECORD_RESULTS
from gpugate.webhook.admission.review import ReviewError
from gpugate.webhook.admission.shadow import RESULTS
from gpugate.webhook.admission.shadow_table import DECISIONS, Pair
from gpugate.webhook.cluster.named_object import MUTATING, VALIDATING
from gpugate.webhook.registration.drift_reasons import Reason

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without its header row."""
    section = PAGE.partition(f"{heading}\n")[2]
    table = re.findall(r"(?m)^\|.*\|$", section)[2:]
    ends = next((index for index, row in enumerate(table) if row.startswith("|---")), len(table) + 1)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table[: ends - 1]]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def exposed() -> Metrics:
    metrics = Metrics(CATALOG)
    metrics.observe(Observation(Phase.VALIDATE, 0.1, "3f2a", error=ReviewError(400, "m")))
    metrics.built("0.1.0")
    metrics.reloaded("3f2a", ok=True)
    metrics.shadow_result("evaluated")
    metrics.shadow_pair(Request(GroupVersionKind("", "v1", "Pod"), Operation.CREATE, {}), Pair("", "warn", "deny"))
    metrics.shadow_reloaded(ok=True)
    metrics.record_result("recorded", 1)
    metrics.certificate(dt.datetime(2026, 11, 21, tzinfo=dt.UTC))
    metrics.certificate_reloaded(ok=True)
    metrics.certificate_management(good=True, leads=True)
    metrics.authority(dt.datetime(2027, 2, 19, tzinfo=dt.UTC))
    metrics.bundle("MutatingWebhookConfiguration", 1.8e9)
    metrics.drift({})
    metrics.clock_skew(0)
    metrics.switched("acme/slow", off=True)
    metrics.facts("NodePool", 1)
    metrics.facts_age("NodePool", 0)
    return metrics


def test_the_page_lists_every_metric() -> None:
    assert rows("# Metrics") == [
        [f"`{m.name}`", m.type, ", ".join(f"`{label}`" for label in m.labels), m.help] for m in METRICS
    ]


def test_exposed_metrics_match_the_table() -> None:
    families = text_string_to_metric_families(exposed().exposition("")[1].decode())
    found = {
        (f.name.removesuffix("_total"), f.type, f.documentation, frozenset(f.samples[0].labels) - {"le"})
        for f in families
        if not f.name.endswith("_created")
    }
    assert found == {(m.name.removesuffix("_total"), m.type, m.help, frozenset(m.labels)) for m in METRICS}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"gpugate_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") is (metric.type == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|kilobytes|megabytes|percent)(_|$)", metric.name)


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("`phase`", {Phase.MUTATE.value, Phase.VALIDATE.value}),
        ("`kind`", {OTHER, UNREAD}),
        ("`operation`", {*Operation, UNREAD}),
        ("`decision` of a review", set(REVIEW_DECISIONS)),
        ("`decision` of a policy", set(OUTCOME_DECISIONS)),
        ("`from`, `to`", set(DECISIONS)),
        ("`result`", {*RESULTS, *RECORD_RESULTS}),
        ("`mode`", {mode.word for mode in Stance if mode}),
        ("`configuration`", {MUTATING, VALIDATING}),
        ("`reason`", {reason.value for reason in Reason}),
        ("`event`", {event.value for event in FrontEvent}),
    ],
)
def test_the_page_lists_the_values_of_a_label(label: str, values: set[str]) -> None:
    listed = {row[0]: words(row[1]) for row in rows("## Labels")}
    assert listed[label] == values


def test_alerts_name_metrics_that_exist() -> None:
    named = set(re.findall(r"gpugate_[a-z_]+", PAGE.partition("## What to alert on")[2]))
    of_audits = {name for row in rows("## Metrics of the audit") for name in words(row[0])}
    assert {name.removesuffix("_bucket") for name in named} <= {metric.name for metric in METRICS} | of_audits
