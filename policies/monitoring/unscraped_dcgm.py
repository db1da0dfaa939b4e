"""ServiceMonitor for dcgm-exporter that scrapes nothing.

## Why is this bad?
Prometheus has no GPU metrics, which is not an error. Alerts on GPUs never fire, dashboards are empty, scalers see no load, and idle
GPUs stay unknown. A ServiceMonitor selects Services by their labels, and a port by its name. The Service of NVIDIA's GPU operator
names its port `gpu-metrics`, that of dcgm-exporter's own chart `metrics`.

## Instead
Write the name of the port as the Service has it:

```yaml
spec:
  selector:
    matchLabels:
      app: nvidia-dcgm-exporter
  endpoints:
    - port: gpu-metrics
```

The policy evaluates ServiceMonitors whose selector has a value with `dcgm`. If a Service with these labels is known, its ports must include
the name. If no Service is known, only the port of the GPU operator's Service is compared. If all Services of the namespace are
known and none has the labels, the finding is only recorded, because the Service may be created after the ServiceMonitor. An endpoint
with `targetPort` instead of `port` is not evaluated.

Objects in the namespace `gpu-operator` are not evaluated by default; see `excluded_namespaces` in the policy file.

## Sources
prometheus-operator v0.85 `pkg/apis/monitoring/v1/servicemonitor_types.go`; NVIDIA GPU operator v26.7.0
`assets/state-dcgm-exporter/0400_service.yaml` (label `app: nvidia-dcgm-exporter`, port `gpu-metrics`); dcgm-exporter 4.8.2
`deployment/templates/service.yaml` (port `metrics`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.facts import Known, Need, Unavailable
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.objects import SERVICE, SERVICE_MONITOR
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.scheduling import selects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.facts import Fact
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_NAME: Final = "dcgm"
_OPERATOR: Final = ("app", "nvidia-dcgm-exporter")
_OPERATOR_PORT: Final = "gpu-metrics"
_NEEDS: Final = (Need(SERVICE, ("metadata.labels", "spec.ports.name")),)
_MOST_NAMES: Final = 5


@validates(SERVICE_MONITOR, mode=Stance.WARN, at_most=Stance.WARN, needs=_NEEDS)
def check(monitor: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Compare the selector and the ports with the Services."""
    selector = monitor["spec", "selector"]
    if not any(_NAME in value for value in _values(selector)):
        return
    facts = tuple(_facts(monitor, ctx))
    services = [
        item for fact in facts if isinstance(fact, Known) for item in fact.items if selects(selector, _labels(item))
    ]
    endpoints = [endpoint for endpoint in monitor["spec", "endpoints"] if endpoint["port"].text]
    if services:
        yield from _ports(endpoints, services)
        return
    is_operator = selector["matchLabels", _OPERATOR[0]].text == _OPERATOR[1]
    wrong = [endpoint["port"] for endpoint in endpoints if endpoint["port"].text != _OPERATOR_PORT]
    if is_operator and endpoints and len(wrong) == len(endpoints):
        for port in wrong:
            message = f"the GPU operator's Service names its port {_OPERATOR_PORT}, not {port.text}"
            yield Violation(port.path, message, hint=f"write {_OPERATOR_PORT}", fix=_fix(port, _OPERATOR_PORT))
    elif all(isinstance(fact, Known) and fact.complete for fact in facts):
        message = "no Service has these labels, so nothing is scraped"
        hint = "create a Service with these labels for dcgm-exporter, or select the labels of the existing one"
        yield Violation(selector.path, message, Stance.AUDIT, hint)
    else:
        unknown = next((fact.reason for fact in facts if isinstance(fact, Unavailable)), "")
        yield Skip(unknown or "no Service with these labels was found, but one may exist")


def _values(selector: Field) -> Iterator[str]:
    """Yield the values that labels must have."""
    labels = selector["matchLabels"]
    yield from (labels[name].text for name in labels.mapping)
    for expression in selector["matchExpressions"]:
        if expression["operator"].text == "In":
            yield from expression["values"].texts


def _facts(monitor: Field, ctx: AnyContext) -> Iterator[Fact]:
    """Yield the Services of each namespace that the ServiceMonitor selects: by default its own."""
    namespaces = monitor["spec", "namespaceSelector"]
    if namespaces["any"].value is True:
        yield ctx.facts.list(SERVICE)
        return
    names = namespaces["matchNames"].texts or (ctx.request.namespace,)
    yield from (ctx.facts.list(SERVICE, name) for name in dict.fromkeys(names))


def _labels(service: Field) -> dict[str, str]:
    labels = service["metadata", "labels"]
    return {name: labels[name].text for name in labels.mapping}


def _ports(endpoints: list[Field], services: list[Field]) -> Iterator[Violation]:
    offered = {port["name"].text for service in services for port in service["spec", "ports"]} - {""}
    for port in (endpoint["port"] for endpoint in endpoints):
        if port.text in offered:
            continue
        first = services[0]["metadata"]
        names = ", ".join(sorted(offered)[:_MOST_NAMES]) or "no name"
        service = f"Service {first['namespace'].text}/{first['name'].text}"
        message = f"{service} has no port with the name {port.text} ({names})"
        (only,) = offered if len(offered) == 1 else ("",)
        hint = f"write {only}" if only else "write the name of a port of the Service"
        yield Violation(port.path, message, hint=hint, fix=_fix(port, only) if only else None)


def _fix(port: Field, name: str) -> Patches:
    return Patches((Patch("set", port.path, name, "scrapes the port of the Service"),))
