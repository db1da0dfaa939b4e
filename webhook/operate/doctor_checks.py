"""The checks of `gpugate doctor`, in order."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from gpugate.certs.plan import DISTRUST, ROTATE
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.operate import doctor_case
from gpugate.webhook.operate.diagnosis import Diagnosis, Gap, Problem
from gpugate.webhook.operate.doctor_case import Right, error, note, warning
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reachability import ready_endpoints
from gpugate.webhook.operate.reading import describe_unread
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.drift_reasons import Reason
from gpugate.webhook.registration.entries import mutated, validated
from gpugate.webhook.registration.objects import Server
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.doctor_case import Case
    from gpugate.webhook.operate.installation import Installation, Names, Object, OptionalObjects


def check_authorities(case: Case) -> Iterator[Problem]:
    """Yield the problems of the certificate Secret."""
    names = case.installation.names
    where = f"Secret {names.namespace}/{names.secret}"
    log = f"kubectl -n {names.namespace} logs -l app.kubernetes.io/name=gpugate --prefix"
    secret = case.installation.secret
    if isinstance(secret, Unread):
        return
    if secret is None:
        text = "the Secret does not exist: CAs cannot be stored, and a new replica gets no certificate"
        yield error("secret-missing", text, where, f"the leader creates it at once; see its log for the reason: {log}")
    elif secret.corrupt:
        text = f"contains no valid CA: {secret.corrupt}"
        remedy = f"kubectl -n {names.namespace} delete secret {names.secret}: the leader creates a new one"
        yield error("secret-corrupt", text, where, remedy)
    else:
        if not secret.next:
            text = "contains no next CA, so the active one cannot be replaced"
            yield warning("no-next-authority", text, where, f"the leader creates one at once: {log}")
        for annotation in (ROTATE, DISTRUST):
            requested = secret.annotations.get(annotation)
            if requested is not None and secret.answered.get(annotation) != requested:
                text = f"the request in annotation {annotation}={requested} is not processed yet"
                yield warning("not-answered", text, where, f"see what the leader waits for: {log}")


_DEFAULT_PORT = 443


def check_endpoints(case: Case) -> Iterator[Problem]:
    """Yield the problems of the Service, its ports and its endpoints."""
    names, service = case.installation.names, case.installation.service
    where = f"Service {names.namespace}/{names.service}"
    if isinstance(service, Unread):
        return
    if service is None:
        text = "the Service does not exist, but the webhook configurations send requests to it"
        yield error("service-missing", text, where, "apply the chart again, or set --service to another Service")
        return
    yield from _ports(case, service, where)
    yield from _endpoints(case, service, where)


def _ports(case: Case, service: Object, where: str) -> Iterator[Problem]:
    ports = {service_port.get("port") for service_port in service["spec"].get("ports") or ()}
    used_ports = {
        target.get("port", _DEFAULT_PORT)
        for _, entry in case.installation.entries
        if (target := (entry.get("clientConfig") or {}).get("service"))
    }
    for port in sorted(used_ports - ports):
        text = f"has no port {port}, which the webhook configurations send requests to; it has {_listed(ports)}"
        remedy = f"kubectl -n {case.installation.names.namespace} edit service {case.installation.names.service}"
        yield error("service-port", text, where, remedy)


def _endpoints(case: Case, service: Object, where: str) -> Iterator[Problem]:
    installation = case.installation
    selector = service["spec"].get("selector") or {}
    pods = _selected(installation.pods, selector)
    command = (
        f"kubectl -n {installation.names.namespace} get pods -l {','.join(f'{k}={v}' for k, v in selector.items())}"
    )
    if selector and pods is not None and not pods:
        text = f"its selector ({_listed(f'{k}={v}' for k, v in selector.items())}) matches no Pod"
        yield error("no-pods", text, where, f"{command}: start some, or correct the labels")
        return
    if isinstance(installation.endpoint_slices, Unread):
        return
    ready, total = ready_endpoints(installation.endpoint_slices)
    if not ready:
        states = "; ".join(sorted({_state(pod) for pod in pods or ()}))
        text = f"has {total} endpoints, none of them ready{f': {states}' if states else ''}"
        yield error(
            "no-endpoints", text, where, f"{command}; each Pod reports what it waits for at /readyz and in its log"
        )
    elif not any(endpoint_slice.get("ports") for endpoint_slice in installation.endpoint_slices):
        text = "selects Pods, but none of their ports: no container has a port with the name in targetPort"
        yield error(
            "service-target-port", text, where, f"compare targetPort with the names of the ports: {command} -o yaml"
        )


def _selected(pods: OptionalObjects, selector: dict[str, str]) -> Sequence[Object] | None:
    if isinstance(pods, Unread):
        return None
    return [pod for pod in pods if selector.items() <= (pod["metadata"].get("labels") or {}).items()]


def _state(pod: Object) -> str:
    """Return a short reason why a Pod is not ready."""
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


# The times in a Lease come from the holder's clock. This is the allowed difference from the local clock.
_SKEW: Final = dt.timedelta(seconds=60)
_DURATION_SECONDS: Final = 15


def check_lease(case: Case) -> Iterator[Problem]:
    """Yield a missing leader: without one, caBundles are not repaired and authorities are not replaced."""
    names, lease = case.installation.names, case.installation.lease
    where = f"Lease {names.namespace}/{names.lease}"
    remedy = f"kubectl -n {names.namespace} get pods: one of them takes over within seconds, if it may write the Lease"
    if isinstance(lease, Unread):
        return
    if lease is None:
        yield error("no-leader", "the Lease does not exist: no replica has been the leader", where, remedy)
        return
    spec = lease.get("spec") or {}
    renewed = _time(spec.get("renewTime"))
    lasts = dt.timedelta(seconds=spec.get("leaseDurationSeconds") or _DURATION_SECONDS)
    if not spec.get("holderIdentity"):
        yield error("no-leader", "no replica holds the Lease: the last leader has exited", where, remedy)
    elif renewed is None or case.installation.now - renewed > lasts + _SKEW:
        since = f"since {renewed:%Y-%m-%d %H:%M:%S} UTC" if renewed else "ever"
        yield error("no-leader", f"{spec['holderIdentity']} holds it, but has not renewed it {since}", where, remedy)


def _time(text: object) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None


# These differences cause neither missed evaluations nor wrong denials.
_WARNINGS: Final = frozenset(
    {
        Reason.NOT_PROBED,
        Reason.NOT_EVALUATED,
        Reason.UNCONDITIONAL,
        Reason.MATCH_POLICY,
        Reason.REINVOCATION,
        Reason.TIMEOUT,
    }
)


def check_registration(case: Case) -> Iterator[Problem]:
    """Yield the differences between the live configurations and those that gpugate generates for the ruleset."""
    installation, secret = case.installation, case.secret
    differences = drift(
        case.ruleset,
        live_configurations(installation),
        expected_server(installation, case.url),
        secret.bundle if secret else b"",
        now=installation.now,
        name=installation.names.configuration,
        meant=case.meant,
        knows_own=case.knows_own,
    )
    unread = [
        difference.subject for difference in installation.configurations.values() if isinstance(difference, Unread)
    ]
    for difference in differences:
        if difference.reason is Reason.MISSING and difference.where in unread:
            continue
        severity = Severity.WARNING if difference.reason in _WARNINGS else Severity.ERROR
        yield Problem(severity, difference.reason.value, difference.message, difference.where, difference.remedy)
    if not case.knows_own:
        text = "the webhook uses policies outside the library; whether their kinds are registered is not checked"
        where = f"Deployment of ServiceAccount {installation.names.namespace}/{installation.names.service_account}"
        yield note("own-policies-unknown", text, where, "name their directory: gpugate doctor --policy-path DIRECTORY")


def registration_needs(installation: Installation) -> Iterable[object]:
    """Return the configurations if none of them could be read, else nothing."""
    configurations = tuple(installation.configurations.values())
    return configurations if all(isinstance(configuration, Unread) for configuration in configurations) else ()


def live_configurations(installation: Installation) -> list[Object]:
    """Return every webhook configuration that was read."""
    own = [
        configuration
        for configuration in installation.configurations.values()
        if configuration is not None and not isinstance(configuration, Unread)
    ]
    others = () if isinstance(installation.others, Unread) else installation.others
    return [*own, *others]


def expected_server(installation: Installation, url: str) -> Server:
    """Return the expected address of the webhook; without a URL, the one that most entries use."""
    names = installation.names
    if not url and installation.by_url:
        urls = [urlsplit(entry["clientConfig"]["url"]) for _, entry in installation.entries]
        hosts = [f"{url_parts.scheme}://{url_parts.netloc}" for url_parts in urls]
        url = max(hosts, key=hosts.count)
    return Server(b"", names.namespace, url, names.service)


def check_kinds(case: Case) -> Iterator[Problem]:
    """Yield a note on the kinds that policies evaluate and this cluster does not serve."""
    evaluated = {(kind.group, kind.plural) for kind in (*mutated(case.ruleset), *validated(case.ruleset))}
    if case.served is None or isinstance(case.served, Unread):
        return
    missing = _names(
        (group, plural) for group, plural in evaluated if plural not in case.served.get(group, frozenset())
    )
    if missing:
        yield note(
            "not-served",
            f"the cluster does not serve {len(missing)} of {len(evaluated)} kinds that policies evaluate: {', '.join(missing)}",
            "the API server",
            "nothing, unless the cluster should have one of them: then install its CustomResourceDefinition",
        )


def failing_groups(case: Case) -> set[str]:
    """Return the API groups of the kinds that policies evaluate."""
    return {kind.group for kind in (*mutated(case.ruleset), *validated(case.ruleset))}


def _names(resources: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{plural}.{group}" if group else plural for group, plural in resources)


_API: Final = "authorization.k8s.io/v1"


def required_rights(roles: Iterable[dict[str, Any]]) -> Iterator[Right]:
    """Yield each permission in Roles and ClusterRoles; other objects are ignored."""
    for role in roles:
        namespace = role["metadata"].get("namespace", "")
        for rule in role.get("rules") or ():
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        for verb in rule["verbs"]:
                            yield Right(verb, group, resource, name, namespace)


def review_rights(connection: Connection, names: Names, rights: Iterable[Right]) -> Sequence[Right] | Unread:
    """Return the rights with `allowed` set for the ServiceAccount; the reviews change nothing."""
    account = f"{names.namespace}:{names.service_account}"
    # The groups of a ServiceAccount (`k8s.io/apiserver` pkg/authentication/serviceaccount/util.go, v0.36).
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{names.namespace}", "system:authenticated"]
    spec = {"user": f"system:serviceaccount:{account}", "groups": groups}
    try:
        return [_review_right(connection, spec, right) for right in rights]
    except CallError as failure:
        return Unread(f"rights of ServiceAccount {names.namespace}/{names.service_account}", describe_unread(failure))


def check_rights(case: Case) -> Iterator[Problem]:
    """Yield the permissions that the ServiceAccount does not have."""
    if case.rights is None or isinstance(case.rights, Unread):
        return
    missing = sorted((right for right in case.rights if not right.allowed), key=lambda right: right.object)
    for resource, group in groupby(missing, key=lambda right: right.object):
        verbs = ", ".join(dict.fromkeys(right.verb for right in group))
        where = f"ServiceAccount {case.installation.names.namespace}/{case.installation.names.service_account}"
        remedy = "apply the roles again: `helm upgrade`, or `gpugate registration ... | kubectl apply -f -`"
        yield error("right-missing", f"may not {verbs} {resource}", where, remedy)


def _review_right(connection: Connection, user: dict[str, Any], right: Right) -> Right:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "name": right.name,
        "namespace": right.namespace,
    }
    review = {"apiVersion": _API, "kind": "SubjectAccessReview", "spec": {**user, "resourceAttributes": attributes}}
    answer = read_json(orjson.loads, connection.create(f"/apis/{_API}/subjectaccessreviews", review))
    return replace(right, allowed=bool(answer["status"].get("allowed")))


def check_reachability(case: Case) -> Iterator[Problem]:
    """Yield why the webhook did not answer a probe through the API server."""
    probed = case.probed
    if probed is None or probed.incomplete or not probed.silent:
        return
    where = f"the API server, asked in namespace {case.installation.names.namespace}"
    phases = " and ".join(probed.silent)
    if probed.trouble:
        api_message = f" ({probed.trouble.message})" if probed.trouble.message else ""
        yield error(
            "not-reached",
            f"a probe to {phases} failed: {probed.trouble.problem}{api_message}",
            where,
            probed.trouble.remedy,
        )
    else:
        text = f"a probe to {phases} got no response: no entry sends it, or another server answers"
        yield error("not-reached", text, where, "apply the registration again, and check the addresses of its entries")


class Check(NamedTuple):
    """A check of `gpugate doctor`.

    Attributes:
        subject: the subject; `{rules}` and fields of `Names` are replaced.
        problems: yields the problems.
        idle: returns why the check does not apply; empty if it does.
        needs: returns the objects that the check needs.
    """

    subject: str
    problems: Callable[[Case], Iterable[Problem]]
    idle: Callable[[Case], str] = lambda _: ""
    needs: Callable[[Case], Iterable[object]] = lambda _: ()


def _by_url(case: Case) -> str:
    return "the webhook configurations send requests to a URL" if case.installation.by_url else ""


def _not_kept(case: Case) -> str:
    return "" if case.keeps_authorities else "no --secret, and no caBundle contains a CA of gpugate"


def _not_probed(case: Case) -> str:
    return "" if case.probed else "use --probe to send one"


def _no_account(case: Case) -> str:
    account = case.installation.service_account
    return "the ServiceAccount does not exist; set another with --service-account" if account is None else ""


def _not_reached(case: Case) -> str:
    if case.handshakes is None:
        return "use --probe to connect to the webhook"
    if not case.handshakes:
        return "no address to connect to"
    unreached = {str(handshake.target): handshake.unreached for handshake in case.handshakes if handshake.unreached}
    if len(unreached) == len({str(handshake.target) for handshake in case.handshakes}):
        return f"unreachable from this machine: {', '.join(f'{target} ({why})' for target, why in unreached.items())}"
    return ""


def _unprobed(case: Case) -> Unread | None:
    if case.probed and case.probed.incomplete and case.probed.trouble:
        return Unread("a probe through the API server", f"{case.probed.trouble.problem}: {case.probed.trouble.remedy}")
    return None


CHECKS: Final = (
    Check(
        "webhook configurations {configuration}, against {rules}",
        check_registration,
        needs=lambda case: registration_needs(case.installation),
    ),
    Check(
        "validity of the CAs in every caBundle",
        doctor_case.check_certificates,
        needs=lambda case: registration_needs(case.installation),
    ),
    Check("kinds that policies evaluate and the cluster serves", check_kinds, needs=lambda case: (case.served,)),
    Check("Secret {namespace}/{secret}", check_authorities, _not_kept, lambda case: (case.installation.secret,)),
    Check("Lease {namespace}/{lease}", check_lease, _not_kept, lambda case: (case.installation.lease,)),
    Check(
        "Service {namespace}/{service} and its endpoints",
        check_endpoints,
        _by_url,
        lambda case: (case.installation.service, case.installation.endpoint_slices),
    ),
    Check(
        "rights of ServiceAccount {namespace}/{service_account}",
        check_rights,
        _no_account,
        lambda case: (case.installation.service_account, case.rights),
    ),
    Check("a probe through the API server", check_reachability, _not_probed, lambda case: (_unprobed(case),)),
    Check("the serving certificate of the webhook", doctor_case.check_handshakes, _not_reached),
)


def examine(case: Case) -> Diagnosis:
    """Run all checks; return the problems, ordered by severity, and the checked subjects."""
    names = case.installation.names
    words = {item: getattr(names, item) for item in names.__slots__} | {"rules": case.rules_from}
    problems: list[Problem] = []
    checked: list[str] = []
    unread = (*case.installation.unread, case.served, case.rights, _unprobed(case))
    gaps = [Gap(item.subject, item.reason) for item in unread if isinstance(item, Unread)]
    for check in CHECKS:
        subject, why = check.subject.format(**words), check.idle(case)
        if why:
            gaps.append(Gap(subject, why, applies=False))
        elif not any(isinstance(need, Unread) for need in check.needs(case)):
            checked.append(subject)
            problems += check.problems(case)
    order = list(Severity)
    worst_first = sorted(dict.fromkeys(problems), key=lambda problem: order.index(problem.severity))
    return Diagnosis(tuple(worst_first), tuple(checked), tuple(gaps), case.installation.server)
