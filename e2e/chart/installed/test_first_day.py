"""The first day after `helm install` with default values: nobody notices, and everything is recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from chart.installed.release import NAME
from chart.installed.requests import (
    HIDDEN_ACCESS,
    KARPENTER,
    SINGLE_TYPE,
    acting_as,
    eventually,
    gpu_pod,
    node_pool,
    pass_by,
    plain_pod,
    seeing_pod,
)

from gpugate.policies.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from chart.installed.release import Release
    from chart.installed.stage import Stage
    from cluster.answer import Answer


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def release(
    prepare: Callable[[], AbstractContextManager[Release]], notes: list[str], figures: list[str]
) -> Iterator[Release]:
    with prepare() as made:
        notes.append(made.install())
        figures.append(f"chart: helm install, with two Pods ready and reached by the API server: {made.seconds:.1f} s")
        figures.append(
            f"chart: a Pod ready {min(each.ready_seconds for each in made.pods.ready()):.1f} s after its start"
        )
        yield made
        made.uninstall()
        figures.append(f"chart: helm uninstall: {made.seconds:.1f} s")


def reviews(release: Release) -> float:
    return release.metric("gpugate_reviews_total")


def recorded(release: Release, policy: str) -> float:
    return release.metric("gpugate_policy_outcomes_total", policy=policy, decision="record", mode="audit")


def created(stage: Stage, obj: dict[str, Any]) -> Answer:
    answer = stage.api.create(obj)
    stage.api.delete(obj, gracePeriodSeconds=0)
    return answer


@pytest.mark.parametrize(
    ("policy", "make"), [(SINGLE_TYPE, lambda _: node_pool()), (HIDDEN_ACCESS, seeing_pod)], ids=["NodePool", "Pod"]
)
def test_what_would_be_denied_is_created_and_recorded(
    stage: Stage, release: Release, tenant: str, policy: str, make: Callable[[str], dict[str, Any]]
) -> None:
    before = recorded(release, policy)

    answer = created(stage, make(tenant))

    assert (answer.ok, answer.warnings) == (True, []), answer.message
    assert recorded(release, policy) == before + 1


def test_what_would_be_changed_stays_as_it_is(stage: Stage, release: Release, tenant: str) -> None:
    before = recorded(release, "pods/missing-gpu-toleration")

    answer = created(stage, gpu_pod(tenant))

    given = [each["key"] for each in answer.body["spec"]["tolerations"]]
    assert given == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    assert recorded(release, "pods/missing-gpu-toleration") == before + 1


def test_a_plain_pod_is_never_asked_about(stage: Stage, release: Release, tenant: str) -> None:
    before = reviews(release)

    answer = created(stage, plain_pod(tenant))

    assert (answer.ok, reviews(release)) == (True, before)


def test_nobody_is_asked_about_what_karpenter_writes(stage: Stage, release: Release) -> None:
    pool = node_pool()
    hash_of_karpenter = {"metadata": {"annotations": {"karpenter.sh/nodepool-hash": "1"}}}
    assert stage.api.create(pool).ok
    before = reviews(release)
    with acting_as(stage, KARPENTER) as karpenter:
        answer = karpenter.patch(pool, hash_of_karpenter)
    of_karpenter = reviews(release)
    somebody = stage.api.patch(pool, {"metadata": {"annotations": {"a": "b"}}})
    of_somebody = reviews(release)
    stage.api.delete(pool)

    assert (answer.ok, somebody.ok) == (True, True)
    assert of_karpenter == before
    assert of_somebody > before


def test_it_may_do_what_it_needs_and_no_more(stage: Stage, release: Release) -> None:
    def may(verb: str, group: str, resource: str, name: str = "", namespace: str = "") -> bool:
        asked = {"verb": verb, "group": group, "resource": resource, "name": name, "namespace": namespace}
        user = f"system:serviceaccount:{release.namespace}:{NAME}"
        spec = {"user": user, "resourceAttributes": asked}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        return bool(stage.api.create(review).body["status"]["allowed"])

    own, admission = release.namespace, "admissionregistration.k8s.io"
    table = {
        ("watch", "karpenter.sh", "nodepools"): True,
        ("patch", "karpenter.sh", "nodepools"): False,
        ("get", "", "secrets", f"{NAME}-certificates", own): True,
        ("get", "", "secrets", "another", own): False,
        ("list", "", "secrets", "", own): False,
        ("get", "", "secrets", f"{NAME}-certificates", "tenant"): False,
        ("list", "", "pods"): False,
        ("patch", admission, "validatingwebhookconfigurations", NAME): True,
        ("patch", admission, "validatingwebhookconfigurations", "another"): False,
        ("delete", admission, "validatingwebhookconfigurations", NAME): False,
        ("create", admission, "validatingwebhookconfigurations"): False,
    }
    assert {asked: may(*asked) for asked in table} == table


def test_it_knows_all_there_is(release: Release) -> None:
    needed = {need.kind.name for policy in CATALOG for handler in policy.handlers for need in handler.needs}
    pods = len(release.pods.ready())

    def available() -> dict[str, float]:
        return {kind: release.metric("gpugate_cluster_data_available", kind=kind) for kind in needed}

    eventually(available, lambda found: found == dict.fromkeys(needed, pods))
    assert "forbidden" not in release.pods.logs(NAME)


def test_the_configurations_are_as_they_should_be(release: Release) -> None:
    ran = release.run(f"gpugate doctor --namespace {release.namespace} --webhook-configuration {NAME} --probe")

    assert (ran.returncode, "0 errors, 0 warnings" in ran.stdout) == (0, True), ran.stdout
    assert release.metric("gpugate_webhook_config_drift") == 0


def test_the_notes_say_how_it_stands_and_how_to_end_it(
    stage: Stage, release: Release, tenant: str, notes: list[str]
) -> None:
    (said,) = notes
    next_steps = re.search(r"^Next steps:\n((?:  .*\n)+)", said, re.MULTILINE)
    emergency = re.search(r"^EMERGENCY.*\n  (.*)\n", said, re.MULTILINE)
    assert "Mode: audit" in said
    assert "While the webhook is unavailable: all requests are allowed" in said
    assert next_steps
    assert emergency

    for line in next_steps[1].splitlines():
        release.ran(line)
    release.ran(emergency[1])

    assert release.configurations() == []
    pass_by(stage, tenant)
