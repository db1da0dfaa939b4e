"""Report objects that the CronJob keeps, with exactly its own rights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import violating
from gpu_pods import until

from auditing.report_definitions import installed, openreports, policy_reports
from auditing.stored import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

    from auditing.cron_job import CronJob, Ran
    from auditing.stored import Stored

Json = dict[str, Any]
OPEN = ("openreports.io/v1alpha1", "Report", "ClusterReport")
OLDER = ("wgpolicyk8s.io/v1alpha2", "PolicyReport", "ClusterPolicyReport")
FOUND = {"deny", "mutate", "warn"}


@pytest.fixture(scope="module")
def older(api: Api, stored: Stored) -> Iterator[None]:
    """The definitions of the older group alone."""
    assert stored.written
    yield from installed(api, policy_reports())


@pytest.fixture(scope="module")
def of_older(cron_job: CronJob, older: None, api: Api) -> tuple[Ran, dict[str, Json]]:  # noqa: ARG001 -- a fixture
    return cron_job.run(), reports(api, OLDER)


@pytest.fixture(scope="module")
def both(api: Api, of_older: object) -> Iterator[None]:
    """The newer group is installed too, after reports were written."""
    assert of_older
    yield from installed(api, openreports())


@pytest.fixture(scope="module")
def of_newer(cron_job: CronJob, both: None, api: Api) -> tuple[Ran, dict[str, Json]]:  # noqa: ARG001 -- a fixture
    return cron_job.run(), reports(api, OPEN)


def reports(api: Api, group: tuple[str, str, str]) -> dict[str, Json]:
    """Every report of a group, by the uid of the object that it is on."""
    version, *kinds = group
    return {each["scope"]["uid"]: each for kind in kinds for each in api.list(version, kind)}


def test_a_cluster_without_definitions_is_told(cron_job: CronJob, stored: Stored) -> None:
    assert stored.written
    ran = cron_job.run()

    assert ran.code == 0, ran.errors
    assert any("neither openreports.io nor wgpolicyk8s.io" in remark for remark in ran.document["remarks"])


def test_it_ends_with_one_line_of_log_and_prints_metrics(of_newer: tuple[Ran, object]) -> None:
    ran, _ = of_newer
    counts = ran.document["summary"]

    assert ran.errors.count("\n") == 1
    assert {action: ran.line[action] for action in counts} == counts
    assert (ran.line["message"], ran.line["level"], ran.line["reports_failed"]) == ("audit", "info", 0)
    assert f'gpugate_audit_objects{{action="deny"}} {counts["deny"]}\n' in ran.metrics


@pytest.mark.parametrize(
    ("made", "group"), [("of_older", OLDER), ("of_newer", OPEN)], ids=["wgpolicyk8s", "openreports"]
)
def test_each_object_with_findings_has_one(
    request: pytest.FixtureRequest, made: str, group: tuple[str, str, str]
) -> None:
    ran, found = request.getfixturevalue(made)

    assert ran.code == 0, ran.errors
    assert set(found) == {uid for uid, action in ran.actions().items() if action in FOUND}
    assert {each["kind"] for each in found.values()} == set(group[1:])


@pytest.mark.parametrize("made", ["of_older", "of_newer"])
def test_nothing_of_it_was_pruned(request: pytest.FixtureRequest, made: str) -> None:
    """Each is stored as it was sent: a second audit would otherwise write it again."""
    _, found = request.getfixturevalue(made)
    (result, *_) = next(each for each in found.values() if each["summary"]["fail"])["results"]

    assert {
        "source",
        "policy",
        "category",
        "severity",
        "result",
        "scored",
        "message",
        "timestamp",
        "properties",
    } == set(result)


def test_reports_moved_to_the_newer_group(of_newer: tuple[Ran, dict[str, Json]], api: Api) -> None:
    ran, found = of_newer

    assert reports(api, OLDER) == {}
    assert (ran.line["reports_created"], ran.line["reports_deleted"]) == (len(found), len(found))


def test_a_report_belongs_to_its_object(of_newer: tuple[Ran, dict[str, Json]], stored: Stored) -> None:
    _, found = of_newer
    owners = {uid: each["metadata"]["ownerReferences"] for uid, each in found.items() if uid in stored.written}

    assert owners == {
        uid: [{"apiVersion": each["apiVersion"], "kind": each["kind"], "name": each["metadata"]["name"], "uid": uid}]
        for uid, each in stored.written.items()
        if uid in owners
    }
    assert len(owners) > 10


def test_a_second_run_writes_nothing(of_newer: tuple[Ran, dict[str, Json]], cron_job: CronJob, api: Api) -> None:
    _, before = of_newer
    ran = cron_job.run()
    after = reports(api, OPEN)

    assert versions(after) == versions(before)
    assert (ran.line["reports_unchanged"], ran.line["reports_failed"]) == (len(before), 0)


def versions(found: dict[str, Json]) -> dict[str, str]:
    return {uid: each["metadata"]["resourceVersion"] for uid, each in found.items()}


@pytest.mark.usefixtures("of_newer")
class TestAnObject:
    """What becomes of the report on an object."""

    @pytest.fixture
    def denied(self, api: Api, cron_job: CronJob) -> Iterator[Json]:
        """A workload with a report."""
        made = api.create(violating.deployment(OWN, "comes-and-goes", violating.pod_spec())).body
        cron_job.run()
        assert made["metadata"]["uid"] in reports(api, OPEN)
        yield made
        api.delete(made, propagationPolicy="Background", gracePeriodSeconds=0)
        api.eventually(made, lambda found: not found)

    def test_is_deleted_when_it_is_fixed(self, denied: Json, cron_job: CronJob, api: Api) -> None:
        fixed = [{"op": "remove", "path": "/spec/template/spec/containers/0/env"}]
        answer = api.patch(denied, fixed, "json")
        assert answer.ok, answer.message
        uid = denied["metadata"]["uid"]
        # Pods that were made from the old template are looked at as well.
        until(lambda: cron_job.run().actions()[uid], lambda action: action == "allow")

        assert uid not in reports(api, OPEN)

    def test_is_deleted_when_it_is_gone(self, denied: Json, api: Api) -> None:
        api.delete(denied, propagationPolicy="Background", gracePeriodSeconds=0)
        uid = denied["metadata"]["uid"]

        # The garbage collector takes what belongs to it.
        assert until(lambda: reports(api, OPEN), lambda found: uid not in found).keys() & {uid} == set()

    def test_is_deleted_when_it_lost_its_owner(self, denied: Json, cron_job: CronJob, api: Api) -> None:
        report = reports(api, OPEN)[denied["metadata"]["uid"]]
        api.patch(report, {"metadata": {"ownerReferences": None}})
        api.delete(denied, propagationPolicy="Background", gracePeriodSeconds=0)
        api.eventually(denied, lambda found: not found)
        cron_job.run()

        assert api.get(report) == {}

    def test_is_put_right_when_somebody_changed_it(self, denied: Json, cron_job: CronJob, api: Api) -> None:
        report = reports(api, OPEN)[denied["metadata"]["uid"]]
        api.patch(report, {"results": [], "metadata": {"annotations": {"note": "kept"}}})
        ran = cron_job.run()
        after = api.get(report)

        assert ran.line["reports_changed"] == 1
        assert after["metadata"]["annotations"] == {"note": "kept"}
        assert [each["policy"] for each in after["results"]] == [each["policy"] for each in report["results"]]

    def test_is_left_alone_when_it_is_somebody_else_s(self, denied: Json, cron_job: CronJob, api: Api) -> None:
        report = reports(api, OPEN)[denied["metadata"]["uid"]]
        theirs = api.patch(report, {"metadata": {"labels": {"app.kubernetes.io/managed-by": "kyverno"}}}).body
        ran = cron_job.run()

        assert api.get(report)["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
        assert (ran.code, ran.line["reports_failed"]) == (4, 1)
        assert any("do not belong to gpugate" in remark for remark in ran.document["remarks"])
        api.delete(report)


def test_a_report_says_what_the_audit_says(of_newer: tuple[Ran, dict[str, Json]]) -> None:
    ran, found = of_newer
    said = {
        each["uid"]: sorted((one["policy"], one["action"]) for one in each["findings"] if one["action"] in FOUND)
        for each in ran.document["objects"]
    }

    assert {
        uid: sorted((one["policy"], one["properties"]["wouldAction"]) for one in each["results"])
        for uid, each in found.items()
    } == {uid: each for uid, each in said.items() if each}
    assert "secret" not in json.dumps(list(found.values())).lower()
