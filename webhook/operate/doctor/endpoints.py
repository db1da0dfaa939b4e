"""Whether the way from the API server to a Pod is whole: Service, ports, selector, endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.operate.doctor.case import error
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reachability import ready_endpoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.operate.installation import Object, Several
    from gpugate.webhook.report.diagnosis import Problem

_DEFAULT_PORT = 443


def check(case: Case) -> Iterator[Problem]:
    """Yield where requests to the Service get lost."""
    names, service = case.installation.names, case.installation.service
    where = f"Service {names.namespace}/{names.service}"
    if isinstance(service, Unread):
        return
    if service is None:
        text = "there is no such Service, but the webhook configurations send requests to it"
        yield error("service-missing", text, where, "apply the chart again, or name another Service with --service")
        return
    yield from _ports(case, service, where)
    yield from _endpoints(case, service, where)


def _ports(case: Case, service: Object, where: str) -> Iterator[Problem]:
    has = {each.get("port") for each in service["spec"].get("ports") or ()}
    used = {
        target.get("port", _DEFAULT_PORT)
        for _, entry in case.installation.entries
        if (target := (entry.get("clientConfig") or {}).get("service"))
    }
    for port in sorted(used - has):
        text = f"has no port {port}, which the webhook configurations send requests to; it has {_listed(has)}"
        remedy = f"kubectl -n {case.installation.names.namespace} edit service {case.installation.names.service}"
        yield error("service-port", text, where, remedy)


def _endpoints(case: Case, service: Object, where: str) -> Iterator[Problem]:
    installation = case.installation
    selector = service["spec"].get("selector") or {}
    pods = _selected(installation.pods, selector)
    look = f"kubectl -n {installation.names.namespace} get pods -l {','.join(f'{k}={v}' for k, v in selector.items())}"
    if selector and pods is not None and not pods:
        text = f"its selector ({_listed(f'{k}={v}' for k, v in selector.items())}) matches no Pod"
        yield error("no-pods", text, where, f"{look}: start some, or mend the labels")
        return
    if isinstance(installation.endpoint_slices, Unread):
        return
    ready, known = ready_endpoints(installation.endpoint_slices)
    if not ready:
        states = "; ".join(sorted({_state(pod) for pod in pods or ()}))
        text = f"has {known} endpoints, none of them ready{f': {states}' if states else ''}"
        yield error("no-endpoints", text, where, f"{look}; what a Pod lacks it says at /readyz and in its log")
    elif not any(each.get("ports") for each in installation.endpoint_slices):
        text = "leads to Pods, but to none of their ports: its targetPort names a port that no container has"
        yield error(
            "service-target-port", text, where, f"compare targetPort with the names of the ports: {look} -o yaml"
        )


def _selected(pods: Several, selector: dict[str, str]) -> Sequence[Object] | None:
    if isinstance(pods, Unread):
        return None
    return [pod for pod in pods if selector.items() <= (pod["metadata"].get("labels") or {}).items()]


def _state(pod: Object) -> str:
    """Say in a word or two why a Pod is not ready."""
    status = pod.get("status") or {}
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            if state.get("reason"):
                return str(state["reason"])
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("reason"):
            return f"{condition['reason']}{': ' if condition.get('message') else ''}{condition.get('message', '')}"
    return str(status.get("phase", "unknown"))


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values))) or "none"
