"""Waits until the API server really reaches the webhook, and says why when it does not."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.generate.probe import entry_name
from gpugate.webhook.operate.installation import both
from gpugate.webhook.operate.reachability import PHASES, Trouble, backends, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names

_PAUSE_SECONDS: Final = 1.0
_INSTALL: Final = "install the chart, or apply what `gpugate registration` prints; or name another with --name"


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the API server reaches the webhook: no troubles when it does.

    Attributes:
        troubles: what is wrong, the first one first.
        incomplete: whether it could not be found out.
    """

    troubles: Sequence[Trouble] = ()
    incomplete: bool = False

    @property
    def reached(self) -> bool:
        """Whether it answered for both phases."""
        return not self.troubles


def wait(
    connection: Connection,
    names: Names,
    seconds: float,
    tell: Callable[[Reach], None],
    *,
    pause: float = _PAUSE_SECONDS,
) -> Reach:
    """Ask until it is reached or the time is over; at least once. Tells what is wrong whenever it is something else."""
    deadline = time.monotonic() + seconds
    told: list[str] = []
    while True:
        found = reach(connection, names)
        if found.reached or time.monotonic() + pause > deadline:
            return found
        troubles = [trouble.what for trouble in found.troubles]
        if troubles != told:
            told = troubles
            tell(found)
        time.sleep(pause)


def reach(connection: Connection, names: Names) -> Reach:
    """Ask once."""
    missing = tuple(_not_registered(connection, names))
    if missing:
        return Reach(missing)
    probed = probe(connection, names.namespace, secrets.token_hex(16))
    if not probed.silent:
        return Reach()
    if probed.trouble is None:
        phases = " and ".join(probed.silent)
        return Reach((Trouble(f"the API server asked nobody to {phases}", _not_taken_up(names)),))
    return Reach((probed.trouble, *backends(connection, names)), probed.incomplete)


def _not_registered(connection: Connection, names: Names) -> Iterator[Trouble]:
    """Say what is missing in the configurations; where they may not be read, the probe tells as much as can be known."""
    for phase, configuration in zip(PHASES, both(names.configuration), strict=True):
        try:
            found = configuration.read(connection)
        except CallError:
            continue
        if found is None:
            yield Trouble(f"there is no {configuration}", _INSTALL)
            continue
        entries = {each["name"]: each for each in found.get("webhooks") or ()}
        asked = entries.get(entry_name(phase))
        if asked is None:
            yield Trouble(
                f"{configuration} has no entry {entry_name(phase)}", "apply it again: an older gpugate wrote it"
            )
        elif not asked["clientConfig"].get("caBundle") and not asked["clientConfig"].get("url"):
            yield Trouble(
                f"{configuration} has no caBundle yet", "the leader among the webhook's Pods writes it: see their logs"
            )


def _not_taken_up(names: Names) -> str:
    return (
        "it takes a configuration up within seconds; if it goes on, "
        f"{names.namespace} is not the namespace that the entry for probes names (--namespace)"
    )
