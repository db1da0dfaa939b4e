"""Wait until the API server reaches the webhook, and report why it does not."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.operate.installation import both
from gpugate.webhook.operate.reachability import PHASES, Trouble, backends, probe
from gpugate.webhook.registration.probe import entry_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Names

_PAUSE_SECONDS: Final = 1.0
_INSTALL: Final = "install the chart, or apply the output of `gpugate registration`; or set --name to another name"


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the API server reaches the webhook.

    Attributes:
        troubles: why it does not, the most important first; empty if it does.
        incomplete: whether the result is unknown.
    """

    troubles: Sequence[Trouble] = ()
    incomplete: bool = False

    @property
    def reached(self) -> bool:
        """Whether the webhook answered for both phases."""
        return not self.troubles


def wait(
    connection: Connection,
    names: Names,
    seconds: float,
    report: Callable[[Reach], None],
    *,
    pause: float = _PAUSE_SECONDS,
) -> Reach:
    """Probe at least once, until the webhook is reached or `seconds` have passed; report each change of the problems."""
    deadline = time.monotonic() + seconds
    reported: list[str] = []
    while True:
        result = reach(connection, names)
        if result.reached or time.monotonic() + pause > deadline:
            return result
        troubles = [trouble.problem for trouble in result.troubles]
        if troubles != reported:
            reported = troubles
            report(result)
        time.sleep(pause)


def reach(connection: Connection, names: Names) -> Reach:
    """Check the configurations, and probe the webhook once."""
    missing = tuple(_not_registered(connection, names))
    if missing:
        return Reach(missing)
    probed = probe(connection, names.namespace, secrets.token_hex(16))
    if not probed.silent:
        return Reach()
    if probed.trouble is None:
        phases = " and ".join(probed.silent)
        return Reach((Trouble(f"the API server did not call the webhook to {phases}", _not_taken_up(names)),))
    return Reach((probed.trouble, *backends(connection, names)), probed.incomplete)


def _not_registered(connection: Connection, names: Names) -> Iterator[Trouble]:
    """Yield the missing parts of the configurations; unreadable ones are skipped, because the probe follows."""
    for phase, configuration in zip(PHASES, both(names.configuration), strict=True):
        try:
            live = configuration.read(connection)
        except CallError:
            continue
        if live is None:
            yield Trouble(f"{configuration} does not exist", _INSTALL)
            continue
        entries = {entry["name"]: entry for entry in live.get("webhooks") or ()}
        probe_entry = entries.get(entry_name(phase))
        if probe_entry is None:
            yield Trouble(
                f"{configuration} has no entry {entry_name(phase)}",
                "apply it again: an older version of gpugate generated it",
            )
        elif not probe_entry["clientConfig"].get("caBundle") and not probe_entry["clientConfig"].get("url"):
            yield Trouble(
                f"{configuration} has no caBundle yet", "the leader writes it: see the logs of the webhook's Pods"
            )


def _not_taken_up(names: Names) -> str:
    return (
        "an API server applies a new configuration within seconds; if the problem persists, "
        f"{names.namespace} is not the namespace in the probe entry (--namespace)"
    )
