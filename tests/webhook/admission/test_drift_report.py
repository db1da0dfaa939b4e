from __future__ import annotations

import copy
import datetime as dt
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from admission.logged import FakeLog, Scraped

from gpugate.certs.authorities import Periods, create_authorities
from gpugate.certs.protocols import ClusterFailure
from gpugate.webhook.admission.keeper import DriftReport
from gpugate.webhook.admission.options import Keeping, ServeOptions
from gpugate.webhook.admission.policy_reload import RulesFiles, load_rules
from gpugate.webhook.registration.drift_reasons import Reason
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.meant import Meant
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.cluster.live_registration import LiveRegistration

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
AUTHORITIES = create_authorities(Periods(), NOW)
KEEPING = Keeping("certificates", "gpugate")
AUDIT = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
FEWER = AUDIT + 'policies:\n  "*/*": {mode: "off"}\n  nodepools/single-instance-type: {mode: enforce}\n'


class Live:
    """The configurations of a cluster; reading them raises `failure` if it is set."""

    def __init__(self, policy_file: Path) -> None:
        made = webhook_configurations(load_rules(policy_file).ruleset, Server(AUTHORITIES.bundle))
        self.objects: list[dict[str, Any]] = copy.deepcopy(list(made))
        self.failure: ClusterFailure | None = None

    def read_objects(self) -> list[dict[str, Any]]:
        if self.failure:
            raise self.failure
        return self.objects


class ReportCase:
    def __init__(self, policy_file: Path, keeping: Keeping = KEEPING) -> None:
        self.log, self.metrics, self.live, self.policy_file = FakeLog(), Scraped(), Live(policy_file), policy_file
        options = ServeOptions("127.0.0.1", 0, policy_file=policy_file)
        rules = load_rules(policy_file)
        shared = SimpleNamespace(
            options=options,
            rules=rules,
            metrics=self.metrics,
            log=self.log,
            files=RulesFiles(policy_file),
            may_load=lambda _: True,
        )
        live = cast("LiveRegistration", self.live)
        self.seconds = 0.0
        self.report = DriftReport(cast("Shared", shared), keeping, live, lambda: NOW, lambda: self.seconds)

    def log_after(self, seconds: float) -> int:
        """Update the report after some seconds; return the number of lines in the log."""
        self.seconds += seconds
        self.report.update(AUTHORITIES)
        return len(self.log.lines)

    def update(self, after: float = 60) -> dict[str, float]:
        """Update the report after some seconds; return the number of differences by reason."""
        self.log_after(after)
        counts = {labels["reason"]: count for labels, count in self.metrics.series("gpugate_webhook_config_drift")}
        assert set(counts) == {reason.value for reason in Reason}
        return {reason: count for reason, count in counts.items() if count}


@pytest.fixture
def case(tmp_path: Path) -> ReportCase:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT)
    return ReportCase(file)


def test_no_drift_is_zero(case: ReportCase) -> None:
    assert (case.update(), case.log.lines) == ({}, [])
    assert case.metrics.value("gpugate_webhook_config_drift", reason="missing") == 0


def test_differences_are_counted_by_their_reason(case: ReportCase) -> None:
    case.live.objects.pop()
    for hook in case.live.objects[0]["webhooks"]:
        hook["clientConfig"]["caBundle"] = ""
    assert case.update() == {"missing": 1, "ca-bundle-empty": len(case.live.objects[0]["webhooks"])}


def test_configurations_are_compared_with_the_options_that_were_meant(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT)
    meant = ReportCase(file, replace(KEEPING, meant=Meant(fail=tuple(RiskGroup))))
    # Without known options, either failure policy is accepted.
    assert (bool(meant.update()), ReportCase(file).update()) == (True, {})


def test_a_lasting_difference_is_logged_once_for_each_occurrence(case: ReportCase) -> None:
    removed = case.live.objects.pop()
    written = []
    for live in ([], [], [], [removed], [], []):
        case.live.objects[1:] = live
        case.update()
        written.append(case.log.reasons())
    assert written == [[], ["missing"], ["missing"], ["missing"], ["missing"], ["missing"] * 2]


def test_a_brief_difference_is_not_logged(case: ReportCase) -> None:
    removed = case.live.objects.pop()
    counts = [case.update(), case.update(after=1)]
    case.live.objects.append(removed)
    assert (counts, case.update(), case.log.lines) == ([{"missing": 1}, {"missing": 1}], {}, [])


def test_a_difference_lasts_from_ten_seconds_on(case: ReportCase) -> None:
    case.live.objects.pop()
    assert [case.log_after(seconds) for seconds in (60, 9, 1, 100)] == [0, 0, 1, 1]


def test_a_difference_is_logged_with_its_remedy(case: ReportCase) -> None:
    case.live.objects.pop()
    assert [case.log_after(60) for _ in range(2)] == [0, 1]
    ((level, message, fields),) = case.log.lines
    assert (level, message) == ("warning", "webhook configuration is not as generated")
    assert (set(fields), all(fields.values())) == ({"reason", "where", "found", "remedy"}, True)
    assert "gpugate" in str(fields["where"])


def test_unreadable_configurations_report_no_drift(case: ReportCase) -> None:
    case.live.objects.pop()
    before = case.update()
    case.live.failure = ClusterFailure("the API server cannot be reached")
    assert case.update() == before == {"missing": 1}


def test_a_changed_policy_file_is_in_force(case: ReportCase) -> None:
    before = case.update()
    case.policy_file.write_text(FEWER)
    assert (before, bool(case.update())) == ({}, True)


def test_nothing_of_a_certificate_is_written(case: ReportCase) -> None:
    for hook in case.live.objects[0]["webhooks"]:
        hook["clientConfig"]["caBundle"] = "anVuaw=="
    case.update()
    case.update()
    assert case.log.lines
    assert "BEGIN" not in str(case.log.lines)
    assert "anVuaw==" not in str(case.log.lines)
