"""Turns admission off in an emergency, and on again; needs nothing but an API server."""

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
    """How a configuration is now.

    Attributes:
        configuration: which.
        exists: whether there is one; nothing is asked without.
        ours: whether it says that it is of gpugate.
        on: the entries that something is sent by.
        off: the entries that are turned off.
        note: who turned them off.
        unread: why nothing is known of it.
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
    """What became of a configuration: changed or not, or why it could not be."""

    configuration: Configuration
    changed: bool = False
    failure: str = ""


def states(connection: Connection, name: str) -> Sequence[State]:
    """Return how both configurations of a name are; what cannot be read says so."""
    return [_state(connection, each) for each in both(name)]


def disable(connection: Connection, targets: Sequence[Configuration], note: Note) -> Sequence[Done]:
    """Make the API server ask nothing any more, as soon as it has heard of it; one that fails does not keep the other."""
    return [_changed(connection, each, lambda found: break_glass.disabled(found, note)) for each in targets]


def enable(connection: Connection, targets: Sequence[Configuration]) -> Sequence[Done]:
    """Undo what `disable` did, and nothing else."""
    return [_changed(connection, each, break_glass.enabled) for each in targets]


def who(connection: Connection) -> str:
    """Return whom the API server takes us for; empty where it does not say.

    Since Kubernetes 1.28 everybody who is authenticated may ask (`system:basic-user`).
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
