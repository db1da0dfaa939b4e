"""An API server of any size for the audit: answers lists in pages, as fast as it can, from text made while it answers.

Run as a program it prints its URL and serves until its standard input ends: `paged_cluster.py PODS`. Each workload has
ten Pods; a tenth of them has GPUs. What a Pod holds is what kube-apiserver v1.36.3 stores of one, managed fields and
status included.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
PODS_OF_A_WORKLOAD: Final = 10
_GPU_SHARE: Final = 10
_NAMESPACES: Final = 50
_NODES: Final = 100
_MARK: Final = "@{}@"
_GROUPS: Final = {
    "": {"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "resourcequotas": "ResourceQuota"}
    | {"limitranges": "LimitRange", "persistentvolumes": "PersistentVolume"}
    | {"persistentvolumeclaims": "PersistentVolumeClaim"},
    "apps": {"deployments": "Deployment", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet"}
    | {"daemonsets": "DaemonSet"},
    "autoscaling": {"horizontalpodautoscalers": "HorizontalPodAutoscaler"},
    "batch": {"jobs": "Job", "cronjobs": "CronJob"},
    "policy": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "storage.k8s.io": {"storageclasses": "StorageClass"},
    "resource.k8s.io": {"resourceclaims": "ResourceClaim", "resourceclaimtemplates": "ResourceClaimTemplate"}
    | {"deviceclasses": "DeviceClass"},
}
_VERSIONS: Final = {"autoscaling": "v2"}


def main() -> None:
    """Serve on a free port of loopback."""
    Handler.cluster = Cluster(int(sys.argv[1]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.shutdown()


class Cluster:
    """What is stored, by plural: how many objects, and the text of each."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        workloads = max(1, pods // PODS_OF_A_WORKLOAD)
        plain, gpu = (_pattern(_pod(_MARK, gpu=gpu)) for gpu in (False, True))
        deployments = [_pattern(_workload("Deployment", _MARK, gpu=gpu)) for gpu in (False, True)]
        replicas = [_pattern(_workload("ReplicaSet", _MARK, gpu=gpu)) for gpu in (False, True)]
        self.counts = {
            "pods": pods,
            "deployments": workloads,
            "replicasets": workloads,
            "nodes": _NODES,
            "namespaces": _NAMESPACES,
        }
        self.texts: dict[str, Callable[[int], bytes]] = {
            "pods": lambda number: _filled((plain, gpu)[_has_gpu(number // PODS_OF_A_WORKLOAD)], number, pods),
            "deployments": lambda number: _filled(deployments[_has_gpu(number)], number * PODS_OF_A_WORKLOAD, pods),
            "replicasets": lambda number: _filled(replicas[_has_gpu(number)], number * PODS_OF_A_WORKLOAD, pods),
            "nodes": lambda number: json.dumps(_node(number)).encode(),
            "namespaces": lambda number: json.dumps({"metadata": {"name": _namespace(number)}}).encode(),
        }

    def page(self, plural: str, begin: int, limit: int) -> bytes:
        """Return one page of a list."""
        count = self.counts.get(plural, 0)
        end = min(count, begin + limit) if limit else count
        metadata: Json = {"resourceVersion": "1000"}
        if end < count:
            metadata |= {"continue": str(end), "remainingItemCount": count - end}
        items = b",".join(self.texts[plural](number) for number in range(begin, end)) if end > begin else b""
        return b'{"kind":"List","metadata":' + json.dumps(metadata).encode() + b',"items":[' + items + b"]}"


class Handler(BaseHTTPRequestHandler):
    """Answers discovery and lists."""

    cluster: Cluster
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer."""
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        query = dict(parse_qsl(url.query))
        if parts == ["version"]:
            self._answer(200, b'{"gitVersion":"v1.36.3"}')
            return
        group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
        if group not in _GROUPS:
            self._answer(404, b'{"kind":"Status","code":404,"reason":"NotFound"}')
        elif len(rest) < 2:
            self._answer(200, json.dumps(self._discovered(group, rest)).encode())
        else:
            self._answer(
                200, self.cluster.page(rest[-1], int(query.get("continue") or 0), int(query.get("limit") or 0))
            )

    def do_POST(self) -> None:
        """Refuse: nothing is written here."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(403, b'{"kind":"Status","code":403,"reason":"Forbidden"}')

    def _discovered(self, group: str, rest: list[str]) -> Json:
        version = {"version": _VERSIONS.get(group, "v1")}
        if not rest:
            return {"kind": "APIGroup", "versions": [version], "preferredVersion": version}
        resources = [
            {"name": plural, "kind": kind, "namespaced": kind not in {"Node", "Namespace", "DeviceClass"}}
            | {"verbs": ["get", "list", "watch"]}
            for plural, kind in _GROUPS[group].items()
        ]
        return {"kind": "APIResourceList", "resources": resources}

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _has_gpu(workload: int) -> bool:
    return workload % _GPU_SHARE == 0


def _namespace(number: int) -> str:
    return f"team-{number:03d}"


def _pattern(obj: Json) -> tuple[bytes, ...]:
    """Return the text of an object in pieces, to be joined by marks: pod, workload, namespace and node, in turn."""
    text = json.dumps(obj, separators=(",", ":"))
    return tuple(piece.encode() for piece in text.split("@"))


def _filled(pattern: tuple[bytes, ...], number: int, pods: int) -> bytes:
    workload = number // PODS_OF_A_WORKLOAD
    namespace = workload * _NAMESPACES * PODS_OF_A_WORKLOAD // max(pods, 1)
    words = {
        b"pod": b"%08x" % number,
        b"workload": b"%06d" % workload,
        b"namespace": _namespace(min(namespace, _NAMESPACES - 1)).encode(),
        b"node": b"node-%03d" % (number % _NODES),
    }
    return b"".join(words.get(piece, piece) if place % 2 else piece for place, piece in enumerate(pattern))


def _template(*, gpu: bool) -> Json:
    limits = {"cpu": "1", "memory": "2Gi", **({"nvidia.com/gpu": "1"} if gpu else {})}
    container = {
        "name": "main",
        "image": "registry.example.com/serving/app:1.4.2",
        "args": ["--port=8080", "--workers=4"],
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(12)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "resources": {"limits": limits, "requests": limits},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "metadata": {"labels": {"app": "app-@workload@", "team": "core", "cost-center": "42"}},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    }


def _workload(kind: str, mark: str, *, gpu: bool) -> Json:
    is_set = kind == "ReplicaSet"
    metadata: Json = {
        "name": f"app-@workload@{'-5d9c7b' if is_set else ''}",
        "namespace": mark.format("namespace"),
        "uid": f"{'rs' if is_set else 'deploy'}-@workload@",
        "resourceVersion": "999",
        "generation": 3,
        "labels": {"app": "app-@workload@"},
        "managedFields": list(_managed("kube-controller-manager")),
    }
    if is_set:
        metadata["ownerReferences"] = [_owner("Deployment", "app-@workload@", "deploy-@workload@")]
    spec = {
        "replicas": PODS_OF_A_WORKLOAD,
        "selector": {"matchLabels": {"app": "app-@workload@"}},
        "template": _template(gpu=gpu),
    }
    return {"metadata": metadata, "spec": spec, "status": {"replicas": PODS_OF_A_WORKLOAD}}


def _pod(mark: str, *, gpu: bool) -> Json:
    made = _template(gpu=gpu)
    token = "kube-api-access-abcde"  # noqa: S105 -- the name of a volume
    made["metadata"] |= {
        "name": f"app-@workload@-5d9c7b-{mark.format('pod')}",
        "generateName": "app-@workload@-5d9c7b-",
        "namespace": mark.format("namespace"),
        "uid": f"pod-{mark.format('pod')}",
        "resourceVersion": "998",
        "creationTimestamp": "2026-11-21T18:12:07Z",
        "ownerReferences": [_owner("ReplicaSet", "app-@workload@-5d9c7b", "rs-@workload@")],
        "managedFields": list(_managed("kube-controller-manager", "kubelet")),
    }
    made["metadata"]["labels"]["pod-template-hash"] = "5d9c7b"
    made["spec"] |= {
        "nodeName": mark.format("node"),
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    }
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": token, "mountPath": "/var/run/secrets", "readOnly": True}]
    made["status"] = {
        "phase": "Running",
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": "2026-11-21T18:12:07Z"}
            for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "podIP": "10.1.0.2",
        "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}, "restartCount": 0}],
        "qosClass": "Guaranteed",
    }
    return made


def _owner(kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def _managed(*managers: str) -> Iterator[Json]:
    fields = {f"f:field{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(25)}
    for manager in managers:
        yield {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}


def _node(number: int) -> Json:
    labels = {"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge"}
    amounts = {"cpu": "192", "memory": "2Ti", "pods": "500", "nvidia.com/gpu": "8"}
    return {
        "metadata": {"name": f"node-{number:03d}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


if __name__ == "__main__":
    main()
