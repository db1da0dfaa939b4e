"""Requests to scale static NodePools."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from library_examples import ruleset_of

from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.review import decode
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts

ID = "nodepools/oversized-static-scale"
REVIEWS = Path(__file__).parents[2] / "fixtures/reviews"
CAPTURED = REVIEWS / "nodepool-scale-update.validate.json"
TODAY = dt.date(2026, 11, 23)
NODE_POOL = GroupVersionKind("karpenter.sh", "v1", "NodePool")
Json = dict[str, Any]


def static_pool(family: str = "g5", name: str = "gpu-static", **spec: Any) -> Json:
    requirements = [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": [family]}]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {"spec": {"nodeClassRef": reference, "requirements": requirements}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"replicas": 4, "template": template, **spec},
    }


def cluster(*pools: Json) -> Facts:
    return RunFacts(
        with_defaults(Request(NODE_POOL, Operation.CREATE, pool, name=pool["metadata"]["name"])) for pool in pools
    )


def configured(**sections: Any) -> Any:
    params = {"policies": {ID: {"params": {"max_per_pool": 64}}}}
    return ruleset_of(parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **params, **sections}))


def scaled(facts: Facts, replicas: int | None, before: int = 4, ruleset: Any = None, **request: Any) -> Verdict:
    """Evaluate the captured review of `kubectl scale` with other numbers of replicas."""
    review = json.loads(CAPTURED.read_text())
    review["request"] |= request
    review["request"]["object"]["spec"] = {} if replicas is None else {"replicas": replicas}
    review["request"]["oldObject"]["spec"] = {"replicas": before}
    return evaluate(ruleset or configured(), decode(json.dumps(review).encode()).request, facts, today=TODAY)


def costs(verdict: Verdict) -> list[tuple[Stance, str]]:
    assert not [outcome.error for outcome in verdict.outcomes if outcome.error]
    return [(finding.stance, finding.message.partition(":")[0]) for finding in verdict.findings if finding.policy == ID]


TOO_MANY = "9 nodes of up to 8 accelerators are too many (maximum for one pool"
CAPPED = "9 replicas exceed the limit of nodes"


@pytest.mark.parametrize(
    ("pool", "replicas", "before", "expected"),
    [
        pytest.param(static_pool(), 8, 4, [], id="to the maximum"),
        pytest.param(static_pool(), 9, 4, [(Stance.ENFORCE, TOO_MANY)], id="above the maximum"),
        pytest.param(static_pool(), 9, 20, [(Stance.WARN, TOO_MANY)], id="down to more than the maximum"),
        pytest.param(static_pool(), 9, 9, [(Stance.WARN, TOO_MANY)], id="not changed"),
        pytest.param(static_pool(), 0, 4, [], id="to none"),
        pytest.param(static_pool(), None, 4, [], id="to none, which the API server leaves out"),
        pytest.param(static_pool("c7i"), 900, 4, [], id="a pool without GPUs"),
        pytest.param(static_pool("p5"), 8, 4, [], id="types of one size"),
        pytest.param(static_pool(limits={"nodes": "8"}), 9, 4, [(Stance.WARN, CAPPED)], id="above a limit of nodes"),
        pytest.param(
            static_pool(limits={"nodes": "9"}), 9, 4, [(Stance.ENFORCE, TOO_MANY)], id="a limit above the maximum"
        ),
        pytest.param(static_pool("c7i", limits={"nodes": "8"}), 9, 4, [], id="above a limit, without GPUs"),
    ],
)
def test_a_request_to_scale_a_pool(
    pool: Json, replicas: int | None, before: int, expected: list[tuple[Stance, str]]
) -> None:
    verdict = scaled(cluster(static_pool("p5", name="other"), pool), replicas, before)
    assert costs(verdict) == expected
    assert verdict.allowed is all(stance is not Stance.ENFORCE for stance, _ in expected)


def test_the_finding_is_at_the_field_of_the_scale() -> None:
    (finding,) = (found for found in scaled(cluster(static_pool()), 9).findings if found.policy == ID)
    assert (finding.path, finding.hint) == (("spec", "replicas"), "lower the replicas to 8 or less")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (NoFacts(), "no nodepools to look up"),
        (cluster(static_pool(name="other")), "NodePool gpu-static was not found, but may exist"),
        (cluster({**static_pool(), "spec": {"template": {}}}), None),
    ],
    ids=["no cluster data", "unknown pool", "a pool that requires nothing"],
)
def test_what_is_unknown_is_allowed(facts: Facts, reason: str | None) -> None:
    verdict = scaled(facts, 900)
    assert verdict.allowed
    skipped = [why for outcome in verdict.outcomes if outcome.policy == ID for why in outcome.skipped]
    assert skipped == ([reason] if reason else [])


def test_without_a_maximum_only_the_limit_of_nodes_counts() -> None:
    ruleset = configured(policies={})
    assert costs(scaled(cluster(static_pool()), 900, ruleset=ruleset)) == []
    limited = scaled(cluster(static_pool(limits={"nodes": "8"})), 9, ruleset=ruleset)
    assert costs(limited) == [(Stance.WARN, CAPPED)]


def test_an_exemption_for_node_pools_is_one_for_their_scale() -> None:
    exemption = {
        "policies": [ID],
        "kinds": ["NodePool"],
        "names": ["gpu-static"],
        "reason": "load test",
        "owner": "platform",
        "expires": "2026-12-31",
    }
    verdict = scaled(cluster(static_pool()), 9, ruleset=configured(exemptions=[exemption]))
    assert costs(verdict) == [(Stance.AUDIT, TOO_MANY)]


@pytest.mark.parametrize(
    "resource",
    [
        {"group": "apps", "version": "v1", "resource": "deployments"},
        {"group": "karpenter.sh", "version": "v1beta1", "resource": "nodepools"},
        {"group": "example.com", "version": "v1", "resource": "nodepools"},
    ],
    ids=["a Deployment", "another version", "another group"],
)
def test_the_scale_of_another_resource_is_not_evaluated(resource: Json) -> None:
    verdict = scaled(cluster(static_pool()), 900, resource=resource, requestResource=resource)
    assert verdict.outcomes == ()


def updated(old: Json, new: Json) -> Verdict:
    request = Request(NODE_POOL, Operation.UPDATE, new, old_object=old, name="gpu-static")
    return evaluate(configured(), with_defaults(request), NoFacts(), today=TODAY)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(static_pool(), static_pool(replicas=9), [(Stance.ENFORCE, TOO_MANY)], id="more nodes"),
        pytest.param(static_pool(replicas=20), static_pool(replicas=9), [(Stance.WARN, TOO_MANY)], id="fewer nodes"),
        pytest.param(
            static_pool("c7i", replicas=9), static_pool(replicas=9), [(Stance.ENFORCE, TOO_MANY)], id="types with GPUs"
        ),
        pytest.param(
            {**static_pool(replicas=9), "metadata": {"name": "gpu-static", "labels": {"a": "b"}}},
            static_pool(replicas=9),
            [(Stance.WARN, TOO_MANY)],
            id="a label",
        ),
    ],
)
def test_an_update_of_the_pool_itself(old: Json, new: Json, expected: list[tuple[Stance, str]]) -> None:
    assert costs(updated(old, new)) == expected
