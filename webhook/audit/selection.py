"""Options of an audit, and which objects it reports on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.scheduling import selects

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.report.located import ObjectName

_SET: Final = re.compile(r"(?P<key>[\w./-]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL: Final = re.compile(r"(?P<key>[\w./-]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[\w.-]*)")
_EXISTS: Final = re.compile(r"(?P<not>!\s*)?(?P<key>[\w./-]+)")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn"}
# A comma between requirements, but not between the values of a set.
_COMMA: Final = re.compile(r",(?![^()]*\))")


class SelectorError(GpugateError):
    """A label selector is invalid."""


def parse_selector(text: str) -> Field:
    """Parse a label selector in the syntax of `kubectl -l`, such as `app=web,tier in (a, b),!legacy`.

    Raises:
        SelectorError: the selector is invalid.
    """
    return Field({"matchExpressions": [_requirement(part.strip(), text) for part in _COMMA.split(text)]})


def _requirement(part: str, text: str) -> dict[str, Json]:
    match = _SET.fullmatch(part)
    if match:
        values: list[Json] = [value.strip() for value in match["values"].split(",")]
        return {"key": match["key"], "operator": _OPERATORS[match["operator"]], "values": values}
    match = _EQUAL.fullmatch(part)
    if match:
        return {"key": match["key"], "operator": _OPERATORS[match["operator"]], "values": [match["value"]]}
    match = _EXISTS.fullmatch(part)
    if match:
        return {"key": match["key"], "operator": "DoesNotExist" if match["not"] else "Exists"}
    raise SelectorError(f"-l {text}: invalid label selector: use key=value, key!=value, key in (a, b), key or !key")


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of reported top-level owners.

    Attributes:
        namespaces: only these namespaces, without cluster-scoped objects; empty for all.
        excluded: the excluded namespaces.
        kinds: only these kinds, such as `NodePool`; empty for all.
        without: the excluded kinds.
        labels: a label selector; None for all objects.
    """

    namespaces: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    labels: Field | None = field(default=None)

    def takes(self, name: ObjectName, labels: Mapping[str, str]) -> bool:
        """Return whether an object is selected. A Namespace counts as in itself, as at admission."""
        namespace = name.name if name.kind == "Namespace" else name.namespace
        return (
            (not self.namespaces or namespace in self.namespaces)
            and namespace not in self.excluded
            and (not self.kinds or name.kind in self.kinds)
            and name.kind not in self.without
            and (self.labels is None or selects(self.labels, labels))
        )


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an audit.

    Attributes:
        time: the current time with its time zone; exemptions expire by its date in UTC.
        generation: the generation of the policy file, as in the webhook's metrics and log.
        selection: the reported objects; all objects are cluster data.
        remarks: notes for the user that are known before the run.
        run_id: the id of the run.
    """

    time: dt.datetime
    generation: str = ""
    selection: Selection = field(default_factory=Selection)
    remarks: tuple[str, ...] = ()
    run_id: str = ""
