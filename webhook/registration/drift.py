"""Compare the webhook configurations of a cluster with those generated for the ruleset in use.

The comparison covers which requests are sent, by which entry and under which conditions. Names and grouping of entries do
not matter.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/predicates/rules/rules.go and `k8s.io/api` admissionregistration/v1
types.go, v0.36.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from gpugate.certs.pki import common_name, fingerprint, split, validity
from gpugate.webhook.registration import break_glass
from gpugate.webhook.registration.drift_reasons import APPLY_AGAIN, REGISTER_OWN, Drift, Object, Reason, where
from gpugate.webhook.registration.entries import RiskGroup, whole_catalogue
from gpugate.webhook.registration.meant import Meant
from gpugate.webhook.registration.objects import webhook_configurations
from gpugate.webhook.registration.own_requests import ENTRY_NAMES, added

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.registration.entries import Phase
    from gpugate.webhook.registration.objects import Server
    from gpugate.webhook.registration.own_requests import Added


_ANY: Final = "*"
# The default of the API server.
DEFAULT_MATCH_POLICY: Final = "Equivalent"


class Sent(NamedTuple):
    """A type of request. Each part may be `*`; `resource` is written as in rules: `pods`, `pods/status`, `*/*`."""

    group: str
    version: str
    resource: str
    operation: str
    scope: str

    @property
    def name(self) -> str:
        """The resource with its group, such as `deployments.apps`."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


def sent(entry: Object) -> Iterator[Sent]:
    """Yield the requests that the rules of an entry select."""
    for rule in entry.get("rules") or ():
        scope = rule.get("scope") or _ANY
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for resource in rule.get("resources") or ():
                    for operation in rule.get("operations") or ():
                        yield Sent(group, version, resource, operation, scope)


def covers(live: Sent, wanted: Sent, match_policy: str) -> bool:
    """Return whether a live rule selects the wanted requests.

    With `Equivalent`, a rule for one version of a resource also selects requests in other versions, which are converted.
    """
    return (
        live.group in {_ANY, wanted.group}
        and live.operation in {_ANY, wanted.operation}
        and live.scope in {_ANY, wanted.scope}
        and (match_policy == DEFAULT_MATCH_POLICY or live.version in {_ANY, wanted.version})
        and _covers_resource(live.resource, wanted.resource)
    )


def _covers_resource(live: str, wanted: str) -> bool:
    plural, _, subresource = wanted.partition("/")
    of, _, part = live.partition("/")
    return of in {_ANY, plural} and (part == subresource or (part == _ANY and bool(subresource)) or live == "*/*")


_KEEPER = "the leader repairs it within a minute; if it does not, see its log (kubectl logs)"
_PUBLISH = f"{_KEEPER}; with certificates of your own, add their CA to every caBundle"


def bundle_drift(configurations: Iterable[Object], bundle: bytes, now: dt.datetime) -> Iterator[Drift]:
    """Yield the problems of each entry's `caBundle`.

    Args:
        configurations: the configurations of the webhook.
        bundle: the CAs that each `caBundle` should contain, PEM; empty if unknown.
        now: the time, with its time zone.
    """
    wanted = {fingerprint(certificate): certificate for certificate in split(bundle)}
    places: dict[frozenset[str], str] = {}
    for configuration in configurations:
        for entry in configuration.get("webhooks") or ():
            location = where(configuration, entry)
            actual = {fingerprint(certificate): certificate for certificate in split(decoded(entry))}
            yield from _wrong(location, actual, wanted, now)
            if actual:
                places.setdefault(frozenset(actual), location)
    if not wanted and len(places) > 1:
        _, *others = places.values()
        text = f"trusts other CAs than {next(iter(places.values()))}"
        yield from (Drift(Reason.BUNDLES_DIFFER, location, text, _PUBLISH) for location in others)


def decoded(entry: Object) -> bytes:
    """Return the `caBundle` of an entry; empty if it is missing or invalid."""
    try:
        return base64.b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return b""


def _wrong(location: str, actual: dict[str, bytes], wanted: dict[str, bytes], now: dt.datetime) -> Iterator[Drift]:
    if not actual:
        text = "caBundle contains no certificate: the API server cannot verify the webhook"
        yield Drift(Reason.BUNDLE_EMPTY, location, text, _PUBLISH)
        return
    if all(validity(certificate)[1] <= now for certificate in actual.values()):
        last = max(validity(certificate)[1] for certificate in actual.values())
        text = f"every CA in caBundle has expired, the last on {last:%Y-%m-%d %H:%M} UTC"
        yield Drift(Reason.BUNDLE_EXPIRED, location, text, _PUBLISH)
    if not wanted:
        return
    missing_cas = [pem for key, pem in wanted.items() if key not in actual and validity(pem)[1] > now]
    if missing_cas:
        text = f"caBundle does not contain {_named(missing_cas)}: certificates that it signed are not trusted"
        yield Drift(Reason.BUNDLE_INCOMPLETE, location, text, _PUBLISH)
    foreign = [pem for key, pem in actual.items() if key not in wanted]
    if foreign:
        text = f"caBundle contains {_named(foreign)}, which is not of gpugate: the owner of its key can impersonate the webhook"
        yield Drift(Reason.BUNDLE_FOREIGN, location, text, _PUBLISH)


def _named(certificates: list[bytes]) -> str:
    names = [
        f"the CA {common_name(pem) or 'without a name'!r} (SHA-256 {fingerprint(pem)[:12]})" for pem in certificates
    ]
    return " and ".join(names)


# Requests that a cluster needs while a webhook restarts: node registration and heartbeats, leader election, endpoints, and
# the reviews of the API server itself.
NEEDED_TO_HEAL: Final = frozenset(
    {
        ("", "nodes"),
        ("", "nodes/status"),
        ("", "events"),
        ("", "endpoints"),
        ("", "secrets"),
        ("", "configmaps"),
        ("", "serviceaccounts"),
        ("", "pods/binding"),
        ("", "pods/status"),
        ("apps", "daemonsets/status"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("coordination.k8s.io", "leases"),
        ("discovery.k8s.io", "endpointslices"),
        ("events.k8s.io", "events"),
    }
)


def too_much(location: str, live: Iterable[Sent], evaluated: Sequence[Sent], match_policy: str) -> Iterator[Drift]:
    """Yield the requests that an entry selects and no policy evaluates."""
    exact = set(evaluated)
    extra = [
        sent_rule
        for sent_rule in live
        if sent_rule not in exact and not any(_within(sent_rule, other, match_policy) for other in evaluated)
    ]
    for name, group in groupby(
        sorted(extra, key=lambda sent_rule: sent_rule.name), key=lambda sent_rule: sent_rule.name
    ):
        several = list(group)
        operations = " and ".join(sorted({sent_rule.operation for sent_rule in several}))
        requests = f"{'every operation' if operations == '*' else operations} of {_read(name)}"
        if any(_needed(sent_rule) for sent_rule in several):
            text = f"{requests} is sent to the webhook, and a cluster needs these requests to recover while the webhook is unavailable"
            yield Drift(Reason.TOO_WIDE, location, text, APPLY_AGAIN)
        else:
            yield Drift(Reason.NOT_EVALUATED, location, f"{requests} is sent, but no policy evaluates it", APPLY_AGAIN)


def _within(live: Sent, evaluated: Sent, match_policy: str) -> bool:
    """Return whether a live rule selects only requests that the other evaluates."""
    return covers(evaluated._replace(scope="*"), live, match_policy)


def _needed(live: Sent) -> bool:
    return any(
        covers(live._replace(scope="*"), live._replace(group=group, resource=resource, scope="*"), DEFAULT_MATCH_POLICY)
        for group, resource in NEEDED_TO_HEAL
    )


def _read(name: str) -> str:
    return "all resources" if name in {"*", "*.*", "*/*", "*.*/*"} else name


# The API server sets this label on every namespace, and it is immutable.
_NAME: Final = "kubernetes.io/metadata.name"


def selector_drift(location: str, live: Object, expected: Object) -> Iterator[Drift]:
    """Yield the differences of the namespaceSelector and the objectSelector."""
    for requirement in _requirements(live.get("objectSelector")):
        text = f"objectSelector requires {requirement}: the author of an object can skip its evaluation with labels"
        yield Drift(Reason.OBJECT_SELECTOR, location, text, APPLY_AGAIN)
    yield from _namespaces(location, live, expected)


def _namespaces(location: str, live: Object, expected: Object) -> Iterator[Drift]:
    excluded, others = _split(live.get("namespaceSelector"))
    meant, asked_for = _split(expected.get("namespaceSelector"))
    for requirement in [other for other in others if other not in asked_for]:
        text = f"namespaceSelector requires {requirement}: objects in other namespaces are not evaluated"
        yield Drift(Reason.NAMESPACE_SELECTOR, location, text, APPLY_AGAIN)
    if excluded - meant:
        text = f"namespaceSelector excludes {_listed(excluded - meant)}, which the policy file does not"
        yield Drift(Reason.NAMESPACE_SELECTOR, location, text, f"{APPLY_AGAIN}; or add them to excluded_namespaces")
    if asked_for and not others:
        text = f"namespaceSelector does not require {', '.join(asked_for)}"
        yield Drift(Reason.NOT_EXCLUDED, location, text, APPLY_AGAIN)
    if meant - excluded:
        text = f"namespaceSelector does not exclude {_listed(meant - excluded)}"
        if (live.get("failurePolicy") or "Fail") == "Fail":
            text += ": while the webhook is unavailable, requests that the cluster needs to recover may be denied there"
        yield Drift(Reason.NOT_EXCLUDED, location, text, APPLY_AGAIN)


def _split(selector: Object | None) -> tuple[set[str], list[str]]:
    """Return the namespaces that a selector excludes by name, and its other requirements."""
    excluded: set[str] = set()
    others = [f"{key}={value}" for key, value in ((selector or {}).get("matchLabels") or {}).items()]
    for expression in (selector or {}).get("matchExpressions") or ():
        if expression["key"] == _NAME and expression["operator"] == "NotIn":
            excluded.update(expression.get("values") or ())
        else:
            others.append(_written(expression))
    return excluded, others


def _requirements(selector: Object | None) -> list[str]:
    labels = (selector or {}).get("matchLabels") or {}
    expressions = (selector or {}).get("matchExpressions") or ()
    return [*(f"{key}={value}" for key, value in labels.items()), *map(_written, expressions)]


def _written(requirement: Object) -> str:
    values = requirement.get("values")
    return f"{requirement['key']} {requirement['operator']}{f' {_listed(set(values))}' if values else ''}"


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


# Most clients do not wait longer for a request.
_LONGEST_TIMEOUT_SECONDS: Final = 10
# Defaults of the API server (`k8s.io/kubernetes` pkg/apis/admissionregistration/v1/defaults.go, v1.36).
_DEFAULT_TIMEOUT_SECONDS: Final = 10
_DEFAULT_FAILURE_POLICY: Final = "Fail"
_DEFAULT_REINVOCATION: Final = "Never"


def escapes(location: str, live: Object, expected: Object, policies: Collection[str]) -> Iterator[Drift]:
    """Yield why a live entry sends fewer or more requests than the expected entry.

    `policies` are the allowed failure policies.
    """
    yield from _conditions(location, live, expected)
    yield from selector_drift(location, live, expected)
    yield from _failure_policy(location, live, policies)


def conduct(location: str, live: Object, configuration: Object) -> Iterator[Drift]:
    """Yield the problems of an entry that do not depend on its rules."""
    if live.get("sideEffects") != "None":
        message = f"sideEffects is {live.get('sideEffects')}: the API server may reject dry runs"
        yield Drift(Reason.SIDE_EFFECTS, location, message, APPLY_AGAIN)
    if "v1" not in (live.get("admissionReviewVersions") or ()):
        message = f"admissionReviewVersions is {live.get('admissionReviewVersions')}: the webhook supports only v1"
        yield Drift(Reason.REVIEW_VERSIONS, location, message, APPLY_AGAIN)
    if (live.get("matchPolicy") or DEFAULT_MATCH_POLICY) != DEFAULT_MATCH_POLICY:
        message = "matchPolicy is Exact: requests in other versions of the same resource are not evaluated"
        yield Drift(Reason.MATCH_POLICY, location, message, APPLY_AGAIN)
    timeout = live.get("timeoutSeconds", _DEFAULT_TIMEOUT_SECONDS)
    if timeout > _LONGEST_TIMEOUT_SECONDS:
        message = f"timeoutSeconds is {timeout}: each request waits so long while the webhook is unavailable"
        yield Drift(Reason.TIMEOUT, location, message, f"set timeoutSeconds to {_LONGEST_TIMEOUT_SECONDS} or less")
    if configuration["kind"].startswith("Mutating") and _reinvocation(live) != "IfNeeded":
        message = f"reinvocationPolicy is {_reinvocation(live)}: changes of later webhooks are not mutated again"
        yield Drift(Reason.REINVOCATION, location, message, APPLY_AGAIN)
    if configuration["webhooks"]:
        yield from _address(location, live["clientConfig"], configuration["webhooks"][0]["clientConfig"])


def _conditions(location: str, live: Object, expected: Object) -> Iterator[Drift]:
    wanted, actual = _expressions(expected), _expressions(live)
    for expression, name in actual.items():
        if expression not in wanted:
            text = f"the match condition {name} was added or changed: objects for which it is false are not evaluated"
            yield Drift(Reason.MATCH_CONDITIONS, location, text, APPLY_AGAIN)
    for expression, name in wanted.items():
        if expression not in actual and name not in actual.values():
            text = f"the match condition {name} is missing: objects are sent that no policy evaluates"
            yield Drift(Reason.UNCONDITIONAL, location, text, APPLY_AGAIN)


def _expressions(entry: Object) -> dict[str, str]:
    """Return expression -> name; white space is normalized, because YAML folds it and CEL ignores it."""
    return {
        " ".join(condition["expression"].split()): condition["name"] for condition in entry.get("matchConditions") or ()
    }


def _failure_policy(location: str, live: Object, wanted: Collection[str]) -> Iterator[Drift]:
    actual = live.get("failurePolicy") or _DEFAULT_FAILURE_POLICY
    if actual in wanted:
        return
    if actual == "Fail":
        text = "failurePolicy is Fail (expected: Ignore): requests are denied while the webhook is unavailable"
        yield Drift(Reason.FAILURE_POLICY, location, text, "set failurePolicy: Ignore")
    else:
        text = "failurePolicy is Ignore (expected: Fail): nothing is evaluated while the webhook is unavailable"
        yield Drift(Reason.FAILURE_POLICY, location, text, "set failurePolicy: Fail")


def _address(location: str, live: Object, expected: Object) -> Iterator[Drift]:
    path, wanted_path = _path(live), _path(expected)
    if path != wanted_path:
        text = f"requests are sent to the path {path} (expected: {wanted_path})"
        yield Drift(Reason.PATH, location, text, APPLY_AGAIN)
    actual, wanted = _host(live), _host(expected)
    if actual != wanted:
        yield Drift(Reason.ADDRESS, location, f"requests are sent to {actual} (expected: {wanted})", APPLY_AGAIN)


def _path(client: Object) -> str:
    if client.get("url"):
        return urlsplit(client["url"]).path or "/"
    return str((client.get("service") or {}).get("path") or "/")


def _host(client: Object) -> str:
    if client.get("url"):
        return f"https://{urlsplit(client['url']).netloc}"
    service: dict[str, Any] = client.get("service") or {}
    return f"Service {service.get('namespace')}/{service.get('name')} port {service.get('port', 443)}"


def _reinvocation(entry: Object) -> str:
    return str(entry.get("reinvocationPolicy") or _DEFAULT_REINVOCATION)


_OURS: Final = ".gpugate.dev"


def missing(kind: str, name: str) -> Drift:
    """Return that a configuration does not exist."""
    return Drift(
        Reason.MISSING,
        f"{kind} {name}",
        "the configuration does not exist: no request is evaluated",
        "install the chart again, or apply the output of `gpugate registration`",
    )


def turned_off(configuration: Object) -> Drift:
    """Return who disabled a configuration, when and why."""
    note = break_glass.note(configuration)
    parts = (f"by {note.by}" * bool(note.by), f"on {note.at}" * bool(note.at), f"({note.reason})" * bool(note.reason))
    who = " ".join(word for word in parts if word)
    text = (
        f"{len(break_glass.off(configuration))} entries were disabled{f' {who}' if who else ''}: nothing is evaluated"
    )
    return Drift(Reason.DISABLED, where(configuration), text, "gpugate webhook enable")


def second_installations(others: Iterable[Object]) -> Iterator[Drift]:
    """Yield the configurations of other installations of gpugate."""
    for configuration in others:
        if _is_ours(configuration):
            kind, name = configuration["kind"], configuration["metadata"]["name"]
            text = "belongs to another installation of gpugate: objects are evaluated twice, by the policies of both"
            yield Drift(Reason.SEVERAL, f"{kind} {name}", text, f"if it is a leftover: kubectl delete {kind} {name}")


def _is_ours(configuration: Object) -> bool:
    labels: Mapping[str, str] = configuration["metadata"].get("labels") or {}
    names = [entry["name"] for entry in configuration.get("webhooks") or ()]
    return labels.get("app.kubernetes.io/name") == "gpugate" or any(name.endswith(_OURS) for name in names)


_Policies: TypeAlias = "Mapping[str, set[str]]"

# The resource of a probe; no policy evaluates it.
_PROBE: Final = "configmaps"


def drift(  # noqa: PLR0913 -- what is compared, with what, and when
    ruleset: Ruleset,
    live: Sequence[Object],
    server: Server,
    bundle: bytes,
    *,
    now: dt.datetime,
    name: str = "gpugate",
    meant: Meant | None = None,
    knows_own: bool = True,
) -> Sequence[Drift]:
    """Return every relevant difference; empty if the configurations are as expected.

    Args:
        ruleset: the ruleset in use.
        live: webhook configurations of both kinds from the API server, each with its `kind`; those with other names are
            only searched for a second installation.
        server: the address of the webhook; its `ca_bundle` is ignored.
        bundle: the CAs that every `caBundle` should contain, PEM; empty if unknown.
        now: the time, with its time zone.
        name: the name of both configurations.
        meant: the options with which the configurations were generated.
        knows_own: whether the ruleset has the policies outside the library that the webhook uses.
    """
    own = {configuration["kind"]: configuration for configuration in live if configuration["metadata"]["name"] == name}
    users = meant or Meant()
    if not knows_own:
        own = {kind: _without_own(configuration) for kind, configuration in own.items()}
    # The Helm chart installs entries for every policy file, `gpugate registration` those for one policy file.
    whole = _from_expected(whole_catalogue(ruleset.config), own, server, users, name, added(ruleset))
    differences, unsent = min(
        (_from_expected(ruleset, own, server, users, name), whole), key=lambda drifts: len(drifts[0])
    )
    differences += unsent
    differences += bundle_drift(own.values(), bundle, now)
    differences += second_installations(
        configuration for configuration in live if configuration["metadata"]["name"] != name
    )
    return tuple(dict.fromkeys(differences))


def _with_own_remedy(difference: Drift) -> Drift:
    is_own = difference.where.endswith(tuple(ENTRY_NAMES))
    return replace(difference, remedy=REGISTER_OWN) if is_own and difference.remedy == APPLY_AGAIN else difference


def _without_own(configuration: Object) -> Object:
    entries = [entry for entry in configuration.get("webhooks") or () if entry["name"] not in ENTRY_NAMES]
    return {**configuration, "webhooks": entries}


def _from_expected(
    ruleset: Ruleset,
    live: Mapping[str, Object],
    server: Server,
    meant: Meant,
    name: str,
    own: Mapping[Phase, Added] | None = None,
) -> tuple[list[Drift], list[Drift]]:
    """Return the differences, and apart from these the requests of policies outside the library that are not sent."""
    differences: list[Drift] = []
    unsent: list[Drift] = []
    for expected, policies in _expected(ruleset, server, meant, own):
        if expected["kind"] not in live:
            differences.append(missing(expected["kind"], name))
            continue
        configuration = live[expected["kind"]]
        names = {entry["name"] for entry in configuration.get("webhooks") or () if entry.get("rules")}
        unregistered = [
            entry for entry in expected["webhooks"] if entry["name"] in ENTRY_NAMES and entry["name"] not in names
        ]
        others = [entry for entry in expected["webhooks"] if entry not in unregistered]
        differences += map(_with_own_remedy, _compared({**expected, "webhooks": others}, configuration, policies))
        if not break_glass.off(configuration):
            requests = [request for entry in unregistered for request in sent(entry)]
            unsent += _not_sent(configuration, requests, _OWN_NOT_SENT, REGISTER_OWN)
    return differences, unsent


def _expected(
    ruleset: Ruleset, server: Server, meant: Meant, own: Mapping[Phase, Added] | None
) -> Iterator[tuple[Object, _Policies]]:
    """Yield each expected configuration, with the allowed failure policies of its entries."""

    def generated(*failing: Collection[RiskGroup]) -> tuple[Object, Object]:
        fail, fail_mutating = failing
        users = meant.of_karpenter
        pair = webhook_configurations(
            ruleset, server, fail=fail, fail_mutating=fail_mutating, karpenter_users=users, own=own
        )
        return meant.narrowed(pair[0]), meant.narrowed(pair[1])

    every = tuple(RiskGroup)
    # An entry with Ignore here can neither deny nor mutate.
    strict = generated(every, every)
    known = (meant.fail_mutating, meant.fail)
    chosen = strict if known == (None, None) else generated(meant.fail or (), meant.fail_mutating or ())
    for strictest, other, groups in zip(strict, chosen, known, strict=True):
        either = {entry["name"]: {entry["failurePolicy"], "Ignore"} for entry in strictest["webhooks"]}
        named = {entry["name"]: {entry["failurePolicy"]} for entry in other["webhooks"]}
        yield strictest, either if groups is None else named


def _compared(expected: Object, live: Object, policies: _Policies) -> Iterator[Drift]:
    if break_glass.off(live):
        yield turned_off(live)
    senders = [_Sender.of(entry) for entry in break_glass.enabled(live).get("webhooks") or ()]
    unsent: list[Sent] = []
    for wanted_entry in expected["webhooks"]:
        name = wanted_entry["name"]
        is_there = any(sender.name == name for sender in senders)
        escaping = {
            sender.name: tuple(escapes(where(live, sender.entry), sender.entry, wanted_entry, policies[name]))
            for sender in senders
        }
        for wanted in sent(wanted_entry):
            by = [sender.name for sender in senders if sender.sends(wanted)]
            # If several entries send a request, one without differences is enough. Otherwise the entry of the same name is
            # compared, because two entries for one resource differ only in their conditions.
            best = min(
                by, key=lambda sender: (bool(escaping[sender]), sender != name, len(escaping[sender])), default=None
            )
            if best is None or (escaping[best] and is_there and name not in by):
                unsent.append(wanted)
            else:
                yield from escaping[best]
    yield from _not_sent(live, unsent)
    evaluated = [request for entry in expected["webhooks"] for request in sent(entry)]
    for live_sender in senders:
        location = where(live, live_sender.entry)
        yield from conduct(location, live_sender.entry, expected)
        yield from too_much(location, live_sender.rules, evaluated, live_sender.match_policy)


class _Sender(NamedTuple):
    entry: Object
    name: str
    rules: tuple[Sent, ...]
    match_policy: str

    @classmethod
    def of(cls, entry: Object) -> _Sender:
        return cls(entry, entry["name"], tuple(sent(entry)), entry.get("matchPolicy") or DEFAULT_MATCH_POLICY)

    def sends(self, wanted: Sent) -> bool:
        # The first test is fast, and succeeds for generated entries.
        return wanted in self.rules or any(covers(rule, wanted, self.match_policy) for rule in self.rules)


_NOT_SENT: Final = "policies evaluate {} of {}, but no entry sends it"
_OWN_NOT_SENT: Final = "policies outside the library evaluate {} of {}, but entries send only what concerns the library"


def _not_sent(
    live: Object, unsent: Sequence[Sent], message: str = _NOT_SENT, remedy: str = APPLY_AGAIN
) -> Iterator[Drift]:
    for name, group in groupby(sorted(unsent, key=lambda request: request.name), key=lambda request: request.name):
        operations = " and ".join(sorted({request.operation for request in group}))
        text = message.format(operations, name)
        if name == _PROBE and message == _NOT_SENT:
            text = (
                "no entry sends probes: `gpugate webhook wait` cannot test whether the API server reaches the webhook"
            )
            yield Drift(Reason.NOT_PROBED, where(live), text, remedy)
        else:
            yield Drift(Reason.NOT_SENT, where(live), text, remedy)
