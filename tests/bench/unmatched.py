"""What a Pod that requests no accelerator costs the API server, which does not send it: the CPU time of match conditions.

CPU time of the API server for a create request, with nothing registered before and after each measurement. The Pods of
one load are sent by one client over several connections, as dry runs, so that etcd is not part of the measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from figures import Measured, figure
from processes import cpu_seconds

from gpugate.policies.engine.config import PolicyConfig
from gpugate.webhook.registration.entries import RiskGroup, entries, whole_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from oracle.process import Oracle

REQUESTS: Final = 2000
# So short that other processes disturb few rounds, of which the fastest counts.
_ROUNDS: Final = 200
_EVALUATIONS: Final = 10
# The share of the API server's CPU time that match conditions may add.
_MOST: Final = 1.05


def pod(namespace: str) -> dict[str, Any]:
    """Return a Pod of a web server, as a client sends it."""
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10}
    container = {
        "name": "web",
        "image": "registry.example/shop/web:1.42.0",
        "args": ["--listen=:8080", "--log=json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": f"SETTING_{number}", "value": "a value of ordinary length"} for number in range(20)],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "settings", "mountPath": "/etc/web"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "web-7c9d8f6b5-",
            "namespace": namespace,
            "labels": {"app": "web", "pod-template-hash": "7c9d8f6b5", "team": "shop"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        },
        "spec": {
            "containers": [container],
            "volumes": [
                {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "settings", "configMap": {"name": "web"}},
            ],
            "nodeSelector": {"kubernetes.io/arch": "amd64"},
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }


def measure(
    api_server: int,
    send: Callable[[int], object],
    registered: Mapping[str, Callable[[], AbstractContextManager[None]]],
) -> dict[str, float]:
    """Measure once: CPU seconds of the API server for a Pod, by what is registered, and the same divided by those without.

    Args:
        api_server: the process of the API server.
        send: creates so many Pods.
        registered: name -> what registers it, and removes it at the end.
    """

    def taken() -> float:
        before = cpu_seconds(api_server)
        send(REQUESTS)
        return (cpu_seconds(api_server) - before) / REQUESTS

    send(REQUESTS // 4)
    found: dict[str, float] = {}
    without = [taken()]
    for name, register in registered.items():
        with register():
            send(REQUESTS // 4)
            found[f"{name} unmatched"] = taken()
        without.append(taken())
        found[f"{name} unmatched times"] = found[f"{name} unmatched"] / (sum(without[-2:]) / 2)
    return found | {"nothing unmatched": sum(without) / len(without)}


def conditions(oracle: Oracle, runs: int) -> Iterator[Measured]:
    """Measure what the match conditions of each entry for Pods take, with the API server's code and without a server.

    An entry with the condition `true` shows what is not theirs: the object is converted for each entry. Allocations do not
    depend on how busy the machine is.
    """
    ruleset = whole_catalogue(PolicyConfig())
    of_pods = {
        entry.name: [condition["expression"] for condition in entry.conditions]
        for phase in ("mutate", "validate")
        for entry in entries(ruleset, phase)
        if entry.group is RiskGroup.PODS
    }
    for name, expressions in {"true": ["true"], **of_pods}.items():
        about = {
            "expressions": expressions,
            "object": pod("shop"),
            "user": "alice",
            "resource": "pods",
            "operation": "CREATE",
            "rounds": _ROUNDS,
            "evaluations": _EVALUATIONS,
        }
        found = [oracle.ask("measure", about) for _ in range(runs)]
        yield Measured(figure(f"no GPU: {name}", [each["ns"] / 1e9 for each in found], "us"))
        yield Measured(figure(f"no GPU: {name}, allocations", [each["allocations"] for each in found], "count"))


def measured(ours: str, names: tuple[str, ...], runs: Mapping[str, list[float]]) -> Iterator[Measured]:
    """Yield the figures of several measurements; `ours` is the name whose ratio has an aim."""
    for name in ("nothing", *names):
        yield Measured(figure(f"no GPU: CPU of the API server, {name}", runs[f"{name} unmatched"], "us"))
    for name in names:
        aim = _MOST if name == ours else None
        yield Measured(figure(f"no GPU: CPU with {name}, times without", runs[f"{name} unmatched times"], "x"), aim)
