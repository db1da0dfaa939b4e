"""How one webhook entry of a cluster differs from the generated one whose requests it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from gpugate.webhook.generate.coverage import DEFAULT_MATCH_POLICY
from gpugate.webhook.generate.drift_reasons import APPLY_AGAIN, Drift, Reason
from gpugate.webhook.generate.drift_selectors import selector_drift

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gpugate.webhook.generate.coverage import Object

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
