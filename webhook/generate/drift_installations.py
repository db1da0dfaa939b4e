"""Webhook configurations that are not there, that somebody turned off, or that there are too many of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate import break_glass
from gpugate.webhook.generate.drift_reasons import Drift, Reason, where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.webhook.generate.coverage import Object

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
