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
# A comma between requirements, not one between the values of a set.
_COMMA: Final = re.compile(r",(?![^()]*\))")


class SelectorError(GpugateError):
    """A label selector is not written as kubectl has it."""


def parse_selector(text: str) -> Field:
    """Read a label selector as `kubectl -l` takes it, such as `app=web,tier in (a, b),!legacy`.

    Raises:
        SelectorError: it is none.
    """
    return Field({"matchExpressions": [_requirement(part.strip(), text) for part in _COMMA.split(text)]})


def _requirement(part: str, text: str) -> dict[str, Json]:
    found = _SET.fullmatch(part)
    if found:
        values: list[Json] = [value.strip() for value in found["values"].split(",")]
        return {"key": found["key"], "operator": _OPERATORS[found["operator"]], "values": values}
    found = _EQUAL.fullmatch(part)
    if found:
        return {"key": found["key"], "operator": _OPERATORS[found["operator"]], "values": [found["value"]]}
    found = _EXISTS.fullmatch(part)
    if found:
        return {"key": found["key"], "operator": "DoesNotExist" if found["not"] else "Exists"}
    raise SelectorError(f"-l {text}: write it as kubectl has it: key=value, key!=value, key in (a, b), key, !key")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects are reported on: those at the top of a chain of owners, each with all that it made.

    Attributes:
        namespaces: only these, and nothing that is in no namespace; all where it is empty.
        excluded: namespaces that are left out.
        kinds: only these kinds, as in `kind: NodePool`; all where it is empty.
        without: kinds that are left out.
        labels: a label selector; everything where it is None.
    """

    namespaces: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    labels: Field | None = field(default=None)

    def takes(self, name: ObjectName, labels: Mapping[str, str]) -> bool:
        """Tell whether an object is reported on. A Namespace is in itself, as at admission."""
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
    """How an audit judges.

    Attributes:
        time: now, with its zone; its day, in UTC, is the one that exemptions are held against.
        generation: which policy file is used, as the webhook's metric and log name it.
        selection: which objects are reported on; all are facts.
        remarks: sentences about the run that are known beforehand.
    """

    time: dt.datetime
    generation: str = ""
    selection: Selection = field(default_factory=Selection)
    remarks: tuple[str, ...] = ()
