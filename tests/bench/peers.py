"""gpugate beside Gatekeeper and native policies, on one API server and in one run: `make bench-peers`.

All evaluate the same Pod, which all allow: gpugate with its whole library, Gatekeeper with five rules in its CEL engine, the
API server with the same five rules as ValidatingAdmissionPolicies. Reviews are sent to the webhooks directly, over TLS
connections that stay open, and as Pods with `dryRun=All` through the API server, which asks one of them at a time. Each
repetition measures all in turns, so that a slow minute of the machine affects all of them.

`--unmatched` measures instead what a Pod that requests no GPU costs the API server, and `--conditions` what the match
conditions of each entry take of that, without a server.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import figures
import unmatched
from captured import review
from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.gatekeeper import running_gatekeeper
from cluster.process import ProcessError
from cluster.served_webhook import served_webhook
from figures import Measured, figure
from load_generator import LoadError, Target, keep_alive
from oracle.process import Oracle
from processes import cpu_seconds, memory, tree

from tools import CONDITIONS, GATEKEEPER_VERSION, KUBERNETES, ToolsError, path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook
    from figures import Figure

REPETITIONS: Final = 5
CONNECTIONS: Final = 16
# Requests of one load, at one connection and at many.
DIRECT: Final = {1: 400, CONNECTIONS: 1600}
THROUGH: Final = {1: 200, CONNECTIONS: 800}
_REVIEW: Final = "pod-create-by-job.validate"
_GPU: Final = "'nvidia.com/gpu'"
_ASKS_FOR_GPUS: Final = (
    f"object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits) && {_GPU} in c.resources.limits)"
)
# What a platform would write first; an allowed Pod fulfils all.
RULES: Final = {
    "gputoleration": f"!{_ASKS_FOR_GPUS} || has(object.spec.tolerations) && "
    f"object.spec.tolerations.exists(t, has(t.key) && t.key == {_GPU})",
    "gpumaximum": "object.spec.containers.all(c, !has(c.resources) || !has(c.resources.limits) || "
    f"!({_GPU} in c.resources.limits) || quantity(string(c.resources.limits[{_GPU}])).isLessThan(quantity('9')))",
    "gpuowner": f"!{_ASKS_FOR_GPUS} || has(object.metadata.labels) && 'app' in object.metadata.labels",
    "pinnedimage": "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
    "memoryrequest": "object.spec.containers.all(c, has(c.resources) && has(c.resources.requests) && "
    "'memory' in c.resources.requests)",
}
_DENIED_SECONDS: Final = 60
_NATIVE: Final = "native policies"
_THEIRS: Final = "Gatekeeper"
_GENERATED: Final = "gpugate"
# The least that a webhook with match conditions costs: one entry with one condition, which the Pod does not fulfil.
_SHORT: Final = "one short condition"
_SHORT_CONDITION: Final = "'karpenter.sh/do-not-disrupt' in object.metadata.annotations"
_METRIC: Final = "gpugate_reviews_total"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook that is measured: its process, where reviews are sent, the path, and whether it mutates."""

    name: str
    pid: int
    target: Target
    path: str
    mutates: bool = False


def main() -> int:
    """Measure, show and keep; returns the exit code."""
    args = _parser().parse_args()
    sys.stdout.write(f"Kubernetes {KUBERNETES}, Gatekeeper {GATEKEEPER_VERSION}, {args.repetitions} repetitions\n")
    measured = []
    try:
        measuring = measure_conditions if args.conditions else measure_unmatched if args.unmatched else measure
        for each in measuring(args.repetitions):
            measured.append(each.figure)
            sys.stdout.write(f"  {figures.line(each)}\n")
            sys.stdout.flush()
    except (LoadError, ProcessError, ToolsError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if args.save:
        figures.save(args.save, measured)
    return 0


def measure(repetitions: int) -> Iterator[Measured]:
    """Measure rate, mean and CPU of each webhook, memory, and what each adds to a request through the API server."""
    runs: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        cluster = running.enter_context(_Cluster.running(Path(name)))
        for repetition in range(-1, repetitions):
            for key, value in {**_direct(cluster.webhooks), **cluster.through()}.items():
                if repetition >= 0:
                    runs[key].append(value)
        yield from _figures(cluster.webhooks, runs)


def measure_unmatched(repetitions: int) -> Iterator[Measured]:
    """Measure the CPU time of the API server for a Pod that requests no GPU."""
    runs: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        cluster = running.enter_context(_Cluster.running(Path(name)))
        for repetition in range(-1, repetitions):
            for key, value in cluster.unmatched().items():
                if repetition >= 0:
                    runs[key].append(value)
    yield from unmatched.measured(_GENERATED, (_GENERATED, _SHORT, _NATIVE, _THEIRS), runs)


def measure_conditions(repetitions: int) -> Iterator[Measured]:
    """Measure the match conditions of each entry for Pods."""
    with closing(Oracle(path(CONDITIONS.name))) as oracle:
        yield from unmatched.conditions(oracle, repetitions)


class _Cluster:
    """An API server with Gatekeeper and gpugate beside it, neither of them registered."""

    def __init__(self, api: Api, plane: ControlPlane, webhooks: tuple[Webhook, ...], ours: ServedWebhook) -> None:
        self.webhooks = webhooks
        self._api = api
        self._api_server = plane.processes["kube-apiserver"].pid
        self._ours = ours
        self._pods = Target(plane.url, plane.ca_file, (plane.admin.certificate, plane.admin.key))

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[_Cluster]:
        """Start everything, and stop it at the end."""
        with ExitStack() as stack:
            plane = stack.enter_context(running_control_plane(_made(folder / "plane")))
            api = Api(Connections(plane.url, plane.ca_file, plane.admin))
            pod = _pod()
            _prepare(api, pod["metadata"]["namespace"])
            ours = stack.enter_context(served_webhook(api, plane, _made(folder / "gpugate")))
            ours.unregister()
            theirs = stack.enter_context(
                running_gatekeeper(api, plane.admin_kubeconfig, _made(folder / "gatekeeper"), RULES)
            )
            here = Target(ours.url, ours.authority)
            there = Target(theirs.url, theirs.authority)
            webhooks = (
                Webhook("gpugate /validate", ours.process.pid, here, "/validate"),
                Webhook("gpugate /mutate", ours.process.pid, here, "/mutate", mutates=True),
                Webhook(_THEIRS, theirs.process.pid, there, "/v1/admit"),
            )
            yield cls(api, plane, webhooks, ours)

    def through(self) -> dict[str, float]:
        """Send the Pod through the API server: with nothing registered, with each webhook, with native policies."""
        found: dict[str, float] = {}
        before = self._load()
        for webhook in self.webhooks:
            with self._registered(_configuration(webhook), mutates=webhook.mutates):
                found |= _named(webhook.name, self._load())
        with self._registered(*_native_policies()):
            found |= _named(_NATIVE, self._load())
        after = self._load()
        base = {count: tuple(map(statistics.fmean, zip(before[count], after[count], strict=True))) for count in before}
        found |= _named("nothing", base)
        added = {
            key.replace(" through mean", " added"): value - base[1][0]
            for key, value in found.items()
            if key.endswith(" through mean") and not key.startswith("nothing")
        }
        return found | added

    def unmatched(self) -> dict[str, float]:
        """Create Pods that request no GPU: with the generated configurations, with native policies, with Gatekeeper."""
        gatekeeper = self.webhooks[-1]
        sent: list[float] = []

        @contextmanager
        def generated() -> Iterator[None]:
            with self._registered(*self._ours.configurations()):
                # Those that show when it is registered are sent.
                before = self._ours.metric(_METRIC, kind="Pod")
                yield
                sent.append(self._ours.metric(_METRIC, kind="Pod") - before)

        found = unmatched.measure(
            self._api_server,
            self._create_unmatched,
            {
                _GENERATED: generated,
                _SHORT: lambda: self._registered(_configuration(self.webhooks[0], _SHORT_CONDITION)),
                _NATIVE: lambda: self._registered(*_native_policies()),
                _THEIRS: lambda: self._registered(_configuration(gatekeeper)),
            },
        )
        if sent != [0]:
            raise LoadError(f"the API server sent {sent} of the Pods that no policy concerns")
        return found

    def _create_unmatched(self, requests: int) -> None:
        namespace = _pod()["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        request = self._pods.request(path, json.dumps(unmatched.pod(namespace)).encode())
        keep_alive(self._pods, request, connections=CONNECTIONS, requests=requests)

    def _load(self) -> dict[int, tuple[float, float]]:
        """Return mean seconds and rate by the number of connections."""
        pod = _pod()
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods?dryRun=All"
        request = self._pods.request(path, json.dumps(pod).encode())
        loads = {
            count: keep_alive(self._pods, request, connections=count, requests=requests)
            for count, requests in THROUGH.items()
        }
        return {count: (statistics.fmean(load.latencies), load.rate) for count, load in loads.items()}

    @contextmanager
    def _registered(self, *objects: dict[str, Any], mutates: bool = False) -> Iterator[None]:
        for obj in objects:
            answer = self._api.create(obj)
            assert answer.ok, answer.message
        try:
            self._wait(mutates=mutates, registered=True)
            yield
        finally:
            for obj in objects:
                self._api.delete(obj)
            self._wait(mutates=mutates, registered=False)

    def _wait(self, *, mutates: bool, registered: bool) -> None:
        """Wait until the API server asks, or no longer asks: a bad Pod is denied, or gets the toleration that it needs."""
        deadline = time.monotonic() + _DENIED_SECONDS
        bad = _pod()
        bad["spec"]["tolerations"] = []
        bad["spec"]["containers"][0]["image"] = "registry.example/trainer:latest"
        bad["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "yes"
        while True:
            answer = self._api.create(bad, dry_run=True)
            keys = {taint.get("key") for taint in answer.body.get("spec", {}).get("tolerations", ())}
            asked = "nvidia.com/gpu" in keys if mutates else not answer.ok
            if asked == registered:
                return
            if time.monotonic() > deadline:
                raise LoadError(f"was not {'registered' if registered else 'unregistered'}: {answer.message}")
            time.sleep(0.1)


def _direct(webhooks: tuple[Webhook, ...]) -> dict[str, float]:
    body = review(_REVIEW)
    found: dict[str, float] = {}
    for webhook in webhooks:
        request = webhook.target.request(webhook.path, body)
        for connections, requests in DIRECT.items():
            before = cpu_seconds(webhook.pid)
            load = keep_alive(webhook.target, request, connections=connections, requests=requests)
            used = (cpu_seconds(webhook.pid) - before) / requests
            for answer in load.answers:
                if json.loads(answer)["response"]["allowed"] is not True:
                    raise LoadError(f"{webhook.name} does not allow the Pod: {answer[:400]!r}")
            if connections == 1:
                found[f"{webhook.name} mean"] = statistics.fmean(load.latencies)
            else:
                found[f"{webhook.name} rate"] = load.rate
                found[f"{webhook.name} cpu"] = used
        found[f"{webhook.name} memory"] = sum(memory(process).proportional for process in tree(webhook.pid))
    return found


def _named(name: str, load: Mapping[int, tuple[float, ...]]) -> dict[str, float]:
    return {f"{name} through mean": load[1][0], f"{name} through rate": load[CONNECTIONS][1]}


def _figures(webhooks: tuple[Webhook, ...], runs: Mapping[str, list[float]]) -> Iterator[Measured]:
    *ours, theirs = webhooks
    for webhook in webhooks:
        name = webhook.name
        yield Measured(figure(f"{name}, {CONNECTIONS} connections", runs[f"{name} rate"], "/s"))
        yield Measured(figure(f"{name}, mean, 1 connection", runs[f"{name} mean"], "ms"))
        yield Measured(figure(f"{name}, CPU of all its processes", runs[f"{name} cpu"], "us"))
        yield Measured(figure(f"{name}, memory, shared pages once", runs[f"{name} memory"], "MB"))
    for webhook in ours:
        yield Measured(_ratio(f"rate of {theirs.name}, times {webhook.name}", runs, theirs, webhook, "rate"), 0.25)
        yield Measured(_ratio(f"mean of {webhook.name}, times {theirs.name}", runs, webhook, theirs, "mean"), 0.25)
        yield Measured(_ratio(f"CPU of {webhook.name}, times {theirs.name}", runs, webhook, theirs, "cpu"), 0.17)
    for name in ("nothing", _NATIVE, *(webhook.name for webhook in webhooks)):
        yield Measured(figure(f"API server with {name}, {CONNECTIONS} connections", runs[f"{name} through rate"], "/s"))
        yield Measured(figure(f"API server with {name}, mean, 1 connection", runs[f"{name} through mean"], "ms"))
        if name != "nothing":
            yield Measured(figure(f"{name}, added at 1 connection", runs[f"{name} added"], "ms"))


def _ratio(name: str, runs: Mapping[str, list[float]], one: Webhook, other: Webhook, key: str) -> Figure:
    """Divide within each repetition, whose loads ran one after the other."""
    pairs = zip(runs[f"{one.name} {key}"], runs[f"{other.name} {key}"], strict=True)
    return figure(name, [dividend / divisor for dividend, divisor in pairs], "x")


def _pod() -> dict[str, Any]:
    """Return the Pod of the review as a client would send it."""
    pod = json.loads(review(_REVIEW))["request"]["object"]
    metadata = pod["metadata"]
    kept = {key: metadata[key] for key in ("generateName", "namespace", "labels", "annotations")}
    spec = {key: value for key, value in pod["spec"].items() if key not in {"nodeName", "priority"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def _prepare(api: Api, namespace: str) -> None:
    account = {"name": "default", "namespace": namespace}
    for obj in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
    ):
        answer = api.apply(obj, force=True)
        assert answer.ok, answer.message


def _configuration(webhook: Webhook, condition: str = "") -> dict[str, Any]:
    kind = "MutatingWebhookConfiguration" if webhook.mutates else "ValidatingWebhookConfiguration"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    bundle = base64.b64encode(webhook.target.ca_file.read_bytes()).decode()
    entry = {
        "name": "measured.gpugate.dev",
        "clientConfig": {"url": f"{webhook.target.url}{webhook.path}", "caBundle": bundle},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
        **({"matchConditions": [{"name": "measured", "expression": condition}]} if condition else {}),
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "measured"},
        "webhooks": [entry],
    }


def _native_policies() -> Iterator[dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    for name, expression in RULES.items():
        version = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": name}],
        }
        yield {**version, "kind": "ValidatingAdmissionPolicy", "spec": spec}
        binding = {"policyName": name, "validationActions": ["Deny"]}
        yield {**version, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench-peers", description="Measure gpugate beside Gatekeeper and native policies."
    )
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--unmatched", action="store_true", help="measure what a Pod that requests no GPU costs the API server"
    )
    parser.add_argument("--conditions", action="store_true", help="measure the match conditions of each entry for Pods")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the figures, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
