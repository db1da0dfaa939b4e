"""Both webhook configurations: the entries of the whole catalogue, so that no policy file needs others.

An entry that is turned off stays, without rules: whoever has set its `caBundle` by server-side apply holds on to it, and an
entry that Helm takes away would be left behind without the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk.concerns import Listed
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.generate import probe
from gpugate.webhook.generate.chart.names import (
    EXCLUDED_NAMESPACES,
    FULL_NAME,
    IS_CERT_MANAGER,
    IS_PROVIDED,
    NAMESPACE,
    metadata,
    own,
)
from gpugate.webhook.generate.chart.terms import If, Node, Value, call, no, text
from gpugate.webhook.generate.entries import entries, whole_catalogue
from gpugate.webhook.generate.match_conditions import NOT_OF_KARPENTER
from gpugate.webhook.generate.registration import COMMON, NAMESPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.generate.entries import Entry, Phase

# Names that stand for those that a platform adds, which are known when the chart is rendered.
_STAND_INS: Final = {"<taints>": Listed.GPU_TAINTS, "<resources>": Listed.ACCELERATOR_RESOURCES}
_OWN: Final = rf"'\^\(\?s: \|(?:{'|'.join(_STAND_INS)})\)\$'"
# How `cel.py` writes them, and under a negation.
_STAND_IN: Final = re.compile(
    rf"( \|\| size\({_OWN}\) > \d+ \|\| \w+\.matches\({_OWN}\)"
    rf"| \|\| \(size\({_OWN}\) <= \d+ && \(\w+\.matches\({_OWN}\)\)\))"
)


def configuration(phase: Phase) -> Node:
    """Return the webhook configuration of a phase."""
    kind = "MutatingWebhookConfiguration" if phase == "mutate" else "ValidatingWebhookConfiguration"
    taints, resources = _STAND_INS
    platform = Platform(taints={"*": (Taint(key=taints),)}, accelerators=Accelerators(resources=(resources,)))
    reached = _reached(phase)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            **metadata(namespaced=False),
            "annotations": call("mergeOverwrite", {}, Value("webhooks.annotations"), _injected()),
        },
        "webhooks": [
            *(
                _entry(each, phase, reached)
                for each in entries(whole_catalogue(PolicyConfig(platform=platform)), phase)
            ),
            {**_probe(phase), **reached},
        ],
    }


def _entry(entry: Entry, phase: Phase, reached: dict[str, Node]) -> Node:
    group = f"webhooks.{entry.group.value}"
    key = "mutatingFailurePolicy" if phase == "mutate" else "failurePolicy"
    return {
        "name": entry.name,
        "rules": If(Value(f"{group}.enabled"), list(entry.rules), []),
        "failurePolicy": Value(f"{group}.{key}") if entry.may_wait else "Ignore",
        "matchConditions": [*_exempt(entry), *(_condition(each) for each in entry.conditions)],
        "namespaceSelector": _namespaces(),
        **reached,
    }


def _exempt(entry: Entry) -> Iterator[Node]:
    if entry.group.written_by_karpenter:
        users = Value("webhooks.karpenterUsers")
        expression = text("!(request.userInfo.username in ['", call("join", "', '", users), "'])")
        yield If(users, {"name": NOT_OF_KARPENTER, "expression": expression})


def _condition(condition: dict[str, str]) -> Node:
    """Return a condition in which the platform's own names have their place."""
    first, *others = _STAND_IN.split(condition["expression"])
    parts: list[Node] = [first]
    for written, following in zip(others[::2], others[1::2], strict=True):
        stand_in = next(each for each in _STAND_INS if each in written)
        names = own(_STAND_INS[stand_in])
        before, between, after = written.split(f"|{stand_in}")
        parts += [If(names, text(before, names, between, names, after), ""), following]
    return {"name": condition["name"], "expression": text(*parts) if others else first}


def _reached(phase: Phase) -> dict[str, Node]:
    service: Node = {"namespace": NAMESPACE, "name": FULL_NAME, "path": f"/{phase}", "port": 443}
    common: dict[str, Any] = {**COMMON, **({"reinvocationPolicy": "IfNeeded"} if phase == "mutate" else {})}
    return {
        "clientConfig": {
            "url": If(Value("webhooks.url"), text(call("trimSuffix", "/", Value("webhooks.url")), f"/{phase}")),
            "service": If(no(Value("webhooks.url")), service),
            "caBundle": If(IS_PROVIDED, call("b64enc", Value("certificates.caBundle"))),
        },
        "timeoutSeconds": Value(f"webhooks.{phase}TimeoutSeconds"),
        **common,
    }


def _injected() -> Node:
    certificate = text(NAMESPACE, "/", FULL_NAME)
    return If(IS_CERT_MANAGER, {"cert-manager.io/inject-ca-from": certificate}, {})


def _namespaces() -> Node:
    excluded = call("append", EXCLUDED_NAMESPACES, NAMESPACE)
    names = call("sortAlpha", call("uniq", excluded))
    outside: Node = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": names}
    only = Value("webhooks.onlyNamespaces")
    return {"matchExpressions": [outside, If(only, {"key": NAMESPACE_NAME, "operator": "In", "values": only})]}


def _probe(phase: Phase) -> dict[str, Node]:
    made = probe.entry(phase, "")
    return {**made, "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: NAMESPACE}}}
