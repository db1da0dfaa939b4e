"""Objects that policies may look up and that are not judged, such as those of a dump of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.needs import Needs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.request import Request


def context_facts(
    context: Sequence[Request], ruleset: Ruleset, facts: Sequence[tuple[int, list[Request]]]
) -> list[Request]:
    """Return what rules read of some objects; not of those that the files of the run have, which will take their place."""
    if not context:
        return []
    needs = Needs(ruleset.rules)
    ours = {_key(fact) for _, held in facts for fact in held}
    wanted = (request for request in context if needs.of(request.kind) is not None and _key(request) not in ours)
    return [fact for request in wanted if (fact := needs.project(with_defaults(request)))]


def _key(request: Request) -> tuple[str, str, str, str]:
    return request.kind.group, request.kind.kind, request.namespace, request.name
