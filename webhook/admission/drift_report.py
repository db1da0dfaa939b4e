"""Tells how the live webhook configurations differ from what the rules in force need."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpugate.certs.protocols import ClusterFailure
from gpugate.webhook.admission.policy_reload import PolicyFileWatch
from gpugate.webhook.generate.drift import drift
from gpugate.webhook.generate.registration import Server

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpugate.certs.authorities import Authorities
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.options import Keeping
    from gpugate.webhook.admission.policy_reload import Reload
    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.cluster.live_registration import LiveRegistration
    from gpugate.webhook.generate.drift_reasons import Drift


# While authorities change, Secret and configurations are written one after the other.
_LASTING_SECONDS: Final = 10.0


class DriftReport:
    """What is told of one pair of configurations: a metric for each reason, and the log of what lasts."""

    def __init__(
        self,
        shared: Shared,
        keeping: Keeping,
        registration: LiveRegistration,
        now: Callable[[], dt.datetime],
        clock: Callable[[], float],
    ) -> None:
        self._shared = shared
        self._keeping = keeping
        self._registration = registration
        self._now = now
        self._rules = shared.rules
        self._policy_file = PolicyFileWatch(shared.options.policy_file, shared.rules, self._use, _heard)
        self._clock = clock
        # Since when each difference is there, and which of them were written.
        self._since: dict[Drift, float] = {}
        self._written: frozenset[Drift] = frozenset()

    def tell(self, authorities: Authorities | None) -> None:
        """Compare, and tell; configurations that cannot be read say nothing about whether they drifted."""
        self._policy_file.poll()
        try:
            live = self._registration.read_objects()
        except ClusterFailure:
            return  # the keeper has just read the same, and told why it could not
        keeping = self._keeping
        found = drift(
            self._rules.ruleset,
            live,
            Server(b"", keeping.namespace, keeping.url, keeping.service),
            authorities.bundle if authorities else b"",
            now=self._now(),
            name=keeping.configuration,
            meant=keeping.meant,
        )
        self._shared.metrics.drift(Counter(each.reason.value for each in found))
        self._since = {each: self._since.get(each, self._clock()) for each in found}
        lasting = {each for each in found if self._clock() - self._since[each] >= _LASTING_SECONDS}
        for each in found:
            if each in lasting and each not in self._written:
                self._shared.log.event(
                    "warning",
                    "webhook configuration is not as generated",
                    reason=each.reason.value,
                    where=each.where,
                    found=each.found,
                    remedy=each.remedy,
                )
        self._written = frozenset(lasting)

    def _use(self, rules: Rules) -> None:
        self._rules = rules


def _heard(_: Reload) -> None:
    """Pass over it: the supervisor reads the same file and tells of it."""
