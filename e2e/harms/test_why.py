"""`gpugate why` and the real Karpenter agree on which Pods get a node, and on the first term that fails."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cluster.karpenter import NODE_CLASS
from cluster.namespaces import made_namespaces
from cluster.simulated_types import GPU
from eventually import eventually

from harms.manifests import GPU_TAINT, TOLERATION, node_pool, pod

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

Json = dict[str, Any]
# The API server does not ask gpugate about these names, where it is registered.
NAMESPACE = "without-why"
CASE, TEAM, RACK = "example.com/case", "example.com/team", "example.com/rack"
TYPE, ZONE, CAPACITY = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
ARCH, HOST = "kubernetes.io/arch", "kubernetes.io/hostname"
SECONDS = 240.0
MIXED, LIMITED, SOFT, EMPTY, BUSY = "mixed", "limited", "soft", "empty", "busy"
POOLS: Mapping[str, tuple[Sequence[str], Json]] = {
    MIXED: (("g5.xlarge", "g5.12xlarge"), {"zones": ("us-east-1a", "us-east-1b")}),
    LIMITED: (("g5.12xlarge", "g5.24xlarge"), {"limits": {GPU: "2"}}),
    SOFT: (
        ("g5.xlarge",),
        {"zones": ("us-east-1a",), "taint": {"key": "example.com/spot", "effect": "PreferNoSchedule"}},
    ),
    # Like the one before, but without a node for another Pod, on which the scheduler could place the Pod.
    EMPTY: (
        ("g5.xlarge",),
        {"zones": ("us-east-1a",), "taint": {"key": "example.com/spot", "effect": "PreferNoSchedule"}},
    ),
    BUSY: (("g5.xlarge",), {}),
}


@dataclass(frozen=True)
class Case:
    """A Pod, the pool that it tolerates, and what becomes of it.

    Attributes:
        term: the first term that fails; empty for a Pod that gets a node.
        event: what Karpenter's event says of this pool.
        requests: of its container; `spec` replaces fields of the Pod.
    """

    name: str
    pool: str = MIXED
    term: str = ""
    event: str = ""
    requests: Mapping[str, str] = field(default_factory=lambda: {GPU: "1"})
    spec: Mapping[str, Any] = field(default_factory=dict)
    tolerates: Sequence[Json] = (TOLERATION,)


def required(*terms: tuple[str, str]) -> Json:
    """Affinity to nodes that meet one of several terms."""
    found = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}


def selecting(key: str, value: str) -> Json:
    return {"nodeSelector": {key: value}}


def preferring(key: str, value: str) -> Json:
    entry = {"weight": 1, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [entry]}}}


SCARCE = "no instance type"
CASES = [
    Case("one"),
    Case("four", requests={GPU: "4"}),
    Case("team", spec=selecting(TEAM, "search")),
    Case("type", spec=selecting(TYPE, "g5.12xlarge")),
    Case("zone", spec=selecting(ZONE, "us-east-1a")),
    Case("architecture", spec=selecting(ARCH, "amd64")),
    Case("capacity-type", spec=selecting(CAPACITY, "on-demand")),
    Case("second-term", spec={"affinity": required((TYPE, "p5.48xlarge"), (TYPE, "g5.xlarge"))}),
    Case("preference", spec=preferring(ZONE, "us-east-1c")),
    Case("memory", requests={GPU: "1", "memory": "64Gi"}),
    Case("tolerates-all", tolerates=({"operator": "Exists"},), spec=selecting(TEAM, "search")),
    Case("eight", term="resources", event=SCARCE, requests={GPU: "8"}),
    Case("much-memory", term="resources", event=SCARCE, requests={GPU: "1", "memory": "4Ti"}),
    Case("many-cpus", term="resources", event=SCARCE, requests={GPU: "1", "cpu": "1000"}),
    Case("fpga", term="resources", event=SCARCE, requests={GPU: "1", "example.com/fpga": "1"}),
    Case(
        "four-of-a-small-type", term="resources", event=SCARCE, requests={GPU: "4"}, spec=selecting(TYPE, "g5.xlarge")
    ),
    Case("no-toleration", term="taints", event=f"taint={GPU}=true:NoSchedule", tolerates=()),
    Case("other-value", term="taints", event=f"taint={GPU}=true:NoSchedule", tolerates=({"key": GPU, "value": "x"},)),
    Case("other-team", term="labels", event=f"{TEAM} In [ads] not in {TEAM} In [search]", spec=selecting(TEAM, "ads")),
    Case("rack", term="labels", event=f'label "{RACK}" does not have known values', spec=selecting(RACK, "7")),
    Case(
        "other-zone", term="labels", event=f"{ZONE} In [us-east-1c] not in {ZONE}", spec=selecting(ZONE, "us-east-1c")
    ),
    Case("spot", term="labels", event=f"{CAPACITY} In [spot] not in {CAPACITY}", spec=selecting(CAPACITY, "spot")),
    Case("other-type", term="labels", event=f"{TYPE} In [p5.48xlarge] not in", spec=selecting(TYPE, "p5.48xlarge")),
    Case("arm", term="types", event=SCARCE, spec=selecting(ARCH, "arm64")),
    Case(
        "no-term",
        term="labels",
        event=f"{ZONE} In [us-east-1c] not in {ZONE}",
        spec={"affinity": required((TYPE, "p5.48xlarge"), (ZONE, "us-east-1c"))},
    ),
    Case("limited", LIMITED, "limits", "all available instance types exceed limits for nodepool"),
    Case(
        "limited-zone",
        LIMITED,
        "limits",
        "all available instance types exceed limits",
        spec=selecting(ZONE, "us-east-1b"),
    ),
    Case("last-term", SOFT, spec={"affinity": required((ZONE, "us-east-1c"), (ZONE, "us-east-1a"))}),
    Case(
        "first-term",
        EMPTY,
        "taints",
        f"{ZONE} In [us-east-1c] not in {ZONE}",
        spec={"affinity": required((ZONE, "us-east-1a"), (ZONE, "us-east-1c"))},
    ),
    Case("beside-agents", BUSY, requests={GPU: "1", "cpu": "500m"}),
    Case("no-room-beside-agents", BUSY, "resources", SCARCE, requests={GPU: "1", "cpu": "2"}),
]
LIVE = ("eight", "no-toleration", "other-team", "arm", "limited")


def written_pool(name: str) -> Json:
    """A NodePool as users write it, for EC2."""
    types, options = POOLS[name]
    zones = [{"key": ZONE, "operator": "In", "values": [*options["zones"]]}] if "zones" in options else []
    taints = [GPU_TAINT, {"key": CASE, "value": name, "effect": "NoSchedule"}]
    taints += [options["taint"]] if "taint" in options else []
    pool = node_pool(
        f"{NAMESPACE}-{name}",
        types,
        requirements=zones,
        template={"taints": taints},
        **({"limits": options["limits"]} if "limits" in options else {}),
    )
    pool["spec"]["template"]["metadata"]["labels"] = {TEAM: "search", CASE: name}
    return pool


def simulated(pool: Json) -> Json:
    """The same for Karpenter's simulated provider, which ignores those of EC2."""
    changed = copy.deepcopy(pool)
    changed["metadata"]["name"] += "-simulated"
    changed["spec"]["template"]["spec"]["nodeClassRef"] = dict(NODE_CLASS)
    return changed


def written_pod(case: Case) -> Json:
    tolerations = [{"key": CASE, "value": case.pool, "effect": "NoSchedule"}, *case.tolerates]
    made = pod(case.name, case.pool, tolerations=tolerations, **{"nodeSelector": {}, **case.spec})
    amounts = {"cpu": "100m", "memory": "128Mi", **case.requests}
    limits = {name: amount for name, amount in amounts.items() if name not in {"cpu", "memory"}}
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    made["metadata"]["namespace"] = NAMESPACE
    return made


def agent() -> Json:
    """A DaemonSet of the nodes of the pool `busy`."""
    template = pod("agent", BUSY, 0, tolerations=[{"operator": "Exists"}], nodeSelector={CASE: BUSY})
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    labels = {"app": "agent"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": template["spec"]}}
    metadata = {"name": "agent", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


@contextmanager
def created(api: Api) -> Iterator[None]:
    """Create pools, the DaemonSet and the Pods; in the end delete them with their nodes."""
    pools = [written_pool(name) for name in POOLS]
    everything = [*pools, *map(simulated, pools), agent(), *map(written_pod, CASES)]
    with made_namespaces(api, NAMESPACE):
        try:
            for obj in everything:
                answer = api.create(obj)
                assert answer.ok, answer.message
            yield
        finally:
            for obj in reversed(everything):
                api.delete(obj, **({"gracePeriodSeconds": 0} if obj["kind"] == "Pod" else {}))
            assert eventually(lambda: not api.list("karpenter.sh/v1", "NodePool"))


def why(*arguments: str | Path) -> Json:
    """Run `gpugate why`, and return each Pod's answer by name."""
    command = [sys.executable, "-m", "gpugate", "why", *map(str, arguments), "-o", "json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)  # noqa: S603 -- this program
    assert ran.returncode in {0, 1}, ran.stderr
    return {answer["pod"].rpartition("/")[2]: answer for answer in json.loads(ran.stdout)["pods"]}


def term_of(answer: Json, case: Case) -> str:
    """Return the term that fails for the pool of a case, as users write it; empty where it can launch a node."""
    (pool,) = (pool for pool in answer["pools"] if pool["name"] == f"{NAMESPACE}-{case.pool}")
    return str(pool["term"])


def test_karpenter_and_gpugate_agree(
    api: Api, control_plane: ControlPlane, controllers: list[object], tmp_path: Path
) -> None:
    pods, pools = tmp_path / "pods.json", tmp_path / "pools.json"
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(written_pod, CASES)]}))
    known = [agent(), *map(written_pool, POOLS)]
    pools.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": known}))

    with created(api):
        answers = why(pods, "--from", pools)
        left = decide(api)
        live = {
            name: why(f"pod/{name}", "-n", NAMESPACE, "--kubeconfig", control_plane.admin_kubeconfig) for name in LIVE
        }

    assert controllers
    assert left == []
    assert {case.name: term_of(answers[case.name], case) for case in CASES} == {case.name: case.term for case in CASES}
    assert {case.name: answers[case.name]["launchable"] for case in CASES} == {c.name: not c.term for c in CASES}
    cases = {case.name: case for case in CASES}
    assert {name: term_of(live[name][name], cases[name]) for name in LIVE} == {name: cases[name].term for name in LIVE}


def decide(api: Api) -> list[str]:
    """Wait until Karpenter has decided on all cases; return those on which it has not, or otherwise than expected."""
    end = time.monotonic() + SECONDS
    while (left := undecided(api)) and time.monotonic() < end:
        time.sleep(1)
    return left


def undecided(api: Api) -> list[str]:
    """Return the cases of which Karpenter has not done as expected yet, and what it said of them."""
    pods = {each["metadata"]["name"]: each for each in api.list("v1", "Pod", NAMESPACE)}
    said: dict[str, list[str]] = {}
    for event in api.list("v1", "Event", NAMESPACE):
        if event["reason"] == "FailedScheduling" and "Failed to schedule pod" in event["message"]:
            said.setdefault(event["involvedObject"]["name"], []).append(event["message"])
    return [
        f"{case.name}: {pods.get(case.name, {}).get('spec', {}).get('nodeName', '')} {said.get(case.name, [])}"
        for case in CASES
        if not (
            any(case.event in message for message in said.get(case.name, []))
            and "nodeName" not in pods[case.name]["spec"]
            if case.term
            else pods[case.name]["spec"].get("nodeName")
        )
    ]


def test_there_are_enough_cases_of_both_kinds() -> None:
    names = {case.name for case in CASES}

    assert len(names) == len(CASES)
    assert len(names) >= 30
    assert {case.term for case in CASES} == {"", "limits", "taints", "labels", "types", "resources"}
