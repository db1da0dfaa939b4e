"""The checks of `gpugate doctor`, in order."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from gpugate.certs.plan import DISTRUST, ROTATE
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.generate.drift import drift
from gpugate.webhook.generate.drift_reasons import Reason
from gpugate.webhook.generate.entries import mutated, validated
from gpugate.webhook.generate.registration import Server
from gpugate.webhook.operate import doctor_case
from gpugate.webhook.operate.doctor_case import error, note, warning
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reachability import ready_endpoints
from gpugate.webhook.operate.reading import unread_because
from gpugate.webhook.report.diagnosis import Diagnosis, Gap, Problem
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.doctor_case import Case
    from gpugate.webhook.operate.installation import Installation, Names, Object, Several


def check_authorities(case: Case) -> Iterator[Problem]:
    """Yield what is wrong with the Secret."""
    names = case.installation.names
    where = f"Secret {names.namespace}/{names.secret}"
    log = f"kubectl -n {names.namespace} logs -l app.kubernetes.io/name=gpugate --prefix"
    found = case.installation.secret
    if isinstance(found, Unread):
        return
    if found is None:
        text = "there is no such Secret: no authority can be kept, and a replica that starts has no certificate"
        yield error(
            "secret-missing", text, where, f"the replica that leads makes it at once; see why it does not: {log}"
        )
    elif found.corrupt:
        text = f"holds no authority that can be used: {found.corrupt}"
        remedy = f"kubectl -n {names.namespace} delete secret {names.secret}: the replica that leads makes a new one"
        yield error("secret-corrupt", text, where, remedy)
    else:
        if not found.next:
            text = "holds no next authority, so that the active one cannot be replaced"
            yield warning("no-next-authority", text, where, f"the replica that leads makes one at once: {log}")
        for asked in (ROTATE, DISTRUST):
            wanted = found.annotations.get(asked)
            if wanted is not None and found.answered.get(asked) != wanted:
                text = f"the annotation {asked}={wanted} asks for what was not done yet"
                yield warning("not-answered", text, where, f"see what the replica that leads waits for: {log}")


_DEFAULT_PORT = 443


def check_endpoints(case: Case) -> Iterator[Problem]:
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


# The times in a Lease are those of the holder's clock, which may differ from ours by so much.
_SKEW: Final = dt.timedelta(seconds=60)
_DURATION_SECONDS: Final = 15


def check_lease(case: Case) -> Iterator[Problem]:
    """Yield that nobody leads: no caBundle is mended, and no authority replaced."""
    names, found = case.installation.names, case.installation.lease
    where = f"Lease {names.namespace}/{names.lease}"
    remedy = f"kubectl -n {names.namespace} get pods: one of them takes over within seconds, if it may write the Lease"
    if isinstance(found, Unread):
        return
    if found is None:
        yield error("no-leader", "there is no such Lease: no replica has ever led", where, remedy)
        return
    spec = found.get("spec") or {}
    renewed = _time(spec.get("renewTime"))
    lasts = dt.timedelta(seconds=spec.get("leaseDurationSeconds") or _DURATION_SECONDS)
    if not spec.get("holderIdentity"):
        yield error("no-leader", "nobody holds it: the last replica that did has ended", where, remedy)
    elif renewed is None or case.installation.now - renewed > lasts + _SKEW:
        since = f"since {renewed:%Y-%m-%d %H:%M:%S} UTC" if renewed else "ever"
        yield error("no-leader", f"{spec['holderIdentity']} holds it, but has not renewed it {since}", where, remedy)


def _time(text: object) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None


# Nothing escapes by these, and nothing is refused that should not be.
_WARNINGS: Final = frozenset(
    {
        Reason.NOT_PROBED,
        Reason.NOT_JUDGED,
        Reason.UNCONDITIONAL,
        Reason.MATCH_POLICY,
        Reason.REINVOCATION,
        Reason.TIMEOUT,
    }
)


def check_registration(case: Case) -> Iterator[Problem]:
    """Yield how the live configurations differ from what is generated for the rules in force."""
    installation, secret = case.installation, case.secret
    found = drift(
        case.ruleset,
        live_configurations(installation),
        expected_server(installation, case.url),
        secret.bundle if secret else b"",
        now=installation.now,
        name=installation.names.configuration,
        meant=case.meant,
    )
    unread = [each.what for each in installation.configurations.values() if isinstance(each, Unread)]
    for each in found:
        if each.reason is Reason.MISSING and each.where in unread:
            continue
        severity = Severity.WARNING if each.reason in _WARNINGS else Severity.ERROR
        yield Problem(severity, each.reason.value, each.found, each.where, each.remedy)


def registration_needs(installation: Installation) -> Iterable[object]:
    """Return the configurations, where none of them could be read."""
    found = tuple(installation.configurations.values())
    return found if all(isinstance(each, Unread) for each in found) else ()


def live_configurations(installation: Installation) -> list[Object]:
    """Return every webhook configuration that was read."""
    own = [each for each in installation.configurations.values() if each is not None and not isinstance(each, Unread)]
    others = () if isinstance(installation.others, Unread) else installation.others
    return [*own, *others]


def expected_server(installation: Installation, url: str) -> Server:
    """Return where the webhook is meant to answer; without a URL, where most entries go."""
    names = installation.names
    if not url and installation.by_url:
        urls = [urlsplit(entry["clientConfig"]["url"]) for _, entry in installation.entries]
        hosts = [f"{each.scheme}://{each.netloc}" for each in urls]
        url = max(hosts, key=hosts.count)
    return Server(b"", names.namespace, url, names.service)


def check_kinds(case: Case) -> Iterator[Problem]:
    """Yield a note on the kinds that rules judge and this cluster does not have."""
    judged = {(each.group, each.plural) for each in (*mutated(case.ruleset), *validated(case.ruleset))}
    if case.served is None or isinstance(case.served, Unread):
        return
    missing = _names((group, plural) for group, plural in judged if plural not in case.served.get(group, frozenset()))
    if missing:
        yield note(
            "not-served",
            f"the cluster does not serve {len(missing)} of {len(judged)} kinds that rules judge: {', '.join(missing)}",
            "the API server",
            "nothing, unless one of them should be there: then install its CustomResourceDefinition",
        )


def failing_groups(case: Case) -> set[str]:
    """Return the API groups of what rules judge."""
    return {each.group for each in (*mutated(case.ruleset), *validated(case.ruleset))}


def _names(resources: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{plural}.{group}" if group else plural for group, plural in resources)


_API: Final = "authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Right:
    """Something that a ServiceAccount should be allowed to do, and whether it is; in all namespaces where none is named."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""
    allowed: bool = False

    @property
    def object(self) -> str:
        """What it is about."""
        plural, slash, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return f"{kind}{f' {self.name}' if self.name else ''}{f' in {self.namespace}' if self.namespace else ''}"


def needed(roles: Iterable[dict[str, Any]]) -> Iterator[Right]:
    """Yield each right that some Roles and ClusterRoles give; other objects among them give none."""
    for role in roles:
        namespace = role["metadata"].get("namespace", "")
        for rule in role.get("rules") or ():
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        for verb in rule["verbs"]:
                            yield Right(verb, group, resource, name, namespace)


def ask(connection: Connection, names: Names, rights: Iterable[Right]) -> Sequence[Right] | Unread:
    """Return which of some rights the ServiceAccount has; asking changes nothing."""
    account = f"{names.namespace}:{names.service_account}"
    # As the API server takes one for (`k8s.io/apiserver` pkg/authentication/serviceaccount/util.go, v0.36).
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{names.namespace}", "system:authenticated"]
    spec = {"user": f"system:serviceaccount:{account}", "groups": groups}
    try:
        return [_answered(connection, spec, each) for each in rights]
    except CallError as failure:
        return Unread(f"rights of ServiceAccount {names.namespace}/{names.service_account}", unread_because(failure))


def check_rights(case: Case) -> Iterator[Problem]:
    """Yield what the ServiceAccount may not do."""
    if case.rights is None or isinstance(case.rights, Unread):
        return
    lacking = sorted((each for each in case.rights if not each.allowed), key=lambda each: each.object)
    for what, group in groupby(lacking, key=lambda each: each.object):
        verbs = ", ".join(dict.fromkeys(each.verb for each in group))
        where = f"ServiceAccount {case.installation.names.namespace}/{case.installation.names.service_account}"
        remedy = "apply the roles again: `helm upgrade`, or `gpugate registration ... | kubectl apply -f -`"
        yield error("right-missing", f"may not {verbs} {what}", where, remedy)


def _answered(connection: Connection, user: dict[str, Any], right: Right) -> Right:
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
    answer = orjson.loads(connection.create(f"/apis/{_API}/subjectaccessreviews", review))
    return replace(right, allowed=bool(answer["status"].get("allowed")))


def check_reachability(case: Case) -> Iterator[Problem]:
    """Yield why a probe through the API server was not answered."""
    found = case.probed
    if found is None or found.incomplete or not found.silent:
        return
    where = f"the API server, asked in namespace {case.installation.names.namespace}"
    phases = " and ".join(found.silent)
    if found.trouble:
        said = f" ({found.trouble.said})" if found.trouble.said else ""
        yield error(
            "not-reached", f"a probe to {phases} failed: {found.trouble.what}{said}", where, found.trouble.remedy
        )
    else:
        text = f"a probe to {phases} was answered by nobody: no entry sends it, or what answers is not this webhook"
        yield error("not-reached", text, where, "apply again what is generated, and see where its entries lead")


class Check(NamedTuple):
    """A subject.

    Attributes:
        what: what is looked at; `{rules}` and fields of `Names` are filled in.
        problems: looks at it.
        idle: says why there is nothing to look at; empty where there is.
        needs: returns facts without which nothing can be said.
    """

    what: str
    problems: Callable[[Case], Iterable[Problem]]
    idle: Callable[[Case], str] = lambda _: ""
    needs: Callable[[Case], Iterable[object]] = lambda _: ()


def _by_url(case: Case) -> str:
    return "the webhook configurations send requests to a URL" if case.installation.by_url else ""


def _not_kept(case: Case) -> str:
    return "" if case.keeps_authorities else "no Secret was named, and nothing says that gpugate is its own authority"


def _not_probed(case: Case) -> str:
    return "" if case.probed else "--probe sends one"


def _no_account(case: Case) -> str:
    account = case.installation.service_account
    return "there is no such ServiceAccount: --service-account names another" if account is None else ""


def _nobody_reached(case: Case) -> str:
    if case.handshakes is None:
        return "--probe connects to it"
    if not case.handshakes:
        return "there is no address to connect to"
    unreached = {str(each.target): each.unreached for each in case.handshakes if each.unreached}
    if len(unreached) == len({str(each.target) for each in case.handshakes}):
        return f"not reached from here: {', '.join(f'{target} ({why})' for target, why in unreached.items())}"
    return ""


def _unprobed(case: Case) -> Unread | None:
    if case.probed and case.probed.incomplete and case.probed.trouble:
        return Unread("a probe through the API server", f"{case.probed.trouble.what}: {case.probed.trouble.remedy}")
    return None


CHECKS: Final = (
    Check(
        "webhook configurations {configuration}, against {rules}",
        check_registration,
        needs=lambda case: registration_needs(case.installation),
    ),
    Check(
        "how long the authorities in every caBundle are valid",
        doctor_case.check_certificates,
        needs=lambda case: registration_needs(case.installation),
    ),
    Check("kinds that rules judge and the cluster serves", check_kinds, needs=lambda case: (case.served,)),
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
    Check("the certificate that the webhook shows", doctor_case.check_handshakes, _nobody_reached),
)


def examine(case: Case) -> Diagnosis:
    """Return what is wrong, the worst first, and what was looked at."""
    names = case.installation.names
    words = {each: getattr(names, each) for each in names.__slots__} | {"rules": case.rules_from}
    problems: list[Problem] = []
    looked_at: list[str] = []
    unread = (*case.installation.unread, case.served, case.rights, _unprobed(case))
    gaps = [Gap(each.what, each.reason) for each in unread if isinstance(each, Unread)]
    for check in CHECKS:
        what, why = check.what.format(**words), check.idle(case)
        if why:
            gaps.append(Gap(what, why, asked=False))
        elif not any(isinstance(need, Unread) for need in check.needs(case)):
            looked_at.append(what)
            problems += check.problems(case)
    order = list(Severity)
    worst_first = sorted(dict.fromkeys(problems), key=lambda problem: order.index(problem.severity))
    return Diagnosis(tuple(worst_first), tuple(looked_at), tuple(gaps), case.installation.server)
