"""Asks, through the API server, whether the webhook answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.generate.probe import answer, entry_name, question
from gpugate.webhook.operate.diagnosis import Trouble, of_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.webhook.cluster.connection import Connection

PHASES: Final = ("mutate", "validate")


@dataclass(frozen=True, slots=True)
class Probed:
    """What became of a probe.

    Attributes:
        silent: the phases for which nobody was asked, or that did not answer.
        trouble: why, where the API server says so.
        incomplete: whether it could not be found out, because the probe itself was refused or got no answer.
    """

    silent: Sequence[str]
    trouble: Trouble | None = None
    incomplete: bool = False


def probe(connection: Connection, namespace: str, nonce: str) -> Probed:
    """Have the API server ask the webhook in a namespace once; nothing is stored."""
    try:
        warnings = connection.try_create(f"/api/v1/namespaces/{namespace}/configmaps", question(namespace, nonce))
    except ApiError as error:
        if any(f'failed calling webhook "{entry_name(phase)}"' in error.message for phase in PHASES):
            return Probed(PHASES, of_message(error.message))
        return Probed(PHASES, _refused(error, namespace), incomplete=True)
    except CallError as error:
        trouble = Trouble(str(error), "gpugate must reach the API server before it can ask what that reaches")
        return Probed(PHASES, trouble, incomplete=True)
    return Probed([phase for phase in PHASES if answer(phase, nonce) not in warnings])


def _refused(error: ApiError, namespace: str) -> Trouble:
    if error.code == 401:
        return Trouble("the API server does not take these credentials", "log in again", error.message)
    if error.code == 404:
        return Trouble(f"there is no namespace {namespace}", "name the webhook's own with --namespace", error.message)
    if error.code == 403 and "cannot create resource" in error.message:
        remedy = f"let this user create ConfigMaps in {namespace}; the probe stores none"
        return Trouble("these credentials may not ask", remedy, error.message)
    return Trouble("the API server refused the probe before the webhook was asked", "see what refuses it", str(error))
