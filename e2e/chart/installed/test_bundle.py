"""The chart with a policy bundle from a registry with a private CA: what the bundle decides, and what a broken one leaves as it is.

Secrets, the ConfigMap and the values are those of `docs/how-to/policy-bundles.md`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from bundled_policies import MANY, MANY_GPUS, OBJECTS, with_gpus
from bundles import Publisher
from chart.installed.release import NAME
from chart.installed.requests import eventually, refusal
from chart.installed.test_documented import blocks
from cluster.namespaces import make_namespace
from violating import deployment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage
    from cluster.registry import Registry

    Json = dict[str, Any]

SECTION = ("docs/how-to/policy-bundles.md", "## Use it in the chart")
# What is looked at here does not depend on how many Pods there are, nor on Helm's own Jobs.
SMALL: dict[str, Any] = {"replicaCount": 1, "hooks": {"wait": {"enabled": False}}}


class Delivery:
    """Bundles on their way from a publisher into a release; the one in force denies Pods with more than `most` GPUs."""

    def __init__(self, release: Release, publisher: Publisher) -> None:
        self.release = release
        self.publisher = publisher
        self.most = 2
        self.first = self.push(self.most)

    def is_in_force(self, stage: Stage, tenant: str) -> bool:
        """Tell whether Pods are denied by this limit and no other."""
        denied, allowed = (refusal(stage, with_gpus(tenant, gpus)) for gpus in (self.most + 1, self.most))
        return f"requests more than {self.most} GPUs" in denied and not allowed

    def values(self, digest: str) -> Json:
        """Return the values of the page, with the reference of this bundle."""
        shown = [yaml.safe_load(block) for block in blocks(*SECTION, "yaml values")]
        bundle: Json = {key: value for each in shown for key, value in each["policy"]["bundle"].items()}
        return SMALL | {"policy": {"bundle": bundle | {"reference": f"{self.publisher.name}@{digest}"}}}

    def push(self, most: int) -> str:
        """Push a bundle that denies Pods with more GPUs, and return its digest."""
        (self.publisher.policies / "limits.yaml").write_text(MANY_GPUS.replace("2", str(most)), encoding="utf-8")
        return self.publisher.push_signed(f"at-most-{most}")

    def create_objects(self) -> None:
        """Run the commands of the page that create what the values name."""
        folder = self.publisher.folder
        for line in _commands():
            here = line.replace("--namespace gpugate", f"--namespace {self.release.namespace}")
            self.release.ran(f"cd {folder} && {here}")

    def delete_objects(self) -> None:
        """Delete what they have created."""
        for line in _commands():
            named = re.search(r"create (secret|configmap) (?:generic |docker-registry )?(\S+)", line)
            assert named, line
            self.release.ran(f"kubectl delete {named[1]} {named[2]} --namespace {self.release.namespace}")


def _commands() -> list[str]:
    found = re.findall(r"^\$ (kubectl create .*)$", "".join(blocks(*SECTION, "console parse")), re.MULTILINE)
    assert len(found) == 3, found
    return found


@pytest.fixture(scope="module")
def delivery(
    stage: Stage,
    prepare: Callable[[], AbstractContextManager[Release]],
    registry: Registry,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Delivery]:
    publisher = Publisher(tmp_path_factory.mktemp("publisher"), registry, "acme/gpu-policies")
    with prepare() as release:
        make_namespace(stage.api, release.namespace)
        made = Delivery(release, publisher)
        made.create_objects()
        release.install(made.values(made.first))
        yield made
        release.uninstall()
        made.delete_objects()


@pytest.mark.parametrize(("make", "told"), OBJECTS.values(), ids=OBJECTS)
def test_its_policies_decide(
    stage: Stage, delivery: Delivery, tenant: str, make: Callable[[str], Json], told: str
) -> None:
    assert delivery.first
    answer = stage.api.create(make(tenant), dry_run=True)

    assert (answer.ok, told in answer.message) == (not told, True), answer.message


def test_the_container_that_pulls_it_has_no_token(stage: Stage, delivery: Delivery) -> None:
    """The API server adds the token to each container of a Pod that does not decline it."""
    (pod,) = delivery.release.pods.ready()
    ref = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name, "namespace": delivery.release.namespace}}
    spec = stage.api.get(ref)["spec"]
    tokens = {each["name"] for each in spec["volumes"] if "projected" in each}
    mounted = {
        each["name"]: tokens & {mount["name"] for mount in each["volumeMounts"]}
        for each in (*spec["initContainers"], *spec["containers"])
    }

    assert mounted == {"bundle": set(), "gpugate": {"token"}}


def test_doctor_compares_the_installation_with_the_pulled_bundle(delivery: Delivery) -> None:
    publisher = delivery.publisher
    reference = f"{publisher.name}@{delivery.first}"
    publisher.ran("bundle", "pull", reference, "bundle", "--key", "cosign.pub", "--ca", "ca.crt")

    doctor = (
        f"gpugate doctor --namespace {delivery.release.namespace} --policy-file {publisher.folder}/bundle/policy.yaml"
    )
    assert "0 errors, 0 warnings" in delivery.release.ran(doctor)


def test_the_audit_evaluates_by_it(stage: Stage, delivery: Delivery, tenant: str) -> None:
    release = delivery.release
    stored = deployment(tenant, "large", with_gpus(tenant, 8)["spec"], replicas=0)
    assert stage.api.create(stored).ok
    where = f"--namespace {release.namespace}"
    try:
        release.ran(f"kubectl create job once --from=cronjob/{NAME}-audit {where}")
        release.ran(f"kubectl wait job once --for=condition=complete --timeout=120s {where}")
    finally:
        release.ran(f"kubectl delete job once --wait --ignore-not-found {where}")
        stage.api.delete(stored)

    assert f'policy="{MANY.strip("[]")}"' in release.pods.logs("once")


def test_another_digest_is_another_policy(stage: Stage, delivery: Delivery, tenant: str) -> None:
    asked = with_gpus(tenant, delivery.most + 1)
    before = refusal(stage, asked)
    delivery.release.upgrade(delivery.values(delivery.push(delivery.most + 2)))

    eventually(lambda: refusal(stage, asked), lambda said: said == "")
    delivery.most += 2
    assert MANY in before
    assert delivery.is_in_force(stage, tenant)


def test_a_bundle_without_a_signature_leaves_the_earlier_one_in_force(
    stage: Stage, delivery: Delivery, tenant: str
) -> None:
    pods = delivery.release.pods
    names = {each.name for each in pods.ready()}
    (delivery.publisher.policies / "limits.yaml").unlink()
    delivery.release.upgrade_without_waiting(delivery.values(delivery.publisher.push("unsigned")))

    # It is tried again, and nothing comes of it.
    eventually(lambda: pods.logs(NAME).count("not signed: sign it with") >= 2)
    assert {each.name for each in pods.ready()} == names
    assert delivery.is_in_force(stage, tenant)


def test_a_rollout_waits_for_a_registry_that_is_down(stage: Stage, delivery: Delivery, tenant: str) -> None:
    pods = delivery.release.pods
    names = {each.name for each in pods.ready()}
    digest = delivery.push(delivery.most + 2)
    delivery.publisher.registry.stop()
    try:
        delivery.release.upgrade_without_waiting(delivery.values(digest))
        eventually(lambda: "connection refused: check that the registry" in pods.logs(NAME))
        waiting = {each.name for each in pods.ready()}, delivery.is_in_force(stage, tenant)
    finally:
        delivery.publisher.registry.start()

    eventually(lambda: refusal(stage, with_gpus(tenant, delivery.most + 1)), lambda said: said == "")
    delivery.most += 2
    assert waiting == (names, True)
    assert delivery.is_in_force(stage, tenant)
