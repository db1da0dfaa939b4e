"""Reports in a cluster after one audit and another."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from audit.report_objects.audits import audit, deployment, finding, node_pool
from cluster.fake_api_server import Answer, FakeApiServer, status
from cluster.fake_api_store import StatusError
from cluster.reflected import connected

from gpugate.webhook.audit.live import ABSENCE, Throttle
from gpugate.webhook.audit.model import Action, AuditReport
from gpugate.webhook.audit.report_bodies import Limits
from gpugate.webhook.audit.report_writer import write_reports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.webhook.audit.report_writer import Written
    from gpugate.webhook.cluster.connection import Connection

Json = dict[str, Any]
REPORTS = ("openreports.io", "reports")
CLUSTER_REPORTS = ("openreports.io", "clusterreports")
POLICY_REPORTS = ("wgpolicyk8s.io", "policyreports")
CREATES = "/namespaces/ml/reports"
WEB = f"{CREATES}/gpugate-uid-web"


class Reported:
    """A cluster, and what audits write into it; nothing waits."""

    def __init__(self, api: FakeApiServer, connection: Connection) -> None:
        self.api = api
        self._connection = connection

    def write(self, report: AuditReport, *, whole: bool = True, **limits: int) -> Written:
        throttle = Throttle(1000, 1000, clock=lambda: 0.0, sleep=lambda _: None)
        return write_reports(self._connection, report, throttle, whole=whole, limits=Limits(**limits))

    def names(self, plural: tuple[str, str] = REPORTS) -> list[str]:
        return [each["metadata"]["name"].removeprefix("gpugate-uid-") for each in self.api.store.all(plural)]

    def report(self, name: str = "web") -> Json:
        return copy.deepcopy(self.api.store.get(REPORTS, "ml", f"gpugate-uid-{name}"))


def serve(api: FakeApiServer, *groups: str) -> None:
    if "openreports.io" in groups:
        api.serve("openreports.io", ("v1alpha1",), "Report", "reports")
        api.serve("openreports.io", ("v1alpha1",), "ClusterReport", "clusterreports", namespaced=False)
    if "wgpolicyk8s.io" in groups:
        api.serve("wgpolicyk8s.io", ("v1alpha2",), "PolicyReport", "policyreports")
        api.serve("wgpolicyk8s.io", ("v1alpha2",), "ClusterPolicyReport", "clusterpolicyreports", namespaced=False)


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Reported]:
    """No group of reports is there."""
    api = FakeApiServer().start()
    connection = connected(api, tmp_path)
    yield Reported(api, connection)
    connection.close()
    api.stop()


@pytest.fixture
def cluster(bare: Reported) -> Reported:
    serve(bare.api, "openreports.io")
    return bare


def counts(written: Written) -> tuple[int, int, int, int, int]:
    return written.created, written.changed, written.unchanged, written.deleted, written.failed


def test_every_object_with_findings_has_a_report(cluster: Reported) -> None:
    written = cluster.write(audit(deployment("web", finding()), deployment("good"), node_pool("gpu", finding())))

    assert counts(written) == (2, 0, 0, 0, 0)
    assert (cluster.names(), cluster.names(CLUSTER_REPORTS)) == (["web"], ["gpu"])
    assert written.remarks == ("reports of openreports.io: 2 created, 0 updated, 0 unchanged, 0 deleted",)


def test_nothing_is_written_when_nothing_changed(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding()), node_pool("gpu", finding())))
    before = cluster.api.store.revision
    written = cluster.write(audit(deployment("web", finding()), node_pool("gpu", finding()), minutes=60))

    assert (counts(written), cluster.api.store.revision) == ((0, 0, 2, 0, 0), before)


def test_what_changed_is_replaced(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding())))
    written = cluster.write(audit(deployment("web", finding(action=Action.WARN))))

    assert (counts(written), cluster.report()["summary"]) == ((0, 1, 0, 0, 0), {"fail": 0, "warn": 1, "skip": 0})


def test_what_others_wrote_into_a_report_s_metadata_stays(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding())))
    held = cluster.report()
    held["metadata"]["labels"]["team"] = "ml"
    held["metadata"]["annotations"] = {"seen": "yes"}
    cluster.api.store.put(REPORTS, held)
    unchanged = cluster.write(audit(deployment("web", finding())))
    changed = cluster.write(audit(deployment("web", finding(action=Action.WARN))))
    metadata = cluster.report()["metadata"]

    assert (counts(unchanged), counts(changed)) == ((0, 0, 1, 0, 0), (0, 1, 0, 0, 0))
    assert (metadata["labels"]["team"], metadata["annotations"]) == ("ml", {"seen": "yes"})


def test_what_others_wrote_over_a_result_is_put_right(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding())))
    held = cluster.report()
    held["results"] = []
    cluster.api.store.put(REPORTS, held)

    assert counts(cluster.write(audit(deployment("web", finding())))) == (0, 1, 0, 0, 0)


def test_a_report_on_a_fixed_object_is_deleted(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding()), deployment("other", finding())))
    written = cluster.write(audit(deployment("web"), deployment("other", finding())))

    assert (counts(written), cluster.names()) == ((0, 0, 1, 1, 0), ["other"])


@pytest.mark.parametrize(
    ("report", "whole", "left"),
    [
        pytest.param(audit(), True, [], id="gone"),
        pytest.param(audit(missing="keda.sh", reason=ABSENCE), True, [], id="gone-and-others-not-served"),
        pytest.param(audit(missing="owners of kind Elasticsearch"), True, [], id="gone-and-an-owner-not-found"),
        pytest.param(audit(), False, ["web"], id="another-selection"),
        pytest.param(audit(missing="deployments.apps"), True, ["web"], id="could-not-be-read"),
    ],
)
def test_a_report_on_an_object_that_is_not_found_goes_when_the_object_is_surely_gone(
    cluster: Reported, report: AuditReport, left: list[str], *, whole: bool
) -> None:
    cluster.write(audit(deployment("web", finding())))
    written = cluster.write(report, whole=whole)

    assert cluster.names() == left
    assert any("not evaluated are unchanged" in remark for remark in written.remarks) == bool(left)


def test_an_object_that_was_not_evaluated_is_not_fixed(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding("scaling/x"))))
    written = cluster.write(audit(deployment("web", skipped={"scaling/x": "unavailable"})))

    assert (counts(written), cluster.report()["results"][0]["policy"]) == ((0, 1, 0, 0, 0), "scaling/x")


def test_reports_of_others_are_left_alone(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding()), deployment("old", finding())))
    for name in ("web", "old"):
        theirs = cluster.report(name)
        theirs["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "kyverno"}
        cluster.api.store.put(REPORTS, theirs)
    before = cluster.api.store.revision
    written = cluster.write(audit(deployment("web", finding()), deployment("old")))

    assert (counts(written), cluster.api.store.revision) == ((0, 0, 0, 0, 1), before)
    assert "do not belong to gpugate" in written.remarks[1]


@pytest.mark.parametrize("held", ["ours-by-another-run", "nothing"])
def test_a_conflict_is_looked_at_again(cluster: Reported, held: str) -> None:
    if held != "nothing":
        cluster.write(audit(deployment("web", finding())))
    reason = "Conflict" if held != "nothing" else "AlreadyExists"
    cluster.api.answers.append(status(WEB if held != "nothing" else CREATES, 409, reason))
    written = cluster.write(audit(deployment("web", finding(action=Action.WARN))))

    assert (written.failed, cluster.report()["summary"]["warn"]) == (0, 1)


def test_two_conflicts_are_told(cluster: Reported) -> None:
    cluster.api.answers += [status(CREATES, 409, "AlreadyExists"), status(WEB, 404, "NotFound")]
    cluster.api.answers += [status(CREATES, 409, "AlreadyExists")]
    written = cluster.write(audit(deployment("web", finding())))

    assert counts(written) == (0, 0, 0, 0, 1)
    assert written.remarks[1].startswith(
        "1 report could not be written: modified concurrently: create reports.openreports.io"
    )


def test_a_report_that_is_deleted_meanwhile_is_made_again(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding())))
    # Between the list and the writing.
    listed = json.dumps({"metadata": {}, "items": [cluster.report()]}).encode()
    cluster.api.store.delete(REPORTS, "ml", "gpugate-uid-web")
    cluster.api.answers.append(Answer("v1alpha1/reports?", body=listed))
    written = cluster.write(audit(deployment("web", finding(action=Action.WARN))))

    assert (counts(written), cluster.names()) == ((1, 0, 0, 0, 0), ["web"])


def test_where_we_may_not_write_is_told_once_and_the_rest_is_written(cluster: Reported) -> None:
    error = StatusError(403, "Forbidden", 'User "audit" cannot create resource "reports" in API group "openreports.io"')
    cluster.api.answers.append(Answer(CREATES, 403, json.dumps(error.status).encode()))
    written = cluster.write(
        audit(*(deployment(name, finding()) for name in "abc"), deployment("d", finding(), namespace="web"))
    )

    assert (counts(written), cluster.names()) == ((1, 0, 0, 0, 3), ["d"])
    (told,) = written.remarks[1:]
    assert told.startswith(
        "3 reports could not be written: gpugate may not create reports.openreports.io in namespace ml"
    )
    assert len(cluster.api.asked("POST")) == 2


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            StatusError(403, "Forbidden", "is being terminated", causes=[{"reason": "NamespaceTerminating"}]),
            id="being-deleted",
        ),
        pytest.param(
            StatusError(404, "NotFound", 'namespaces "ml" not found', name="ml", kind="namespaces"), id="gone"
        ),
    ],
)
def test_an_object_of_an_ending_namespace_gets_no_report_and_that_is_no_failure(
    cluster: Reported, error: StatusError
) -> None:
    cluster.api.answers.append(Answer(CREATES, error.code, json.dumps(error.status).encode()))
    written = cluster.write(
        audit(*(deployment(name, finding()) for name in "abc"), deployment("d", finding(), namespace="web"))
    )

    assert (counts(written), cluster.names()) == ((1, 0, 0, 0, 0), ["d"])
    (told,) = written.remarks[1:]
    assert told == "no reports for 3 objects with findings: their namespace is being deleted"
    assert len(cluster.api.asked("POST")) == 2


def test_where_we_may_not_list_nothing_is_written(cluster: Reported) -> None:
    cluster.api.forbidden.add("reports")
    written = cluster.write(audit(deployment("web", finding())))

    assert (counts(written), cluster.names()) == ((0, 0, 0, 0, 1), [])
    assert "may not list them" in written.remarks[-1]


def test_a_server_that_goes_away_ends_it_and_what_was_written_stays(cluster: Reported) -> None:
    cluster.api.answers += [status("uid-b", 503, "ServiceUnavailable")] * 6
    cluster.write(audit(*(deployment(name, finding()) for name in "abc")))
    written = cluster.write(audit(*(deployment(name, finding(action=Action.WARN)) for name in "abc")))

    assert counts(written) == (0, 1, 0, 0, 1)
    assert written.remarks[-1].startswith("not all reports were written: 503")


def test_the_worst_objects_have_reports_when_there_are_too_many(cluster: Reported) -> None:
    found = [deployment("a", finding(action=Action.WARN)), deployment("b", finding()), deployment("c", finding())]
    written = cluster.write(audit(*found), reports=2)

    assert cluster.names() == ["b", "c"]
    assert "1 objects with findings have no report: the limit is 2 reports" in written.remarks


def test_a_cluster_without_definitions_is_told(bare: Reported) -> None:
    written = bare.write(audit(deployment("web", finding())))

    assert (written.group, counts(written)) == ("", (0, 0, 0, 0, 0))
    assert "the cluster serves neither openreports.io nor wgpolicyk8s.io" in written.remarks[0]


def test_the_older_group_is_written_where_there_is_no_other(bare: Reported) -> None:
    serve(bare.api, "wgpolicyk8s.io")
    written = bare.write(audit(deployment("web", finding())))

    assert (written.group, bare.names(POLICY_REPORTS)) == ("wgpolicyk8s.io", ["web"])


def test_reports_move_when_the_newer_group_is_installed(bare: Reported) -> None:
    serve(bare.api, "wgpolicyk8s.io")
    bare.write(audit(deployment("web", finding())))
    serve(bare.api, "openreports.io")
    written = bare.write(audit(deployment("web", finding())))

    assert counts(written) == (1, 0, 0, 1, 0)
    assert (bare.names(), bare.names(POLICY_REPORTS)) == (["web"], [])


def test_reports_are_listed_in_pages_by_our_label(cluster: Reported) -> None:
    cluster.write(audit(deployment("web", finding())))
    query = "limit=500&labelSelector=app.kubernetes.io%2Fmanaged-by%3Dgpugate"

    assert cluster.api.asked("GET /apis/openreports.io/v1alpha1/reports?") == [
        f"GET /apis/openreports.io/v1alpha1/reports?{query}"
    ]
