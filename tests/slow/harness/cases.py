"""The requests of a load and their expected responses."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonpatch
import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

REVIEWS = Path(__file__).parents[2] / "fixtures" / "reviews"
# The uid of the request comes first in the API server's JSON; only this one is replaced.
_UID = "00000000-0000-4000-8000-000000000000"


class WrongAnswerError(Exception):
    """A response that does not match its request."""


@dataclass(slots=True)
class Case:
    """A review without its uid, and the decision expected.

    `denied` is the policy that denies it, or "" if it is allowed; a mapping from generation to policy if it depends on
    the ruleset. `patched` is the JSON pointer that the patch must add, or "" if there is no patch.
    """

    path: str
    before: bytes
    after: bytes
    object: Any
    denied: str | Mapping[str, str] = ""
    patched: str = ""
    _applied: set[str] = field(default_factory=set)

    def body(self, uid: str) -> bytes:
        return b"".join((self.before, uid.encode(), self.after))

    def check(self, uid: str, answer: bytes) -> str:
        """Return the generation in the response, "" if it has none.

        Raises:
            WrongAnswerError: the response does not match the request.
        """
        review = orjson.loads(answer)
        response = review["response"]
        if response["uid"] != uid:
            raise WrongAnswerError(f"uid {response['uid']} instead of {uid}")
        told = response.get("auditAnnotations", {})
        generation: str = told.get("generation", "")
        denied = self.denied if isinstance(self.denied, str) else self.denied.get(generation)
        if denied is None:
            raise WrongAnswerError(f"generation {generation!r} was never in force")
        if response["allowed"] is bool(denied) or denied not in told.get("deny", ""):
            raise WrongAnswerError(f"allowed is {response['allowed']}, denied is {told.get('deny')} by {generation}")
        self._check_patch(response)
        return generation

    def _check_patch(self, response: dict[str, Any]) -> None:
        if ("patch" in response) is not bool(self.patched):
            raise WrongAnswerError("a patch is missing" if self.patched else "a patch that nobody asked for")
        if self.patched and response["patch"] not in self._applied:
            patched = jsonpatch.apply_patch(self.object, base64.b64decode(response["patch"]).decode())
            if self.patched not in json.dumps(patched):
                raise WrongAnswerError(f"the patch does not add {self.patched}")
            self._applied.add(response["patch"])


def case(review: str, path: str, *, denied: str | Mapping[str, str] = "", patched: str = "") -> Case:
    """Return a case for a captured review."""
    return _of(json.loads((REVIEWS / f"{review}.json").read_text()), path, denied, patched)


def heavy() -> Case:
    """Return a case that takes about 20 ms to evaluate: a NodePool with hundreds of requirements."""
    captured = json.loads((REVIEWS / "nodepool-create.validate.json").read_text())
    captured["request"]["object"]["spec"]["template"]["spec"]["requirements"] += [
        {"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": [str(number % 10)]}
        for number in range(500)
    ]
    return _of(captured, "/validate", "", "")


def _of(captured: Any, path: str, denied: str | Mapping[str, str], patched: str) -> Case:
    request = captured["request"]
    captured["request"] = {**request, "uid": _UID}
    before, after = json.dumps(captured, separators=(",", ":")).split(_UID)
    return Case(path, before.encode(), after.encode(), request["object"], denied, patched)


def usual() -> tuple[Case, ...]:
    """Return the requests of a cluster: Pods that are patched, unchanged and validated, and a denied object."""
    return (
        case("pod-create-gpu-untolerated.mutate", "/mutate", patched='"key": "nvidia.com/gpu"'),
        case("pod-create-by-job.validate", "/validate"),
        case("pod-create-gpu-tolerated.mutate", "/mutate"),
        case("nodepool-create-unlimited.validate", "/validate", denied="nodepools/missing-gpu-limit"),
        case("nodepool-create.validate", "/validate"),
    )


@dataclass(slots=True)
class AnyDecision(Case):
    """A review with any verdict; its object only takes time."""

    def check(self, uid: str, answer: bytes) -> str:
        """Compare the uid only.

        Raises:
            WrongAnswerError: the response does not match the request.
        """
        response = orjson.loads(answer)["response"]
        if response["uid"] != uid:
            raise WrongAnswerError(f"uid {response['uid']} instead of {uid}")
        return ""


def hostile() -> tuple[Case, ...]:
    """Return objects of up to 3 MiB, the limit of an API server, each with an unusually large part."""
    gpu = {"limits": {"nvidia.com/gpu": "1"}}
    claimed = [{"name": f"c{n}", "resources": {**gpu, "claims": [{"name": f"r{n}"}]}} for n in range(2_500)]
    claims = [{"name": f"r{n}", "resourceClaimTemplateName": "t"} for n in range(2_500)]
    slices = {f"nvidia.com/mig-1g{n}gb": "1" for n in range(480)}
    types = [f"g5.{n}xlarge" for n in range(1_950)]
    kind = "node.kubernetes.io/instance-type"
    excluded = [{"key": kind, "operator": "NotIn", "values": [f"x{n}"]} for n in range(12_000)]
    query = "avg(rate(http_requests_total{a='b'}[5m]))/" * 60_000
    workers = {
        f"w{n}": {"template": {"spec": {"containers": [{"name": "a", "resources": gpu}]}}} for n in range(20_000)
    }
    return (
        *_large("v1", "Pod", {"containers": claimed, "resourceClaims": claims}),
        *_large("v1", "Pod", {"containers": [{"name": "a", "resources": gpu, "env": [{"name": "a"}] * 200_000}]}),
        *_large("v1", "Pod", {"containers": [{"name": "a", "resources": {"limits": slices}}]}),
        *_large("karpenter.sh/v1", "NodePool", {"template": {"spec": {"requirements": excluded}}}),
        *_large(
            "karpenter.sh/v1",
            "NodePool",
            {
                "template": {
                    "spec": {"requirements": [{"key": kind, "operator": "In", "values": ["g5.xlarge", *types]}]}
                }
            },
        ),
        *_large(
            "keda.sh/v1alpha1", "ScaledObject", {"triggers": [{"type": "prometheus", "metadata": {"query": query}}]}
        ),
        *_large("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": workers}),
    )


def _large(api_version: str, kind: str, spec: dict[str, Any]) -> tuple[Case, Case]:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    group, _, version = api_version.rpartition("/")
    request = {
        "uid": _UID,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
        "operation": "CREATE",
        "namespace": "a",
        "object": obj,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    before, after = (part.encode() for part in json.dumps(review, separators=(",", ":")).split(_UID))
    return AnyDecision("/mutate", before, after, obj), AnyDecision("/validate", before, after, obj)
