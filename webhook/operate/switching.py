"""Disable admission in an emergency and enable it again; both need only the API server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.generate import break_glass
from gpugate.webhook.operate.installation import both, is_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.generate.break_glass import Note
    from gpugate.webhook.operate.installation import Configuration


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
class Done:
    """The result of an operation on a configuration: whether it changed, or why the operation failed."""

    configuration: Configuration
    changed: bool = False
    failure: str = ""


def states(connection: Connection, name: str) -> Sequence[State]:
    """Return the state of both configurations of a name."""
    return [_state(connection, each) for each in both(name)]


def disable(connection: Connection, targets: Sequence[Configuration], note: Note) -> Sequence[Done]:
    """Disable all entries, so that API servers stop calling the webhook; an error for one does not affect the other."""
    return [_changed(connection, each, lambda found: break_glass.disabled(found, note)) for each in targets]


def enable(connection: Connection, targets: Sequence[Configuration]) -> Sequence[Done]:
    """Undo only the changes of `disable`."""
    return [_changed(connection, each, break_glass.enabled) for each in targets]


def who(connection: Connection) -> str:
    """Return the user name of this client at the API server; empty if unknown.

    Since Kubernetes 1.28 every authenticated user may create a SelfSubjectReview (`system:basic-user`).
    """
    api = "authentication.k8s.io/v1"
    try:
        answer = orjson.loads(
            connection.create(f"/apis/{api}/selfsubjectreviews", {"apiVersion": api, "kind": "SelfSubjectReview"})
        )
        return str(answer["status"]["userInfo"]["username"])
    except (CallError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _state(connection: Connection, configuration: Configuration) -> State:
    try:
        found = configuration.read(connection)
    except CallError as error:
        return State(configuration, unread=str(error))
    if found is None:
        return State(configuration)
    return State(
        configuration,
        exists=True,
        ours=is_ours(found),
        on=break_glass.on(found),
        off=break_glass.off(found),
        note=break_glass.note(found),
    )


def _changed(
    connection: Connection, configuration: Configuration, how: Callable[[dict[str, Any]], dict[str, Any]]
) -> Done:
    try:
        return Done(configuration, configuration.change(connection, how))
    except CallError as error:
        return Done(configuration, failure=str(error))
