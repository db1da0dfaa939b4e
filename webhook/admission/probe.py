"""Answers the question whether an API server reaches the webhook: by a warning, which changes no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.kinds import GroupVersionKind
from gpugate.webhook.generate.probe import ANNOTATION, NONCE, answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.evaluate import Phase
    from gpugate.policies.sdk.request import Request

_ASKED_BY: Final = GroupVersionKind("", "v1", "ConfigMap")


def answers(request: Request, phase: Phase) -> Sequence[str]:
    """Return the warning that answers a probe; none for any other request.

    Only what is not stored is answered, of a kind that no policy judges, and never more than the digits that were sent.
    """
    if not request.dry_run or request.kind != _ASKED_BY:
        return ()
    metadata = (request.object or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    nonce = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(nonce, str) or not NONCE.fullmatch(nonce):
        return ()
    return (answer(phase.value, nonce),)
