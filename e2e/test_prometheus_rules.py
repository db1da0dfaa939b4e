"""The recording rules of a cluster and those across clusters, evaluated by promtool on given series."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
FILES = Path(__file__).parents[1] / "charts" / "gpugate" / "files"
RULES = [FILES / "recording-rules.yaml", FILES / "fleet-rules.yaml"]
ORDER = ["gpugate-cluster", "gpugate-audit", "gpugate-fleet", "gpugate-fleet-alerts"]
DAY = 24 * 60


@dataclass(frozen=True)
class Promtool:
    """The program, and an empty folder for its files."""

    program: Path
    folder: Path

    def accepts(self, *rules: Path) -> None:
        """Check rule files, also for mistakes that Prometheus tolerates."""
        self._ran("check", "rules", "--lint=all", "--lint-fatal", *rules)

    def evaluates(
        self,
        series: Mapping[str, str],
        expected: Mapping[str, Mapping[str, float]],
        alerts: Mapping[str, list[str]] | None = None,
        *,
        minutes: int = 30,
        interval: int = 1,
    ) -> None:
        """Evaluate the rules on series, and compare.

        Args:
            series: series -> its values, as promtool writes them, one each interval.
            expected: expression -> labels as `{a="b"}` -> value, at the end.
            alerts: name -> the clusters for which it fires at the end.
            minutes: the time of the end.
            interval: minutes between two evaluations.
        """
        fires = {
            f'count by (cluster) (ALERTS{{alertname="{name}", alertstate="firing"}})': {
                f'{{cluster="{cluster}"}}': 1.0 for cluster in clusters
            }
            for name, clusters in (alerts or {}).items()
        }
        test = {
            "interval": f"{interval}m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": expression,
                    "eval_time": f"{minutes}m",
                    "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
                }
                for expression, samples in {**expected, **fires}.items()
            ],
        }
        content = {
            "rule_files": [str(rules) for rules in RULES],
            "evaluation_interval": f"{interval}m",
            "group_eval_order": ORDER,
            "tests": [test],
        }
        (self.folder / "test.yaml").write_text(json.dumps(content))
        self._ran("test", "rules", self.folder / "test.yaml")

    def _ran(self, *arguments: str | Path) -> None:
        command = [self.program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 -- built by us
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    try:
        return Promtool(tools.path("promtool"), tmp_path)
    except tools.ToolsError as error:
        pytest.skip(f"{error}; `make e2e` does without it, because building it takes minutes")


def test_prometheus_accepts_the_rules(promtool: Promtool) -> None:
    promtool.accepts(*RULES)


@pytest.mark.parametrize("is_self", [True, False], ids=["own certificates", "other certificates"])
def test_prometheus_accepts_the_alerts(promtool: Promtool, is_self: bool) -> None:  # noqa: FBT001 -- a table's column
    alerts = yaml.safe_load((FILES / "alerts.yaml").read_text())["alerts"]
    rules = [alert for alert in alerts if alert.pop("self", is_self) is is_self]
    file = promtool.folder / "alerts.yaml"
    file.write_text(json.dumps({"groups": [{"name": "gpugate", "rules": rules}]}))

    promtool.accepts(file)


def outcomes(cluster: str, decision: str, pod: str = "p", policy: str = "a/b") -> str:
    labels = f'cluster="{cluster}", region="eu", policy="{policy}", decision="{decision}", mode="enforce", pod="{pod}"'
    return f"gpugate_policy_outcomes_total{{{labels}}}"


def test_findings_add_up_by_policy_and_decision(promtool: Promtool) -> None:
    series = {
        outcomes("one", "deny", "p1"): "0+60x30",
        outcomes("one", "deny", "p2"): "0+120x30",
        outcomes("one", "record"): "0+30x30",
        outcomes("one", "skip"): "0+600x30",
        outcomes("two", "deny"): "0+60x30",
    }
    of_cluster = '{policy="a/b", decision="%s"}'
    promtool.evaluates(series, {
        'cluster_policy_decision:gpugate_policy_outcomes:rate5m{cluster="one"}': {
            'cluster_policy_decision:gpugate_policy_outcomes:rate5m{cluster="one", region="eu", policy="a/b", decision="deny"}': 3,
            'cluster_policy_decision:gpugate_policy_outcomes:rate5m{cluster="one", region="eu", policy="a/b", decision="record"}': 0.5,
        },
        "sum by (policy, decision) (fleet_policy_decision:gpugate_policy_outcomes:rate5m)": {
            of_cluster % "deny": 4,
            of_cluster % "record": 0.5,
        },
    })  # fmt: skip


def test_series_without_the_label_of_a_cluster_are_recorded_without_it(promtool: Promtool) -> None:
    """A Prometheus adds its external labels when it sends them."""
    promtool.evaluates(
        {
            'gpugate_build_info{version="0.1.0", pod="a"}': "1x30",
            'gpugate_build_info{version="0.1.0", pod="b"}': "1x30",
        },
        {"cluster_version:gpugate_build_info:count": {'cluster_version:gpugate_build_info:count{version="0.1.0"}': 2}},
    )


def test_only_different_decisions_of_a_shadow_count(promtool: Promtool) -> None:
    shadow = (
        'gpugate_shadow_outcomes_total{cluster="one", policy="a/b", kind="%s", operation="CREATE", from="%s", to="%s"}'
    )
    pairs = [("Pod", "warn", "deny"), ("Job", "warn", "deny"), ("Pod", "deny", "deny"), ("Pod", "allow", "mutate")]
    promtool.evaluates(
        {shadow % pair: "0+60x30" for pair in pairs},
        {
            "sum by (from, to) (cluster_from_to:gpugate_shadow_outcomes:rate5m)": {
                '{from="warn", to="deny"}': 2,
                '{from="allow", to="mutate"}': 1,
            },
            "sum by (policy) (fleet_policy:gpugate_shadow_outcomes:rate5m)": {'{policy="a/b"}': 3},
        },
    )


def test_the_quantiles_of_all_clusters_are_those_of_their_buckets(promtool: Promtool) -> None:
    """One fast cluster with 99 reviews of 100, and a slow one: the average of the two quantiles would be 0.5."""
    bucket = 'gpugate_review_duration_seconds_bucket{cluster="%s", phase="validate", le="%s"}'
    series = {
        bucket % ("fast", "0.001"): "0+5940x30",
        bucket % ("fast", "1"): "0+5940x30",
        bucket % ("fast", "+Inf"): "0+5940x30",
        bucket % ("slow", "0.001"): "0x30",
        bucket % ("slow", "1"): "0+60x30",
        bucket % ("slow", "+Inf"): "0+60x30",
    }
    of = "phase_quantile:gpugate_review_duration_seconds:histogram_quantile"
    promtool.evaluates(
        series,
        {
            f'max by (cluster) (cluster_{of}{{quantile="0.5"}}) > 0.4': {'{cluster="slow"}': 0.5005},
            f'max(fleet_{of}{{quantile="0.5"}}) < 0.001': {"{}": 0.5 / 0.99 / 1000},
        },
    )


def audit(name: str, cluster: str, instance: str, labels: str = "") -> str:
    return f'gpugate_audit_{name}{{cluster="{cluster}", region="eu", instance="{instance}"{labels}}}'


def test_only_the_newest_file_of_an_audit_counts(promtool: Promtool) -> None:
    """An audit ran on node `a` and then on node `b`; the file of `a` is still scraped."""
    series = {
        audit("time_seconds", "one", "a"): "100x30",
        audit("time_seconds", "one", "b"): "700x30",
        audit("time_seconds", "two", "a"): "500x30",
        audit("gpu_spend_usd_per_hour", "one", "a"): "90x30",
        audit("gpu_spend_usd_per_hour", "one", "b"): "7x30",
        audit("gpu_spend_usd_per_hour", "two", "a"): "5x30",
        audit("gpu_usd_per_hour", "one", "a", ', state="at_risk"'): "80x30",
        audit("gpu_usd_per_hour", "one", "b", ', state="allocated"'): "6x30",
        audit("unbounded", "one", "b"): "2x30",
        audit("unbounded", "two", "a"): "1x30",
    }
    promtool.evaluates(
        series,
        {
            "max by (cluster) (cluster:gpugate_audit_gpu_spend_usd_per_hour:max)": {
                '{cluster="one"}': 7,
                '{cluster="two"}': 5,
            },
            "sum by (state) (cluster_state:gpugate_audit_gpu_usd_per_hour:max)": {'{state="allocated"}': 6},
            "max(fleet:gpugate_audit_gpu_spend_usd_per_hour:sum)": {"{}": 12},
            "max(fleet:gpugate_audit_unbounded:sum)": {"{}": 3},
            "cluster_instance:gpugate_audit_time_seconds:newest": {
                'cluster_instance:gpugate_audit_time_seconds:newest{cluster="one", region="eu", instance="b"}': 700,
                'cluster_instance:gpugate_audit_time_seconds:newest{cluster="two", region="eu", instance="a"}': 500,
            },
        },
    )


@pytest.mark.parametrize(
    ("days", "spend", "old"),
    [(1, {"{}": 12.0}, []), (1.75, {"{}": 12.0}, ["one"]), (2.25, {"{}": 5.0}, ["one"])],
)
def test_an_old_audit_is_reported_and_then_left_out(
    promtool: Promtool, days: float, spend: dict[str, float], old: list[str]
) -> None:
    series = {
        audit("time_seconds", "one", "a"): "0x72",
        audit("time_seconds", "two", "a"): "0+3600x72",
        audit("gpu_spend_usd_per_hour", "one", "a"): "7x72",
        audit("gpu_spend_usd_per_hour", "two", "a"): "5x72",
    }
    expected = {"max(fleet:gpugate_audit_gpu_spend_usd_per_hour:sum)": spend}
    promtool.evaluates(series, expected, {"GpugateClusterAuditOld": old}, minutes=round(days * DAY), interval=60)


@pytest.mark.parametrize(
    ("minutes", "silent", "firing"),
    [(60, {}, []), (2 * 60, {'{cluster="two"}': 1.0}, []), (5 * 60, {'{cluster="two"}': 1.0}, ["two"]), (9 * DAY, {}, [])],
    ids=["reporting", "just stopped", "stopped", "removed"],
)  # fmt: skip
def test_a_cluster_that_stopped_reporting_is_named_for_seven_days(
    promtool: Promtool, minutes: int, silent: dict[str, float], firing: list[str]
) -> None:
    info = 'gpugate_build_info{cluster="%s", region="%s", version="%s"}'
    series = {
        info % ("one", "eu", "0.1.0"): "1x1 stale",
        info % ("one", "us", "0.2.0"): "_ _ 1x300",  # upgraded, and moved to another region
        info % ("two", "eu", "0.1.0"): "1x1 stale",
    }
    expected = {"max by (cluster) (cluster:gpugate_build_info:silent)": silent}
    promtool.evaluates(series, expected, {"GpugateClusterSilent": firing}, minutes=minutes, interval=60)


def test_requests_that_are_allowed_without_an_answer_are_reported_by_cluster(promtool: Promtool) -> None:
    failed = 'apiserver_admission_webhook_fail_open_count{cluster="%s", name="%s", type="validating", instance="%s"}'
    series = {
        failed % ("one", "pods.validate.gpugate.dev", "a"): "0+60x30",
        failed % ("one", "pods.validate.gpugate.dev", "b"): "0+60x30",
        failed % ("two", "vpa.k8s.io", "a"): "0+60x30",
        failed % ("three", "pods.validate.gpugate.dev", "a"): "5x30",
    }
    expected = {"max(fleet:apiserver_admission_webhook_fail_open_count:rate5m)": {"{}": 2.0}}
    promtool.evaluates(series, expected, {"GpugateClusterFailsOpen": ["one"]})


def test_versions_and_policy_files_are_counted_by_clusters(promtool: Promtool) -> None:
    info = 'gpugate_build_info{cluster="%s", version="%s", pod="%s"}'
    file = 'gpugate_config_hash{cluster="%s", pod="%s"}'
    series = {
        info % ("one", "0.1.0", "a"): "1x30",
        info % ("one", "0.1.0", "b"): "1x30",
        info % ("two", "0.2.0", "a"): "1x30",
        file % ("one", "a"): "281474976710655x30",
        file % ("one", "b"): "281474976710655x30",
        file % ("two", "a"): "281474976710654x30",
    }
    promtool.evaluates(
        series,
        {
            "max by (version) (fleet_version:gpugate_build_info:count_clusters)": {
                '{version="0.1.0"}': 1,
                '{version="0.2.0"}': 1,
            },
            "max by (hash) (fleet_hash:gpugate_config_hash:count_clusters)": {
                '{hash="281474976710655"}': 1,
                '{hash="281474976710654"}': 1,
            },
            "max(fleet:gpugate_build_info:count_clusters)": {"{}": 2},
        },
    )


@pytest.mark.parametrize(("kind", "later"), [("", 500), ("_authority", 900)])
def test_the_first_certificate_that_expires_counts(promtool: Promtool, kind: str, later: int) -> None:
    name = f"gpugate_certificate{kind}_expiry_timestamp_seconds"
    series = {f'{name}{{cluster="one", pod="a"}}': f"{later}x30", f'{name}{{cluster="one", pod="b"}}': "400x30"}
    promtool.evaluates(series, {f"max(cluster:{name}:min)": {"{}": 400}})
