"""Disable and enable webhook configurations without changing their other content.

Disabling adds a match condition to each entry that is always false. Conditions and entries are lists that are merged by name
(`k8s.io/api` admissionregistration/v1 types.go, v0.36: listType=map, patchMergeKey=name), so tools that apply the
configuration again (Helm 3 and 4, Argo CD, Flux, kubectl) change only their own conditions. An entry with a false condition
is not called (`k8s.io/apiserver` pkg/admission/plugin/webhook/matchconditions, v0.36). The entry for probes is not disabled,
so that the webhook can be tested before it is enabled again.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.webhook.registration.probe import entry_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Object: TypeAlias = dict[str, Any]  # Any: the JSON edge

CONDITION: Final = {"name": "disabled-by-gpugate", "expression": "false"}
_PROBES: Final = frozenset({entry_name("mutate"), entry_name("validate")})
_BY, _AT, _REASON = (f"gpugate.dev/disabled-{detail}" for detail in ("by", "at", "reason"))


@dataclass(frozen=True, slots=True)
class Note:
    """Who disabled a configuration, when (RFC 3339) and why; each is empty if unknown."""

    by: str = ""
    at: str = ""
    reason: str = ""


def disabled(configuration: Mapping[str, Any], note: Note) -> _Object:
    """Return a configuration that only sends probes; an existing note is kept."""
    changed = copy.deepcopy(dict(configuration))
    for entry in changed.get("webhooks") or ():
        if entry["name"] not in _PROBES and not _is_off(entry):
            entry["matchConditions"] = [*(entry.get("matchConditions") or ()), CONDITION]
    annotations = changed["metadata"].setdefault("annotations", {})
    if _AT not in annotations:
        texts = {_BY: note.by, _AT: note.at, _REASON: note.reason}
        annotations |= {key: text for key, text in texts.items() if text}
    return changed


def enabled(configuration: Mapping[str, Any]) -> _Object:
    """Return a configuration without the changes of `disabled`."""
    changed = copy.deepcopy(dict(configuration))
    for entry in changed.get("webhooks") or ():
        if _is_off(entry):
            entry["matchConditions"] = [c for c in entry["matchConditions"] if c["name"] != CONDITION["name"]]
            if not entry["matchConditions"]:
                del entry["matchConditions"]
    metadata = changed["metadata"]
    annotations = metadata.get("annotations") or {}
    others = {key: text for key, text in annotations.items() if key not in {_BY, _AT, _REASON}}
    if others:
        metadata["annotations"] = others
    elif annotations:
        del metadata["annotations"]
    return changed


def off(configuration: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the disabled entries."""
    return [entry["name"] for entry in configuration.get("webhooks") or () if _is_off(entry)]


def on(configuration: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the enabled entries, except those for probes."""
    entries = configuration.get("webhooks") or ()
    return [entry["name"] for entry in entries if entry["name"] not in _PROBES and not _is_off(entry)]


def note(configuration: Mapping[str, Any]) -> Note:
    """Return who disabled a configuration, from its annotations."""
    annotations = configuration["metadata"].get("annotations") or {}
    return Note(*(str(annotations.get(key, "")) for key in (_BY, _AT, _REASON)))


def _is_off(entry: Mapping[str, Any]) -> bool:
    return any(condition["name"] == CONDITION["name"] for condition in entry.get("matchConditions") or ())
