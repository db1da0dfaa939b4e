"""`gpugate why`: which NodePools can launch a node for a Pod, from files and from a dump."""

from __future__ import annotations

import json
from textwrap import indent
from typing import TYPE_CHECKING, Any

import fastjsonschema
import pytest
from cluster.fake_api_server import FakeApiServer

from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.provisioning import PROVISIONING_NEEDS
from gpugate.policies.sdk.volumes import VOLUME_NEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., Any]

ZONE = "topology.kubernetes.io/zone"


def node_pool(name: str, *types: str, zone: str = "us-east-1a", **more: Any) -> dict[str, Any]:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [*types]},
        {"key": ZONE, "operator": "In", "values": [zone]},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    spec = {
        "template": {"spec": {"nodeClassRef": reference, "requirements": requirements}},
        "limits": {"nvidia.com/gpu": "8"},
    }
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec, **more}


def pod(gpus: int, claim: str = "") -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    metadata = {"name": "train", "namespace": "ml"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "volumes": volumes},
    }


def job(gpus: int) -> dict[str, Any]:
    metadata, template = {"name": "train", "namespace": "ml"}, {"spec": pod(gpus)["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def bound(zone: str) -> list[dict[str, Any]]:
    """A claim, and the volume in a zone that it is bound to."""
    terms = [{"matchExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}]}]
    claim = {"metadata": {"name": "data", "namespace": "ml"}, "spec": {"volumeName": "pv-1"}}
    volume = {"metadata": {"name": "pv-1"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
        {"apiVersion": "v1", "kind": "PersistentVolume", **volume},
    ]


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str, *found: dict[str, Any]) -> Path:
        file = tmp_path / name
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*found]}))
        return file

    return write


G4, G5 = node_pool("g4", "g4dn.xlarge"), node_pool("g5", "g5.xlarge", "g5.48xlarge")


def test_a_table_has_each_pool_with_the_first_term_that_fails(gpugate: Run, written: Callable[..., Path]) -> None:
    ran = gpugate("why", written("pod.json", pod(8)), "--from", written("pools.json", G4, G5))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Pod ml/train: 1 of 2 NodePools can launch a node for it\n"
        "  requests 8 nvidia.com/gpu\n"
        "  g4  no     resources: 8 nvidia.com/gpu requested, and its instance types have at most 1\n"
        "             fix: allow a type such as g4dn.metal\n"
        "  g5  yes    1 instance type fits\n"
    )


def test_json_has_the_same(gpugate: Run, written: Callable[..., Path]) -> None:
    ran = gpugate("why", written("job.json", job(8)), "--from", written("pools.json", G4), "-o", "json")

    assert ran.code == 1
    assert json.loads(ran.out) == {
        "schema": "gpugate.dev/why/v1",
        "pods": [
            {
                "pod": "Job ml/train",
                "launchable": False,
                "requests": {"nvidia.com/gpu": "8"},
                "pools": [
                    {
                        "name": "g4",
                        "launchable": "no",
                        "instance_types": 0,
                        "term": "resources",
                        "reason": "8 nvidia.com/gpu requested, and its instance types have at most 1",
                        "change": "allow a type such as g4dn.metal",
                    }
                ],
            }
        ],
    }


def test_the_schema_describes_every_answer(gpugate: Run, written: Callable[..., Path]) -> None:
    schema = json.loads(gpugate("config", "schema", "why").out)
    validate = fastjsonschema.compile(schema)
    newer = node_pool("newer", "p9.48xlarge")
    ran = gpugate(
        "why", written("pods.json", pod(8), job(1)), "--from", written("pools.json", G4, G5, newer), "-o", "json"
    )
    document = json.loads(ran.out)

    validate(document)

    assert {pool["launchable"] for of_pod in document["pods"] for pool in of_pod["pools"]} == {"yes", "maybe", "no"}
    for wrong in ({"schema": "gpugate.dev/why/v2"}, {"pods": [{}]}, {"pods": None}):
        with pytest.raises(fastjsonschema.JsonSchemaException):
            validate(document | wrong)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        pytest.param([G5, *bound("us-east-1a")], "yes", id="its volume is in the zone of the pool"),
        pytest.param(
            [G5, *bound("us-east-1b")],
            f"volumes: its volumes require {ZONE} us-east-1b, which the pool does not allow",
            id="its volume is in another zone",
        ),
        pytest.param([G5], "yes", id="its volume is not known"),
        pytest.param(
            [node_pool("g5", "g5.xlarge", status={"resources": {"nvidia.com/gpu": "8"}})],
            "limits: its limit leaves 0 nvidia.com/gpu, and every instance type that fits the Pod has more",
            id="the limit is reached",
        ),
    ],
)
def test_a_pod_of_a_dump_by_its_name(
    known: list[dict[str, Any]], said: str, gpugate: Run, written: Callable[..., Path]
) -> None:
    ran = gpugate("why", "pod/train", "-n", "ml", "--from", written("dump.json", pod(1, claim="data"), *known))

    assert said in ran.out
    assert ran.out.startswith("Pod ml/train: ")
    assert ran.code == (0 if said == "yes" else 1)


def test_pools_beside_the_pod_are_enough(gpugate: Run, written: Callable[..., Path]) -> None:
    assert gpugate("why", written("both.json", pod(1), G4)).out.startswith("Pod ml/train: 1 of 1 NodePools can launch")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ["pod/other", "-n", "ml"],
            4,
            "error: Pod ml/other does not exist: set its namespace with -n\n",
            id="no such Pod",
        ),
        pytest.param(["absent.yaml"], 4, "error: absent.yaml: ", id="no such file"),
        pytest.param(
            ["pod/train", "--context", "a"], 2, "error: --from selects files, --kubeconfig and --context", id="both"
        ),
    ],
)
def test_what_cannot_be_read(
    arguments: list[str], code: int, said: str, gpugate: Run, written: Callable[..., Path]
) -> None:
    ran = gpugate("why", *arguments, "--from", written("dump.json", pod(1), G4))

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_without_pods_or_pools_there_is_nothing_to_compare(gpugate: Run, written: Callable[..., Path]) -> None:
    pools = written("pools.json", G4)

    assert gpugate("why", pools, "--from", pools)[::2] == (3, "error: no Pods or Pod templates in the input\n")
    ran = gpugate("why", written("pod.json", pod(1)), "--from", written("empty.json"))
    assert (ran.code, ran.err) == (3, "error: no NodePools: add them with --from PATH\n")


def test_claims_are_compared_only_if_karpenter_does(gpugate: Run, written: Callable[..., Path]) -> None:
    claiming = pod(1)
    claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    file, pools = written("pod.json", claiming), written("pools.json", G5)

    assert "claims: the Pod uses a ResourceClaim" in gpugate("why", file, "--from", pools).out
    assert gpugate("why", file, "--from", pools, "--dra").code == 0


POLICY = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
TYPES = """\
types:
  - name: rack-a30
    labels: {node.kubernetes.io/instance-type: rack-a30, kubernetes.io/arch: amd64, topology.kubernetes.io/zone: us-east-1a}
    capacity: {cpu: 64, memory: 515Gi}
    allocatable: {cpu: 63500m, memory: 507Gi, nvidia.com/gpu: 4}
"""


def on_premises(*types: str) -> dict[str, Any]:
    pool = node_pool("rack", *types)
    reference = {"group": "karpenter.example.com", "kind": "RackNodeClass", "name": "rack"}
    pool["spec"]["template"]["spec"]["nodeClassRef"] = reference
    return pool


def node(gpus: int) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": "rack-a30", "kubernetes.io/arch": "amd64", ZONE: "us-east-1a"}
    amounts = {"cpu": "64", "memory": "515Gi", "nvidia.com/gpu": str(gpus)}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "rack-1", "labels": labels}, "status": status}


FOUR = "resources: 8 nvidia.com/gpu requested, and its instance types have at most 4"


@pytest.mark.parametrize(
    ("flag", "text", "nodes", "said"),
    [
        pytest.param("", "", [], "maybe", id="unknown types"),
        pytest.param(
            "--catalogue",
            f"apiVersion: gpugate.dev/v1\nkind: InstanceTypes\ncomplete: true\n{TYPES}",
            [],
            FOUR,
            id="a catalogue",
        ),
        pytest.param(
            "-p",
            f"{POLICY}platform:\n  catalogue:\n{indent(TYPES, '    ')}",
            [],
            FOUR,
            id="types in the policy file",
        ),
        pytest.param(
            "-p",
            f"{POLICY}platform:\n  catalogue: {{from_nodes: true, complete: true}}\n",
            [node(4)],
            FOUR,
            id="the nodes of the dump",
        ),
    ],
)
def test_types_of_other_providers(
    flag: str, text: str, nodes: list[dict[str, Any]], said: str, gpugate: Run, written: Callable[..., Path]
) -> None:
    wanting, dump = written("pod.json", pod(8)), written("dump.json", on_premises("rack-a30"), *nodes)
    file = dump.with_name("platform.yaml")
    file.write_text(text)
    ran = gpugate("why", wanting, "--from", dump, *([flag, file] if flag else []))

    assert ran.err == ""
    assert f"  rack  {'maybe' if said == 'maybe' else 'no'} " in ran.out
    assert said in ran.out


def test_the_policy_file_tells_how_karpenter_is_configured(
    gpugate: Run, written: Callable[..., Path], tmp_path: Path
) -> None:
    claiming = pod(1)
    claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{POLICY}policies:\n  pods/unprovisionable: {{params: {{ignore_dra_requests: false}}}}\n")

    arguments = ("why", written("pod.json", claiming), "--from", written("pools.json", G5))
    assert gpugate(*arguments).code == 1
    assert gpugate(*arguments, "-p", policy).code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-p", "absent.yaml"], "absent.yaml: no such file"),
        (["--catalogue", "absent.yaml"], "absent.yaml: no such file"),
        (["-p", "wrong.yaml"], "wrong.yaml:3:"),
        (["--catalogue", "wrong.yaml"], "wrong.yaml:2:"),
    ],
)
def test_a_file_of_the_platform_that_is_refused(
    flags: list[str],
    said: str,
    gpugate: Run,
    written: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.yaml").write_text(f"{POLICY}platform: 3\n")
    ran = gpugate("why", written("pod.json", pod(1)), "--from", written("pools.json", G5), *flags)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    """An API server that serves what is looked up, with a Pod, two pools and its volume in the zone of none."""
    server = FakeApiServer()
    for kind in (POD, *dict.fromkeys(need.kind for need in (*PROVISIONING_NEEDS, *VOLUME_NEEDS))):
        versions = ("v1",) if kind.versions == ("*",) else tuple(reversed(kind.versions))
        server.serve(kind.group, versions, kind.name, kind.plural, namespaced=kind.namespaced)
    claim, volume = bound("us-east-1b")
    server.store.put(("karpenter.sh", "nodepools"), G4)
    server.store.put(("karpenter.sh", "nodepools"), G5)
    server.store.put(("", "pods"), pod(1, claim="data"))
    server.store.put(("", "persistentvolumeclaims"), claim)
    server.store.put(("", "persistentvolumes"), volume)
    yield server.start()
    server.stop()


def test_a_pod_of_a_cluster_by_its_name(api: FakeApiServer, gpugate: Run, tmp_path: Path) -> None:
    cluster = ("--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig"))
    failure = f"volumes: its volumes require {ZONE} us-east-1b, which the pool does not allow"

    ran = gpugate("why", "pod/train", "-n", "ml", *cluster)

    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "Pod ml/train: no NodePool can launch a node for it\n"
        "  requests 1 nvidia.com/gpu\n"
        + "".join(
            f"  {name}  no     {failure}\n             fix: allow us-east-1b for {ZONE}\n" for name in ("g4", "g5")
        )
    )
    writes = {request.partition(" ")[2] for request in api.requests if not request.startswith("GET")}
    assert writes <= {"/apis/authentication.k8s.io/v1/selfsubjectreviews"}


def test_a_pod_that_a_cluster_does_not_have(api: FakeApiServer, gpugate: Run, tmp_path: Path) -> None:
    ran = gpugate("why", "pod/other", "-n", "ml", "--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig"))

    assert (ran.code, ran.err) == (4, "error: Pod ml/other does not exist: set its namespace with -n\n")
