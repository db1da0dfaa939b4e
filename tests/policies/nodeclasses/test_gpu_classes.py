"""Which node classes are evaluated, and what a finding in them costs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.config import starter
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.field import Json

RULESET = bind(CATALOG, starter.configuration())
TODAY = dt.date(2026, 11, 22)
AWS, AUTO_MODE = "karpenter.k8s.aws", "eks.amazonaws.com"
POLICIES = {
    "exposed-metadata": Stance.ENFORCE,
    "invalid-tag": Stance.ENFORCE,
    "missing-cost-tags": Stance.ENFORCE,
    "unencrypted-volume": Stance.WARN,  # the default of the account is not known
    "unpinned-ami": Stance.WARN,
}
WRONG: dict[str, Json] = {
    "amiSelectorTerms": [{"alias": "al2023@latest"}],
    "metadataOptions": {"httpTokens": "optional"},
    "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"encrypted": False}}],
    "tags": {"aws:created-by": "web"},
}


def request(group: str, kind: str, name: str, spec: dict[str, Json]) -> Request:
    obj: dict[str, Json] = {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name} if name else {"generateName": "gp"},
        "spec": spec,
    }
    return with_defaults(Request(GroupVersionKind(group, "v1", kind), Operation.CREATE, obj, name=name))


def pool(name: str, family: str, node_class: str, group: str = AWS) -> Request:
    reference: Json = {"group": group, "name": node_class}
    family_is: Json = {"key": f"{AWS}/instance-family", "operator": "In", "values": [family]}
    return request(
        "karpenter.sh",
        "NodePool",
        name,
        {"template": {"spec": {"nodeClassRef": reference, "requirements": [family_is]}}},
    )


GPU, CPU = pool("gpu", "g5", "gpu"), pool("general", "m5", "general")


def stances(name: str, facts: Facts) -> dict[str, Stance]:
    verdict = evaluate(RULESET, request(AWS, "EC2NodeClass", name, WRONG), facts, today=TODAY)
    found = {finding.policy: finding.stance for finding in verdict.findings}
    return {policy: found.get(f"nodeclasses/{policy}", Stance.OFF) for policy in POLICIES}


def known(*pools: Request, complete: bool = False) -> RunFacts:
    return RunFacts(pools, complete=complete)


@pytest.mark.parametrize(
    ("name", "facts", "most"),
    [
        pytest.param("gpu", known(GPU, CPU), Stance.ENFORCE, id="a GPU pool refers to it"),
        pytest.param("gpu", known(GPU, complete=True), Stance.ENFORCE, id="all pools are known"),
        pytest.param(
            "gpu", known(pool("cpu", "m5", "gpu"), GPU), Stance.ENFORCE, id="a GPU pool refers to it beside others"
        ),
        pytest.param("general", known(GPU, CPU), Stance.OFF, id="only a pool without GPUs refers to it"),
        pytest.param("other", known(GPU, CPU), Stance.WARN, id="no known pool refers to it yet"),
        pytest.param(
            "gpu", known(pool("gpu", "g5", "gpu", AUTO_MODE)), Stance.WARN, id="a class of another kind has the name"
        ),
        pytest.param("gpu", known(), Stance.WARN, id="no pool is known"),
        pytest.param("gpu", known(complete=True), Stance.WARN, id="there is no pool yet"),
        pytest.param("gpu", NoFacts(), Stance.WARN, id="pools are not available"),
        pytest.param("", known(GPU), Stance.WARN, id="the name is yet to be made"),
    ],
)
def test_a_class_costs_what_its_pools_make_it_cost(name: str, facts: Facts, most: Stance) -> None:
    assert stances(name, facts) == {policy: min(most, mode) for policy, mode in POLICIES.items()}


def test_a_class_of_auto_mode_is_found_by_its_own_group() -> None:
    node_class = request(AUTO_MODE, "NodeClass", "gpu", {"tags": {"Team": "web"}})
    for refers, most in ((AUTO_MODE, Stance.ENFORCE), (AWS, Stance.WARN)):
        verdict = evaluate(RULESET, node_class, known(pool("gpu", "g5", "gpu", refers)), today=TODAY)
        found = next((f.stance for f in verdict.findings if f.policy == "nodeclasses/missing-cost-tags"), None)
        assert found is most
