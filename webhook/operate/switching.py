"""Disable admission in an emergency and enable it again; both need only the API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.operate.installation import both, is_ours
from gpugate.webhook.registration import break_glass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Configuration
    from gpugate.webhook.registration.break_glass import Note


@dataclass(frozen=True, slots=True)
class State:
    """The state of a webhook configuration.

    Attributes:
        configuration: the configuration.
        exists: whether it exists; without it the API server sends no requests.
        ours: whether it has gpugate's label.
        on: the enabled entries.
        off: the disabled entries.
        note: who disabled them, when and why.
        unread: why it could not be read; empty if it was read.
    """

    configuration: Configuration
    exists: bool = False
    ours: bool = False
    on: Sequence[str] = ()
    off: Sequence[str] = ()
    note: Note = field(default_factory=break_glass.Note)
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Switched:
    """The result of an operation on a configuration: whether it changed, or why the operation failed."""

    configuration: Configuration
    changed: bool = False
    failure: str = ""


def states(connection: Connection, name: str) -> Sequence[State]:
    """Return the state of both configurations of a name."""
    return [_state(connection, configuration) for configuration in both(name)]


def disable(connection: Connection, targets: Sequence[Configuration], note: Note) -> Sequence[Switched]:
    """Disable all entries, so that API servers stop calling the webhook; an error for one does not affect the other."""
    return [
        _change(connection, configuration, lambda live: break_glass.disabled(live, note)) for configuration in targets
    ]


def enable(connection: Connection, targets: Sequence[Configuration]) -> Sequence[Switched]:
    """Undo only the changes of `disable`."""
    return [_change(connection, configuration, break_glass.enabled) for configuration in targets]


def current_user(connection: Connection) -> str:
    """Return the user name of this client at the API server; empty if unknown.

    Since Kubernetes 1.28 every authenticated user may create a SelfSubjectReview (`system:basic-user`).
    """
    api = "authentication.k8s.io/v1"
    try:
        answer = read_json(
            orjson.loads,
            connection.create(f"/apis/{api}/selfsubjectreviews", {"apiVersion": api, "kind": "SelfSubjectReview"}),
        )
        return str(answer["status"]["userInfo"]["username"])
    except (CallError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _state(connection: Connection, configuration: Configuration) -> State:
    try:
        live = configuration.read(connection)
    except CallError as error:
        return State(configuration, unread=str(error))
    if live is None:
        return State(configuration)
    return State(
        configuration,
        exists=True,
        ours=is_ours(live),
        on=break_glass.on(live),
        off=break_glass.off(live),
        note=break_glass.note(live),
    )


def _change(
    connection: Connection, configuration: Configuration, edit: Callable[[dict[str, Any]], dict[str, Any]]
) -> Switched:
    try:
        return Switched(configuration, configuration.change(connection, edit))
    except CallError as error:
        return Switched(configuration, failure=str(error))
