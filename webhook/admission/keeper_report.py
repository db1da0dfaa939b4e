"""Tells people how the keeping of certificates goes: metrics always, the log when something is new or lasts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import expiry, fingerprint, split

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpugate.certs.keeper import State
    from gpugate.certs.leaf import Leaf
    from gpugate.webhook.admission.log import Log
    from gpugate.webhook.admission.metrics import Metrics

# A trouble that lasts is written again after so many seconds.
_AGAIN_SECONDS: Final = 60.0
# The API server's clock and ours may differ by what certificates are dated back, and by no more.
_SKEW_SECONDS: Final = 60.0


class KeeperReport:
    """What is told of one keeper; `broke` and `trouble` may be called from any thread."""

    def __init__(self, metrics: Metrics, log: Log, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._leaf: Leaf | None = None
        self._said: dict[str, float] = {}
        self._saying = threading.Lock()

    def tell(self, state: State, *, leads: bool, skew: dt.timedelta | None) -> None:
        """Tell of the state after a step."""
        self._measure(state, leads=leads, skew=skew)
        for text in state.done:
            self._log.event("info", "certificate authorities", did=text)
        if state.leaf is not None and state.leaf is not self._leaf:
            self._leaf = state.leaf
            self._log.event(
                "info",
                "certificate made",
                authority=state.leaf.authority[:16],
                expires=expiry(state.leaf.pair.certificate).isoformat(),
            )
        troubles = [*state.troubles, *([state.waiting] if state.waiting else [])]
        if skew is not None and abs(skew.total_seconds()) > _SKEW_SECONDS:
            troubles.append(f"the API server's clock is {skew.total_seconds():+.0f} s from ours: synchronise both")
        self.trouble(*troubles)

    def broke(self, reason: str, *, leads: bool) -> None:
        """Tell that there was no step, or none that came to its end."""
        self._metrics.certificates_kept(good=False, leads=leads)
        self.trouble(reason)

    def trouble(self, *texts: str) -> None:
        """Write what is wrong, unless that was written a moment ago."""
        with self._saying:
            now = self._clock()
            for text in texts:
                if now - self._said.get(text, -_AGAIN_SECONDS) >= _AGAIN_SECONDS:
                    self._said[text] = now
                    self._log.event("error", "certificates are not kept as they should be", reason=text)
            self._said = {text: at for text, at in self._said.items() if now - at < _AGAIN_SECONDS}

    def _measure(self, state: State, *, leads: bool, skew: dt.timedelta | None) -> None:
        metrics, authorities = self._metrics, state.authorities
        metrics.certificates_kept(good=not state.troubles and not state.waiting, leads=leads)
        if skew is not None:
            metrics.clock_skew(skew.total_seconds())
        if authorities is not None:
            metrics.authority(expiry(authorities.active.certificate))
        for configuration in state.live:
            trusted = [_trusted_until(bundle, state.leaf) for bundle in configuration.bundles.values()]
            if trusted:
                metrics.bundle(configuration.kind, min(trusted))


def _trusted_until(bundle: bytes, leaf: Leaf | None) -> float:
    """Return until when a bundle vouches for a certificate, in Unix time; 0 when it does not."""
    if leaf is None:
        return 0.0
    return max((expiry(pem).timestamp() for pem in split(bundle) if fingerprint(pem) == leaf.authority), default=0.0)
