"""The rows of an audit add up to its figures, and are what the schema says."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import fastjsonschema
import msgspec
import pytest
from audit_reports import TIME, audit, hostile, with_audited
from msgspec.structs import replace

from gpugate.policies.engine import enforcement
from gpugate.policies.engine.config import Exemption
from gpugate.webhook.audit.live import ABSENCE
from gpugate.webhook.audit.model import (
    AllocatedGpus,
    Audited,
    AuditReport,
    Cluster,
    DeviceUse,
    NotEvaluated,
    OwnerUse,
    Spend,
    Usage,
    Use,
    Used,
)
from gpugate.webhook.audit.rows import RunSettings, rows_of
from gpugate.webhook.audit.table_files import ndjson
from gpugate.webhook.audit.tables import TABLES, schema
from gpugate.webhook.report.located import ObjectName

if TYPE_CHECKING:
    from collections.abc import Sequence

CLUSTER = Cluster("admin@x", "v1.36", uid="77", id="prod-1", region="eu", labels={"env": "prod"}, clock_ahead_seconds=2)
TODAY = TIME.date()


def identified(report: AuditReport) -> AuditReport:
    return replace(report, cluster=CLUSTER, run_id="r-1")


def without_cost() -> AuditReport:
    report = audit()
    return replace(report, cost=None, audited=tuple(replace(owner, allocated=()) for owner in report.audited))


def measured() -> AuditReport:
    """Return an audit with an idle GPU of a team."""
    report = audit()
    assert report.cost
    used = (Used(Use.BUSY, 1.0, 6.0), Used(Use.IDLE, 1.0, None), Used(Use.UNDER_USED, 1.0, 2.0))
    device = DeviceUse("ml/a-1", "n-1", "GPU-1", "H100", Use.IDLE, "activity 0", 1.0, 4.0, engine_max=float("nan"))
    name = ObjectName("apps/v1", "Deployment", "ml", "a")
    owner = Audited.of(
        name,
        team="llm",
        allocated=(AllocatedGpus("nvidia.com/gpu", "l4", 2.0, 1.6), AllocatedGpus("nvidia.com/gpu", "h100", 1.0, 6.8)),
        gpu_use=OwnerUse(used, (device,), "query"),
    )
    spending = (
        Spend("team", "llm", 3.0, 8.4, used, 1.5),
        Spend("pool", "", 3.0, 8.4),
        Spend("namespace", "ml", 3.0, 8.4),
    )
    cost = replace(report.cost, used=used, spending=spending)
    return replace(report, audited=(*report.audited, owner), cost=cost, usage=Usage("http://p", 86400, 10, 0.9))


REPORTS = {
    "plain": audit,
    "hostile": hostile,
    "measured": measured,
    "without-cost": without_cost,
    "empty": lambda: replace(with_audited(audit(), ()), cost=None, pending=(), counts={}),
}


@pytest.mark.parametrize("name", REPORTS)
class TestEveryReport:
    def test_lines_are_valid_for_the_published_schema(self, name: str) -> None:
        definitions: Any = schema()["$defs"]
        for table, rows in rows_of(identified(REPORTS[name]()), RunSettings()).items():
            validate = fastjsonschema.compile(
                {"$schema": "http://json-schema.org/draft-07/schema#", **definitions[table]}
            )
            for line in ndjson(TABLES[table], rows).splitlines():
                validate(msgspec.json.decode(line))

    def test_rows_have_the_columns_in_order(self, name: str) -> None:
        for table, rows in rows_of(identified(REPORTS[name]()), RunSettings()).items():
            assert all(tuple(row) == TABLES[table].column_names for row in rows)
            assert all((row["cluster"], row["run_id"], row["time"]) == ("prod-1", "r-1", TIME) for row in rows)

    def test_a_run_has_the_sums_of_the_other_tables(self, name: str) -> None:
        rows = rows_of(identified(REPORTS[name]()), RunSettings())
        (run,) = rows["runs"]

        assert run["findings"] == len(rows["findings"]) == sum(int(str(row["findings"])) for row in rows["objects"])
        for action in ("deny", "mutate", "warn", "record"):
            assert run[action] == sum(row["action"] == action for row in rows["objects"])
            of_namespaces = [row[action] for row in group(rows["money"], "namespace")]
            in_pools = [row[action] for row in group(rows["money"], "pool")]
            # An object without a namespace counts there too.
            assert run[action] == sum(map(int, map(str, of_namespaces)))
            assert sum(map(int, map(str, in_pools))) == sum(
                row["action"] == action and row["kind"] == "NodePool" for row in rows["objects"]
            )


def group(rows: Sequence[Any], dimension: str) -> list[Any]:
    return [row for row in rows if row["dimension"] == dimension]


def test_a_policy_has_the_objects_that_it_would_deny() -> None:
    report = identified(audit())
    money = {row["name"]: row for row in group(rows_of(report, RunSettings())["money"], "policy")}

    for name, row in money.items():
        denied = {
            owner.object
            for owner in report.audited
            if any(finding.policy == name and finding.action == "deny" for finding in owner.findings)
        }
        assert row["deny"] == len(denied)
    assert money


def test_what_is_not_known_is_null_and_what_nobody_has_is_0() -> None:
    unmeasured, with_use = (rows_of(identified(report), RunSettings()) for report in (audit(), measured()))
    uncosted = rows_of(identified(without_cost()), RunSettings())

    assert [unmeasured["runs"][0][key] for key in ("idle_usd", "use_coverage")] == [None, None]
    # The price of one idle GPU is unknown, and no GPU is parked.
    assert [with_use["runs"][0][key] for key in ("idle_usd", "parked_usd", "under_used_usd")] == [None, 0.0, 2.0]
    assert [uncosted["runs"][0][key] for key in ("spend_usd", "gpus", "unbounded")] == [None, None, None]
    assert all(row["usd"] is None and row["gpus"] is None for row in uncosted["objects"])


def test_an_object_has_its_team_and_its_dearest_gpus() -> None:
    rows = rows_of(identified(measured()), RunSettings())
    last, (device,) = rows["objects"][-1], rows["gpus"]

    assert [last[key] for key in ("team", "gpus", "gpu_model", "usd")] == ["llm", 3.0, "h100", 8.4]
    assert [device[key] for key in ("team", "verdict", "usd", "engine_max")] == ["llm", "idle", 4.0, None]
    (team,) = (row for row in group(rows["money"], "team") if row["name"] == "llm")
    assert [team[key] for key in ("gpus", "at_risk_usd", "busy_usd", "unbounded")] == [3.0, 1.5, 6.0, 0]


def test_unbounded_pools_and_autoscalers_are_in_their_groups() -> None:
    report = identified(audit())
    assert report.cost
    rows = rows_of(report, RunSettings())
    pools, namespaces, teams = (
        {row["name"]: row for row in group(rows["money"], by)} for by in ("pool", "namespace", "team")
    )

    assert rows["runs"][0]["unbounded"] == len(report.cost.unbounded) == 2
    assert [teams[""][key] for key in ("unbounded", "unbounded_usd")] == [1, None]
    assert [teams["chat"][key] for key in ("unbounded", "unbounded_usd", "gpus")] == [1, 688.0, 0.0]
    assert [pools["gpu-h100"][key] for key in ("unbounded", "unbounded_usd")] == [1, None]
    assert [namespaces["team-llm"][key] for key in ("unbounded", "unbounded_usd")] == [1, 688.0]


def test_a_policy_has_the_gpus_of_the_objects_with_its_findings() -> None:
    report = measured()
    *_, owner = report.audited
    (scaler,) = (entry for entry in report.cost.unbounded if entry.team) if report.cost else ()
    one, other = next(each.findings for each in report.audited if len(each.findings) > 1)[:2]
    audited = (
        replace(owner, findings=(replace(one, policy="p/a"), replace(other, policy="p/b"))),
        Audited.of(scaler.object, (replace(one, policy="p/a"),)),
    )
    money = rows_of(identified(replace(report, audited=audited)), RunSettings())["money"]
    policies = {row["name"]: row for row in group(money, "policy")}

    figures = ("gpus", "usd", "busy_usd", "idle_usd", "under_used_usd", "parked_usd", "unbounded", "unbounded_usd")
    # The price of the idle GPU is unknown.
    of_owner = [3.0, 8.4, 6.0, None, 2.0, 0.0]
    assert [policies["p/a"][key] for key in figures] == [*of_owner, 1, 688.0]
    assert [policies["p/b"][key] for key in figures] == [*of_owner, 0, None]


def test_without_costs_a_policy_has_counts_only() -> None:
    (*_, policy) = group(rows_of(identified(without_cost()), RunSettings())["money"], "policy")

    assert [policy[key] for key in ("gpus", "usd", "at_risk_usd", "idle_usd", "unbounded")] == [None] * 5


def test_kinds_that_are_not_served_are_no_gap() -> None:
    gaps = (NotEvaluated("a.example.com", ABSENCE), NotEvaluated("pods", "forbidden"))
    (run,) = rows_of(identified(replace(audit(), not_evaluated=gaps)), RunSettings())["runs"]

    assert (run["gaps"], run["gap_reasons"]) == (1, "pods: forbidden")


def test_exemptions_have_their_state() -> None:
    def exemption(name: str, days: int) -> Exemption:
        return Exemption(
            policies=("pods/*",), names=(name,), reason="r", owner="o", expires=TODAY + dt.timedelta(days=days)
        )

    given = exemption("old", -1), exemption("today", 0), exemption("unused", 9)
    report = replace(audit(), unused=tuple(enforcement.unused(given, TODAY, {1})))
    rows = rows_of(identified(report), RunSettings(exemptions=given))["exemptions"]

    assert [(row["names"], row["state"]) for row in rows] == [
        ("old", "expired"),
        ("today", "valid"),
        ("unused", "unused"),
    ]
    assert rows[0]["expires"] == TODAY - dt.timedelta(days=1)


def test_a_run_says_what_it_was_asked_for() -> None:
    settings = RunSettings("as-is", "-n ml", idle_budget=5.0)
    (run,) = rows_of(identified(audit()), settings)["runs"]

    assert [run[key] for key in ("policy_mode", "selection", "idle_budget_usd")] == ["as-is", "-n ml", 5.0]
    assert [run[key] for key in ("region", "labels", "cluster_uid", "clock_ahead_seconds")] == [
        "eu", {"env": "prod"}, "77", 2.0,
    ]  # fmt: skip
