"""What the processes of one webhook have in common; made by the supervisor before it forks."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    import ssl

    from gpugate.webhook.admission.certificate import Certificate, LeafMemory
    from gpugate.webhook.admission.front.load import LargeReviews
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.log import Log
    from gpugate.webhook.admission.metrics import Metrics
    from gpugate.webhook.admission.options import ServeOptions
    from gpugate.webhook.admission.workers import Board


@dataclass(slots=True)
class Shared:
    """Parts that each process goes on with on its own, and the memory and sockets that all of them share.

    `rules` are the last good ones as the supervisor knows them, so that a worker that is started later has them too.
    """

    options: ServeOptions
    rules: Rules
    certificate: Certificate
    metrics: Metrics
    log: Log
    board: Board
    leafs: LeafMemory
    large: LargeReviews
    admission: socket.socket
    health: socket.socket

    def poll_certificate(self, *, again: bool = False) -> str | None:
        """Take up a certificate that changed, or (`again`) read it anyway; returns what `Certificate.poll` returns."""
        error = self.certificate.reload() if again else self.certificate.poll()
        if error is not None:
            self.metrics.certificate_reloaded(not error)
            self.metrics.certificate(self.certificate.identity.not_after)
        return error

    def context(self) -> ssl.SSLContext:
        """Return what the next connection is to be shaken hands with.

        A certificate that is kept counts from the moment it is there: who was told that this server is ready, or comes
        when the one before has expired, must not meet the one before.
        """
        if self.certificate.is_behind:
            self.poll_certificate()
        return self.certificate.identity.context

    def report_start(self) -> None:
        """Set the metrics that change with the policy file and the certificate only."""
        self.metrics.reloaded(self.rules.generation, ok=True)
        self.metrics.certificate(self.certificate.identity.not_after)
        self.metrics.certificate_reloaded(ok=True)


def now() -> dt.datetime:
    """Return the time in UTC."""
    return dt.datetime.now(tz=dt.UTC)
