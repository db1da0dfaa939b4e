"""Compare the webhook configurations of a cluster with those generated for the policies in force.

What is compared is which requests are sent, by which entry and on which terms, not how entries are called or grouped.

Source: `k8s.io/apiserver` pkg/admission/plugin/webhook/predicates/rules/rules.go and `k8s.io/api` admissionregistration/v1
types.go, v0.36.
"""

from __future__ import annotations

import base64
import binascii
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from gpugate.certs.pki import common_name, fingerprint, split, validity
from gpugate.webhook.generate import break_glass
from gpugate.webhook.generate.drift_reasons import APPLY_AGAIN, Drift, Reason, where
from gpugate.webhook.generate.entries import RiskGroup, whole_catalogue
from gpugate.webhook.generate.meant import Meant
from gpugate.webhook.generate.registration import webhook_configurations

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.registration import Server

Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge

_ANY: Final = "*"
# What the API server fills in where nothing is written.
DEFAULT_MATCH_POLICY: Final = "Equivalent"


class Sent(NamedTuple):
    """A sort of request; each part may be `*`, `resource` as rules write it: `pods`, `pods/status`, `*/*`."""

    group: str
    version: str
    resource: str
    operation: str
    scope: str

    @property
    def name(self) -> str:
        """The resource with its group, as `kubectl api-resources` has it."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


def sent(entry: Object) -> Iterator[Sent]:
    """Yield what the rules of an entry send."""
    for rule in entry.get("rules") or ():
        scope = rule.get("scope") or _ANY
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for resource in rule.get("resources") or ():
                    for operation in rule.get("operations") or ():
                        yield Sent(group, version, resource, operation, scope)


def covers(live: Sent, wanted: Sent, match_policy: str) -> bool:
    """Tell whether a rule sends what is wanted.

    With `Equivalent` a rule for one version of a resource is sent requests in every other, converted.
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


_KEEPER = "the leading replica mends it within a minute: if it does not, see its log (kubectl logs)"
_PUBLISH = f"{_KEEPER}; with certificates of your own, write their authority into every caBundle"


def bundle_drift(configurations: Iterable[Object], bundle: bytes, now: dt.datetime) -> Iterator[Drift]:
    """Yield what is wrong with the `caBundle` of every entry.

    Args:
        configurations: those of the webhook.
        bundle: the authorities that each should hold, PEM; empty where they are not known.
        now: the time, with its zone.
    """
    wanted = {fingerprint(each): each for each in split(bundle)}
    held: dict[frozenset[str], str] = {}
    for configuration in configurations:
        for entry in configuration.get("webhooks") or ():
            place = where(configuration, entry)
            found = {fingerprint(each): each for each in split(decoded(entry))}
            yield from _wrong(place, found, wanted, now)
            if found:
                held.setdefault(frozenset(found), place)
    if not wanted and len(held) > 1:
        _, *rest = held.values()
        text = f"trusts other authorities than {next(iter(held.values()))}"
        yield from (Drift(Reason.BUNDLES_DIFFER, each, text, _PUBLISH) for each in rest)


def decoded(entry: Object) -> bytes:
    """Return the `caBundle` of an entry, empty where it has none that can be read."""
    try:
        return base64.b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return b""


def _wrong(place: str, found: dict[str, bytes], wanted: dict[str, bytes], now: dt.datetime) -> Iterator[Drift]:
    if not found:
        text = "caBundle holds no certificate: the API server trusts no answer of the webhook"
        yield Drift(Reason.BUNDLE_EMPTY, place, text, _PUBLISH)
        return
    if all(validity(each)[1] <= now for each in found.values()):
        last = max(validity(each)[1] for each in found.values())
        text = f"every authority in caBundle expired, the last on {last:%Y-%m-%d %H:%M} UTC"
        yield Drift(Reason.BUNDLE_EXPIRED, place, text, _PUBLISH)
    if not wanted:
        return
    lacking = [pem for key, pem in wanted.items() if key not in found and validity(pem)[1] > now]
    if lacking:
        text = f"caBundle lacks {_named(lacking)}: what is signed by it is not trusted"
        yield Drift(Reason.BUNDLE_INCOMPLETE, place, text, _PUBLISH)
    foreign = [pem for key, pem in found.items() if key not in wanted]
    if foreign:
        text = f"caBundle holds {_named(foreign)}, which is not ours: who has its key can answer in our place"
        yield Drift(Reason.BUNDLE_FOREIGN, place, text, _PUBLISH)


def _named(certificates: list[bytes]) -> str:
    names = [
        f"the authority {common_name(pem) or 'without a name'!r} (SHA-256 {fingerprint(pem)[:12]})"
        for pem in certificates
    ]
    return " and ".join(names)


# What a cluster cannot be without for the seconds that a webhook takes to come back: how nodes join and stay, how
# leaders are elected, how Pods are reached, and the API server's own questions.
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


def too_much(place: str, live: Iterable[Sent], judged: Sequence[Sent], match_policy: str) -> Iterator[Drift]:
    """Yield the requests that the rules of an entry send and no rule of ours judges."""
    exact = set(judged)
    extra = [each for each in live if each not in exact and not any(_within(each, one, match_policy) for one in judged)]
    for name, group in groupby(sorted(extra, key=lambda each: each.name), key=lambda each: each.name):
        several = list(group)
        operations = " and ".join(sorted({each.operation for each in several}))
        what = f"{'every operation' if operations == '*' else operations} of {_read(name)}"
        if any(_needed(each) for each in several):
            text = f"{what} is sent, which a cluster needs in order to heal while nobody answers"
            yield Drift(Reason.TOO_WIDE, place, text, APPLY_AGAIN)
        else:
            yield Drift(Reason.NOT_JUDGED, place, f"{what} is sent, but no rule judges it", APPLY_AGAIN)


def _within(live: Sent, judged: Sent, match_policy: str) -> bool:
    """Tell whether a rule sends no more than what is judged: the other way round than it is covered."""
    return covers(judged._replace(scope="*"), live, match_policy)


def _needed(live: Sent) -> bool:
    return any(
        covers(live._replace(scope="*"), live._replace(group=group, resource=resource, scope="*"), DEFAULT_MATCH_POLICY)
        for group, resource in NEEDED_TO_HEAL
    )


def _read(name: str) -> str:
    return "whatever there is" if name in {"*", "*.*", "*/*", "*.*/*"} else name


# The API server writes it on every namespace, and nobody can change it.
_NAME: Final = "kubernetes.io/metadata.name"


def selector_drift(place: str, live: Object, expected: Object) -> Iterator[Drift]:
    """Yield what a namespaceSelector and an objectSelector let through, or send, that is not meant."""
    for requirement in _requirements(live.get("objectSelector")):
        text = f"objectSelector asks for {requirement}: who writes an object chooses whether it is judged"
        yield Drift(Reason.OBJECT_SELECTOR, place, text, APPLY_AGAIN)
    yield from _namespaces(place, live, expected)


def _namespaces(place: str, live: Object, expected: Object) -> Iterator[Drift]:
    excluded, others = _split(live.get("namespaceSelector"))
    meant, asked_for = _split(expected.get("namespaceSelector"))
    for requirement in [each for each in others if each not in asked_for]:
        text = f"namespaceSelector asks for {requirement}: nothing is judged in namespaces without it"
        yield Drift(Reason.NAMESPACE_SELECTOR, place, text, APPLY_AGAIN)
    if excluded - meant:
        text = f"namespaceSelector leaves out {_listed(excluded - meant)}, which the policy file does not"
        yield Drift(Reason.NAMESPACE_SELECTOR, place, text, f"{APPLY_AGAIN}; or add it to excluded_namespaces")
    if asked_for and not others:
        text = f"namespaceSelector does not ask for {', '.join(asked_for)}"
        yield Drift(Reason.NOT_EXCLUDED, place, text, APPLY_AGAIN)
    if meant - excluded:
        text = f"namespaceSelector does not leave out {_listed(meant - excluded)}"
        if (live.get("failurePolicy") or "Fail") == "Fail":
            text += ", where what is refused while nobody answers may be what the cluster needs to heal"
        yield Drift(Reason.NOT_EXCLUDED, place, text, APPLY_AGAIN)


def _split(selector: Object | None) -> tuple[set[str], list[str]]:
    """Return the namespaces that a selector leaves out by their name, and whatever else it asks for."""
    excluded: set[str] = set()
    others = [f"{key}={value}" for key, value in ((selector or {}).get("matchLabels") or {}).items()]
    for each in (selector or {}).get("matchExpressions") or ():
        if each["key"] == _NAME and each["operator"] == "NotIn":
            excluded.update(each.get("values") or ())
        else:
            others.append(_written(each))
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


# Beyond it a request of a person, or of a controller, is held up for longer than most clients wait.
_LONGEST_TIMEOUT_SECONDS: Final = 10
# What the API server fills in (`k8s.io/kubernetes` pkg/apis/admissionregistration/v1/defaults.go, v1.36).
_DEFAULT_TIMEOUT_SECONDS: Final = 10
_DEFAULT_FAILURE_POLICY: Final = "Fail"
_DEFAULT_REINVOCATION: Final = "Never"


def escapes(place: str, live: Object, expected: Object, policies: Collection[str]) -> Iterator[Drift]:
    """Yield by what requests that `expected` sends get past `live`, or are sent without need.

    `policies` are the failure policies that it may have.
    """
    yield from _conditions(place, live, expected)
    yield from selector_drift(place, live, expected)
    yield from _failure_policy(place, live, policies)


def conduct(place: str, live: Object, configuration: Object) -> Iterator[Drift]:
    """Yield what is wrong with an entry, whatever it sends."""
    if live.get("sideEffects") != "None":
        found = f"sideEffects is {live.get('sideEffects')}: dry runs are refused, or not judged"
        yield Drift(Reason.SIDE_EFFECTS, place, found, APPLY_AGAIN)
    if "v1" not in (live.get("admissionReviewVersions") or ()):
        found = f"admissionReviewVersions is {live.get('admissionReviewVersions')}: only v1 is answered"
        yield Drift(Reason.REVIEW_VERSIONS, place, found, APPLY_AGAIN)
    if (live.get("matchPolicy") or DEFAULT_MATCH_POLICY) != DEFAULT_MATCH_POLICY:
        found = "matchPolicy is Exact: who writes another version of the same resource is not judged"
        yield Drift(Reason.MATCH_POLICY, place, found, APPLY_AGAIN)
    timeout = live.get("timeoutSeconds", _DEFAULT_TIMEOUT_SECONDS)
    if timeout > _LONGEST_TIMEOUT_SECONDS:
        found = f"timeoutSeconds is {timeout}: each request waits for so long while nobody answers"
        yield Drift(Reason.TIMEOUT, place, found, f"set {_LONGEST_TIMEOUT_SECONDS} or less; 5 is generated")
    if configuration["kind"].startswith("Mutating") and _reinvocation(live) != "IfNeeded":
        found = f"reinvocationPolicy is {_reinvocation(live)}: what a later webhook changes is not mutated again"
        yield Drift(Reason.REINVOCATION, place, found, APPLY_AGAIN)
    if configuration["webhooks"]:
        yield from _address(place, live["clientConfig"], configuration["webhooks"][0]["clientConfig"])


def _conditions(place: str, live: Object, expected: Object) -> Iterator[Drift]:
    wanted, found = _expressions(expected), _expressions(live)
    for expression, name in found.items():
        if expression not in wanted:
            text = (
                f"the match condition {name} is not ours, or was changed: objects for which it is false are not judged"
            )
            yield Drift(Reason.MATCH_CONDITIONS, place, text, APPLY_AGAIN)
    for expression, name in wanted.items():
        if expression not in found and name not in found.values():
            text = f"the match condition {name} is gone: objects are sent that can interest no policy"
            yield Drift(Reason.UNCONDITIONAL, place, text, APPLY_AGAIN)


def _expressions(entry: Object) -> dict[str, str]:
    """Return expression -> name; space between words means nothing in CEL, and YAML folds it."""
    return {" ".join(each["expression"].split()): each["name"] for each in entry.get("matchConditions") or ()}


def _failure_policy(place: str, live: Object, wanted: Collection[str]) -> Iterator[Drift]:
    found = live.get("failurePolicy") or _DEFAULT_FAILURE_POLICY
    if found in wanted:
        return
    if found == "Fail":
        text = "failurePolicy is Fail, Ignore was meant: requests are refused while nobody answers"
        yield Drift(Reason.FAILURE_POLICY, place, text, "set failurePolicy: Ignore")
    else:
        text = "failurePolicy is Ignore, Fail was meant: nothing is judged while nobody answers"
        yield Drift(Reason.FAILURE_POLICY, place, text, "set failurePolicy: Fail")


def _address(place: str, live: Object, expected: Object) -> Iterator[Drift]:
    path, wanted_path = _path(live), _path(expected)
    if path != wanted_path:
        text = f"requests go to the path {path}; this configuration's is {wanted_path}"
        yield Drift(Reason.PATH, place, text, APPLY_AGAIN)
    found, wanted = _host(live), _host(expected)
    if found != wanted:
        yield Drift(Reason.ADDRESS, place, f"requests go to {found}, not to {wanted}", APPLY_AGAIN)


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
    """Say that a configuration is not there."""
    return Drift(
        Reason.MISSING,
        f"{kind} {name}",
        "there is no such configuration, so nothing is sent to be judged",
        "install the chart again, or apply what `gpugate registration` prints",
    )


def turned_off(configuration: Object) -> Drift:
    """Say who turned a configuration off, when and why."""
    note = break_glass.note(configuration)
    said = (f"by {note.by}" * bool(note.by), f"on {note.at}" * bool(note.at), f"({note.reason})" * bool(note.reason))
    who = " ".join(word for word in said if word)
    text = f"{len(break_glass.off(configuration))} entries were turned off{f' {who}' if who else ''}: nothing is judged"
    return Drift(Reason.DISABLED, where(configuration), text, "gpugate webhook enable")


def second_installations(others: Iterable[Object]) -> Iterator[Drift]:
    """Yield those of other configurations that are of a gpugate."""
    for each in others:
        if _is_ours(each):
            kind, name = each["kind"], each["metadata"]["name"]
            text = "belongs to another gpugate: objects are judged twice, by the rules of both"
            yield Drift(Reason.SEVERAL, f"{kind} {name}", text, f"if it is a leftover: kubectl delete {kind} {name}")


def _is_ours(configuration: Object) -> bool:
    labels: Mapping[str, str] = configuration["metadata"].get("labels") or {}
    names = [each["name"] for each in configuration.get("webhooks") or ()]
    return labels.get("app.kubernetes.io/name") == "gpugate" or any(each.endswith(_OURS) for each in names)


_Policies: TypeAlias = "Mapping[str, set[str]]"

# What a probe asks about; no policy judges it.
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
) -> Sequence[Drift]:
    """Return every difference that matters; none where requests go where they should.

    Args:
        ruleset: the rules in force.
        live: webhook configurations of both kinds as the API server returns them, each with its `kind`; those of
            other names are looked at for a second installation only.
        server: where the webhook answers; its `ca_bundle` is not looked at.
        bundle: the authorities that every `caBundle` should hold, PEM; empty where they are not known.
        now: the time, with its zone.
        name: what both configurations are called.
        meant: what was chosen.
    """
    own = {each["kind"]: each for each in live if each["metadata"]["name"] == name}
    # The Helm chart installs what is right for every policy file, `gpugate registration` what is right for one.
    every = (ruleset, whole_catalogue(ruleset.config))
    found = min((_from_expected(rules, own, server, meant or Meant(), name) for rules in every), key=len)
    found += bundle_drift(own.values(), bundle, now)
    found += second_installations(each for each in live if each["metadata"]["name"] != name)
    return tuple(dict.fromkeys(found))


def _from_expected(ruleset: Ruleset, own: Mapping[str, Object], server: Server, meant: Meant, name: str) -> list[Drift]:
    found: list[Drift] = []
    for expected, policies in _expected(ruleset, server, meant):
        if expected["kind"] in own:
            found += _compared(expected, own[expected["kind"]], policies)
        else:
            found.append(missing(expected["kind"], name))
    return found


def _expected(ruleset: Ruleset, server: Server, meant: Meant) -> Iterator[tuple[Object, _Policies]]:
    """Yield each configuration, and which failure policies its entries may have."""

    def generated(*failing: Collection[RiskGroup]) -> tuple[Object, Object]:
        fail, fail_mutating = failing
        users = meant.of_karpenter
        made = webhook_configurations(ruleset, server, fail=fail, fail_mutating=fail_mutating, karpenter_users=users)
        return meant.narrowed(made[0]), meant.narrowed(made[1])

    every = tuple(RiskGroup)
    # Where this one says Ignore, nothing can be refused or changed.
    strict = generated(every, every)
    known = (meant.fail_mutating, meant.fail)
    chosen = strict if known == (None, None) else generated(meant.fail or (), meant.fail_mutating or ())
    for one, other, groups in zip(strict, chosen, known, strict=True):
        either = {each["name"]: {each["failurePolicy"], "Ignore"} for each in one["webhooks"]}
        named = {each["name"]: {each["failurePolicy"]} for each in other["webhooks"]}
        yield one, either if groups is None else named


def _compared(expected: Object, live: Object, policies: _Policies) -> Iterator[Drift]:
    if break_glass.off(live):
        yield turned_off(live)
    senders = [_Sender.of(each) for each in break_glass.enabled(live).get("webhooks") or ()]
    unsent: list[Sent] = []
    for wanted_entry in expected["webhooks"]:
        name = wanted_entry["name"]
        is_there = any(each.name == name for each in senders)
        escaping = {
            each.name: tuple(escapes(where(live, each.entry), each.entry, wanted_entry, policies[name]))
            for each in senders
        }
        for wanted in sent(wanted_entry):
            by = [each.name for each in senders if each.sends(wanted)]
            # Where several send it, it is evaluated if one of them lets nothing escape. Else the entry of the same name is
            # compared: two entries for one resource differ in their conditions alone.
            best = min(
                by, key=lambda sender: (bool(escaping[sender]), sender != name, len(escaping[sender])), default=None
            )
            if best is None or (escaping[best] and is_there and name not in by):
                unsent.append(wanted)
            else:
                yield from escaping[best]
    yield from _not_sent(live, unsent)
    judged = [each for entry in expected["webhooks"] for each in sent(entry)]
    for each in senders:
        place = where(live, each.entry)
        yield from conduct(place, each.entry, expected)
        yield from too_much(place, each.rules, judged, each.match_policy)


class _Sender(NamedTuple):
    entry: Object
    name: str
    rules: tuple[Sent, ...]
    match_policy: str

    @classmethod
    def of(cls, entry: Object) -> _Sender:
        return cls(entry, entry["name"], tuple(sent(entry)), entry.get("matchPolicy") or DEFAULT_MATCH_POLICY)

    def sends(self, wanted: Sent) -> bool:
        # All that is generated is found by the first, and it is what is there as a rule.
        return wanted in self.rules or any(covers(each, wanted, self.match_policy) for each in self.rules)


def _not_sent(live: Object, unsent: Sequence[Sent]) -> Iterator[Drift]:
    for name, group in groupby(sorted(unsent, key=lambda each: each.name), key=lambda each: each.name):
        operations = " and ".join(sorted({each.operation for each in group}))
        text = f"{operations} of {name} is judged, but no entry sends it"
        if name == _PROBE:
            text = "no entry sends probes, so nobody can see whether the API server reaches the webhook"
        yield Drift(Reason.NOT_PROBED if name == _PROBE else Reason.NOT_SENT, where(live), text, APPLY_AGAIN)
