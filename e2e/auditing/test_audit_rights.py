"""What the CronJob's ServiceAccount may do, and what is said when it may not do enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.service_account import NAMESPACE

from auditing.report_definitions import installed, openreports
from auditing.stored import OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

    from auditing.cron_job import CronJob

Json = dict[str, Any]
USER = f"system:serviceaccount:{NAMESPACE}:gpugate-audit"


@pytest.fixture(scope="module", autouse=True)
def _definitions(api: Api, cron_job: CronJob) -> Iterator[None]:
    assert cron_job.objects
    yield from installed(api, openreports())


@pytest.mark.parametrize(
    ("verb", "group", "resource", "allowed"),
    [
        ("list", "", "pods", True),
        ("list", "", "nodes", True),
        ("get", "apps", "replicasets", True),
        ("list", "karpenter.sh", "nodepools", True),
        ("create", "openreports.io", "reports", True),
        ("delete", "wgpolicyk8s.io", "clusterpolicyreports", True),
        ("get", "", "secrets", False),
        ("list", "", "secrets", False),
        ("list", "", "configmaps", False),
        ("watch", "", "pods", False),
        ("create", "", "pods", False),
        ("delete", "apps", "deployments", False),
        ("patch", "karpenter.sh", "nodepools", False),
        ("deletecollection", "openreports.io", "reports", False),
        ("impersonate", "", "users", False),
    ],
)
def test_it_may(api: Api, verb: str, group: str, resource: str, *, allowed: bool) -> None:
    asked = {"user": USER, "resourceAttributes": {"verb": verb, "group": group, "resource": resource}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": asked}

    assert api.create(review).body["status"]["allowed"] == allowed


@pytest.fixture
def unable(api: Api, cron_job: CronJob, request: pytest.FixtureRequest) -> Iterator[None]:
    """It lacks a right for the time of a test: a resource of the first role, or a verb of the second."""
    role_name, verb, resource = request.param
    role = cron_job.objects["ClusterRole", role_name]
    rules = [
        {
            **rule,
            "resources": [each for each in rule["resources"] if verb != "list" or each != resource],
            "verbs": [each for each in rule["verbs"] if verb == "list" or each != verb],
        }
        for rule in role["rules"]
    ]
    answer = api.apply({**role, "rules": rules}, force=True)
    assert answer.ok, answer.message
    cron_job.wait_for_rights(allowed=False, verb=verb, resource=resource)
    yield
    api.apply(role, force=True)
    cron_job.wait_for_rights(allowed=True, verb=verb, resource=resource)


@pytest.mark.parametrize("unable", [("gpugate-audit", "list", "pods")], indirect=True)
@pytest.mark.usefixtures("unable")
class TestWithoutPods:
    def test_the_coverage_says_so(self, cron_job: CronJob) -> None:
        ran = cron_job.run()
        (told,) = [each for each in ran.document["not_evaluated"] if each["what"] == "pods"]

        assert (ran.code, ran.line["level"]) == (0, "warning")
        assert 0 < ran.document["coverage"] < 1
        assert "--print-rbac" in told["reason"]

    def test_a_gate_on_coverage_fails(self, cron_job: CronJob) -> None:
        assert cron_job.run("--require-coverage=100").code == 4

    def test_no_report_is_taken_away_for_what_was_not_looked_at(self, cron_job: CronJob) -> None:
        assert cron_job.run().line["reports_deleted"] == 0


@pytest.mark.parametrize("unable", [("gpugate-audit-reports", "create", "reports")], indirect=True)
@pytest.mark.usefixtures("unable")
def test_without_the_right_to_create_reports_the_rest_of_the_audit_is_there(cron_job: CronJob, api: Api) -> None:
    api.delete_collection("openreports.io/v1alpha1", "Report", OWN)
    ran = cron_job.run()
    lacking = f"gpugate may not create reports.openreports.io in namespace {OWN}: see `gpugate audit --print-rbac`"

    assert ran.document["summary"]["deny"] > 0
    assert (ran.code, ran.line["reports_created"], ran.line["reports_failed"] > 0) == (4, 0, True)
    assert any(remark.endswith(lacking) for remark in ran.document["remarks"])
