"""A watch reports the owner of a Pod, or an object that it names, after the Pod arrives: the review waits for it."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from pod_reviews import pod_review, scope

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.facts import Known, Unavailable
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.policy import Policy, validates
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import FrontEvent, Limits
from gpugate.webhook.admission.front.load import Load, Turns
from gpugate.webhook.admission.gate import Answer, Gate, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.findings import Violation
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.webhook.admission.decisions import Observation

JOB = {"metadata": {"name": "train"}, "spec": {"parallelism": 4}}
RAY_CLUSTER = {"metadata": {"name": "ray", "labels": {"ray.io/originated-from-crd": "RayJob"}}}
REQUEST = {"exactly": {"deviceClassName": "gpu.nvidia.com"}}
TEMPLATE = {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [{"name": "g", **REQUEST}]}}}}
NAMESPACE = {"metadata": {"name": "team", "labels": {"gpugate.dev/workload-class": "training"}}}
PROTECTED = "/metadata/annotations"
TOLERATED = "/spec/tolerations"


class LateFacts:
    """Cluster data that contains only namespaces until a test adds objects; all kinds are available."""

    def __init__(self, *namespaces: dict[str, Any], known: bool = True) -> None:
        self._known = known
        self._objects: dict[Kind, list[dict[str, Any]]] = {objects.NAMESPACE: list(namespaces)}

    def put(self, kind: Kind, obj: dict[str, Any]) -> None:
        self._objects.setdefault(kind, []).append(obj)

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:  # noqa: ARG002 -- the protocol's signature
        if not self._known:
            return Unavailable(f"{kind.plural} not read yet")
        return Known(tuple(Field(each) for each in self._objects.get(kind, ())), complete=True)


def pod(labels: dict[str, str], owner: str = "", *, template: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i"}
    spec: dict[str, Any] = {"containers": [container]}
    if template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    else:
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    owners = [{"kind": owner, "name": "o", "apiVersion": "v1", "uid": "u", "controller": True}] if owner else []
    metadata = {"name": "p", "namespace": "team", "labels": labels, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


OF_A_JOB = pod({"batch.kubernetes.io/job-name": "train"}, "Job")
OF_RAY = pod({"ray.io/cluster": "ray"}, "RayCluster")
WITH_A_CLAIM = pod({}, template="one-gpu")
PLAIN = pod({})
SEES_NAMESPACE = {"metadata": {"name": "team"}}


class Worker:
    """The application of a worker, for one review."""

    def __init__(self, facts: LateFacts, limits: Limits | None = None) -> None:
        self.facts = facts
        self.limits = limits or Limits(late_facts=30)
        self.observed: list[Observation] = []
        self.events: list[FrontEvent] = []
        rules = Rules(bind(CATALOG, PolicyConfig()), "g")
        self.gate = Gate(rules, facts, lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC), self.observed.append)

    def patched(self, obj: dict[str, Any], *late: tuple[Kind, dict[str, Any]], given: str = "10s") -> set[str]:
        """Return the patch of an object; other objects arrive as soon as the review waits."""
        return asyncio.run(self._patched(obj, late, given))

    async def _patched(self, obj: dict[str, Any], late: tuple[tuple[Kind, dict[str, Any]], ...], given: str) -> Any:
        load = Load(self.limits)
        turns = Turns(asyncio.get_running_loop(), load)
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": pod_review(obj)}

        async def send(message: Any) -> None:
            sent.append(message)

        def count(event: FrontEvent) -> None:
            self.events.append(event)
            for kind, other in late:
                self.facts.put(kind, other)

        # Only reviews are sent, so no other application is needed.
        application = AdmissionAsgi(self.gate, None, load, turns, count)  # type: ignore[arg-type] -- as said
        await application({**scope("/mutate", given), "state": {}}, receive, send)
        response = json.loads(sent[1]["body"])["response"]
        patch = json.loads(base64.b64decode(response.get("patch", b"W10=")))
        return {operation["path"] for operation in patch}


@pytest.mark.parametrize(
    ("obj", "kind", "late", "path"),
    [
        pytest.param(OF_A_JOB, objects.JOB, JOB, PROTECTED, id="its Job"),
        pytest.param(OF_RAY, objects.RAY_CLUSTER, RAY_CLUSTER, PROTECTED, id="its RayCluster"),
        pytest.param(WITH_A_CLAIM, objects.RESOURCE_CLAIM_TEMPLATE, TEMPLATE, TOLERATED, id="its claim template"),
        pytest.param(PLAIN, objects.NAMESPACE, NAMESPACE, PROTECTED, id="its namespace"),
    ],
)
def test_data_that_arrives_during_the_wait_is_used(
    obj: dict[str, Any], kind: Kind, late: dict[str, Any], path: str
) -> None:
    worker = Worker(LateFacts(*([] if kind is objects.NAMESPACE else [SEES_NAMESPACE])))
    assert path in worker.patched(obj, (kind, late))
    assert (len(worker.observed), worker.events) == (1, [FrontEvent.AWAITED_CLUSTER_DATA])


def test_the_wait_for_missing_data_is_limited() -> None:
    worker = Worker(LateFacts(SEES_NAMESPACE), Limits(late_facts=0.05))
    assert PROTECTED not in worker.patched(OF_A_JOB)
    (observation,) = worker.observed
    assert observation.verdict is not None
    skipped = [outcome.skipped for outcome in observation.verdict.outcomes if outcome.skipped]
    assert skipped[0][0].startswith("Job train was not found")


@validates(objects.POD)
def misses_a_fact(_pod: Field, _ctx: AnyContext) -> Iterator[Violation | Skip]:
    yield Skip("not known yet", coming=True)


def test_a_validating_review_is_answered_at_once() -> None:
    policy = Policy("pods/misses-a-fact", "A policy.", (misses_a_fact,))
    gate = Gate(
        Rules(bind((policy,), PolicyConfig()), "g"), LateFacts(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    )
    answer = gate.try_answer(Phase.VALIDATE, pod_review(PLAIN), None, may_wait=True, only_quick=False)
    assert isinstance(answer, Answer)


@pytest.mark.parametrize(
    ("obj", "worker", "given"),
    [
        pytest.param(PLAIN, Worker(LateFacts(SEES_NAMESPACE)), "10s", id="nothing is missing"),
        pytest.param(OF_A_JOB, Worker(LateFacts(known=False)), "10s", id="Jobs are not read at all"),
        pytest.param(OF_A_JOB, Worker(LateFacts(SEES_NAMESPACE)), "500ms", id="there is no time"),
        pytest.param(
            OF_A_JOB, Worker(LateFacts(SEES_NAMESPACE), Limits(awaiting_facts=0)), "10s", id="too many wait already"
        ),
    ],
)
def test_does_not_wait(obj: dict[str, Any], worker: Worker, given: str) -> None:
    worker.patched(obj, given=given)
    assert (len(worker.observed), worker.events) == (1, [])
