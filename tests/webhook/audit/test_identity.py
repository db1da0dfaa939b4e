"""Which cluster an audit is of: the flags, the policy file, and the cluster itself."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from audit_reports import audit as audit_report
from prometheus_client.parser import text_string_to_metric_families

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.audit.anonymize import anonymize, pseudonyms
from gpugate.webhook.audit.flags import parser
from gpugate.webhook.audit.formats import names as formats
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.identity import identified, new_run_id
from gpugate.webhook.audit.model import AuditReport, Cluster
from gpugate.webhook.audit.scan import scan
from gpugate.webhook.audit.selection import Options
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.cli.identity import IdentityError, identity

from .memory_source import TIME, MemorySource, named

NOBODY = ClusterIdentity()
UID = "6f2e1b0a-1111-4222-8333-444455556666"
SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": UID}}


def report(**cluster: Any) -> AuditReport:
    return msgspec.structs.replace(audit_report(), cluster=Cluster("admin@x", **cluster), run_id="r-1")


@pytest.mark.parametrize(
    ("given", "configured", "expected"),
    [
        pytest.param(NOBODY, None, (UID, "", {}), id="the-uid-by-default"),
        pytest.param(NOBODY, ClusterIdentity(name="prod-1", region="eu"), ("prod-1", "eu", {}), id="the-policy-file"),
        pytest.param(
            ClusterIdentity(name="a"), ClusterIdentity(name="b", region="eu"), ("a", "eu", {}), id="a-flag-first"
        ),
        pytest.param(
            ClusterIdentity(labels={"env": "test"}),
            ClusterIdentity(labels={"env": "prod", "cloud": "aws"}),
            (UID, "", {"cloud": "aws", "env": "test"}),
            id="each-label-for-itself",
        ),
    ],
)
def test_the_cluster_of_a_report(
    given: ClusterIdentity, configured: ClusterIdentity | None, expected: tuple[str, str, dict[str, str]]
) -> None:
    cluster = identified(report(uid=UID, id=UID), given, configured).cluster

    assert (cluster.id, cluster.region, cluster.labels) == expected
    assert cluster.uid == UID


@pytest.mark.parametrize(
    ("refused", "uid"),
    [
        pytest.param({}, UID, id="read"),
        pytest.param({"Namespace": NotReadError("these credentials may not list namespaces")}, "", id="no-rights"),
    ],
)
def test_the_uid_is_that_of_kube_system(refused: dict[str, NotReadError], uid: str) -> None:
    namespaces = [named("Namespace", "default"), SYSTEM] if uid else []
    found = scan(MemorySource(namespaces, refused), bind(CATALOG, PolicyConfig()), Options(TIME, run_id="r"))

    assert (found.report.cluster.uid, found.report.cluster.id, found.report.run_id) == (uid, uid, "r")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cluster-name", "a/b"],
        ["--cluster-name", ".."],
        ["--cluster-name", ""],
        ["--cluster-name", "prod\n"],
        ["--cluster-name", "x" * 101],
        ["--cluster-region", "eu west"],
        ["--cluster-label", "env"],
        ["--cluster-label", "env=a b"],
        ["--cluster-label", "=prod"],
    ],
)
def test_a_name_that_is_no_part_of_a_path_is_refused(arguments: list[str]) -> None:
    with pytest.raises(IdentityError, match="--cluster-"):
        identity(parser({}).parse_args(arguments))


def test_runs_of_one_second_have_different_ids_that_sort_by_time() -> None:
    ids = [new_run_id(TIME), new_run_id(TIME), new_run_id(TIME + dt.timedelta(seconds=1))]

    assert len(set(ids)) == 3
    assert max(ids) == ids[-1]


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(None, ""), (3, ""), (-60, ""), (7200, "7,200 s ahead of that"), (-90, "90 s behind that")],
)
def test_a_clock_that_is_wrong_is_named(ahead: int | None, words: str) -> None:
    before = report(clock_ahead_seconds=ahead)
    remarks = identified(before, NOBODY, None).remarks[len(before.remarks) :]

    assert [words in remark for remark in remarks] == ([True] if words else [])


NAMED = report(uid=UID, id="prod-1", region="eu-west-1", labels={"env": "prod"})


@pytest.mark.parametrize("name", ["text", "wide", "markdown", "html", "json", "prometheus"])
def test_a_report_names_its_cluster_and_run(name: str) -> None:
    text = formats.render(name, NAMED, Presentation())

    for part in ("prod-1", "eu-west-1", "prod", "r-1"):
        assert part in text


@pytest.mark.parametrize("name", ["text", "wide", "markdown"])
def test_without_a_configuration_the_header_stays_as_it_was(name: str) -> None:
    unnamed = report(uid=UID, id=UID)

    assert formats.render(name, unnamed, Presentation()) == formats.render(name, report(), Presentation())


def test_metrics_have_the_cluster_only_if_it_is_configured() -> None:
    def labels(of: AuditReport) -> list[dict[str, str]]:
        families = text_string_to_metric_families(formats.render("prometheus", of, Presentation()))
        return [sample.labels for family in families for sample in family.samples]

    named_labels, unnamed = labels(NAMED), labels(report(uid=UID, id=UID))
    assert all((each["cluster"], each["region"]) == ("prod-1", "eu-west-1") for each in named_labels)
    assert not any("cluster" in each for each in unnamed)
    assert named_labels[0].items() >= {"cluster_uid": UID, "label_env": "prod", "run_id": "r-1"}.items()


def test_an_anonymized_report_does_not_name_the_cluster() -> None:
    for of in (NAMED, report(uid=UID, id=UID)):
        document = formats.render("json", anonymize(of, pseudonyms(of, "salt")), Presentation())
        cluster = json.loads(document)["cluster"]
        assert not {"prod-1", UID, "env"} & {cluster["id"], cluster["uid"], *cluster["labels"]}
