"""The queries of PrometheusRules and of Prometheus triggers of ScaledObjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.promql import Query, read
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext


class Expression(Struct, frozen=True):
    """A query in an object.

    Attributes:
        field: its text.
        owner: the rule or the trigger with it.
        query: what the text says.
    """

    field: Field
    owner: Field
    query: Query

    @property
    def is_alert(self) -> bool:
        """Whether a result of the query is an alert."""
        return bool(self.owner["alert"].text)

    @property
    def consequence(self) -> str:
        """What follows if the query has no result."""
        if self.is_alert:
            return "The query has no result, so the alert never fires."
        if self.owner["record"].text:
            return "The query has no result, so nothing is recorded."
        return "The query has no result, so it does not scale the workload."


def expressions(subject: Field, _: AnyContext) -> tuple[Expression, ...]:
    """Return the queries of an object; take it from `ctx.derived`, for several policies ask."""
    return tuple(Expression(text, owner, read(text.text)) for owner, text in _texts(subject) if text.text)


def _texts(subject: Field) -> Iterator[tuple[Field, Field]]:
    for group in subject["spec", "groups"]:
        yield from ((rule, rule["expr"]) for rule in group["rules"])
    for trigger in subject["spec", "triggers"]:
        if trigger["type"].text == "prometheus":
            yield trigger, trigger["metadata", "query"]
