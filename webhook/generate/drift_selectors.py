"""Which namespaces and objects a webhook entry of a cluster leaves out, beside those that are meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.drift_reasons import APPLY_AGAIN, Drift, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.generate.coverage import Object

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
