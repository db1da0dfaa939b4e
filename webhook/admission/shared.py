"""The state that the processes of one server share; the supervisor creates it before it forks."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate import __version__
from gpugate.policies.engine.config import GpugateError

if TYPE_CHECKING:
    import socket
    import ssl
    from pathlib import Path

    from gpugate.webhook.admission.certificate import Certificate, LeafMemory
    from gpugate.webhook.admission.front.handover import HandOver
    from gpugate.webhook.admission.gate import Rules
    from gpugate.webhook.admission.log import Log
    from gpugate.webhook.admission.metrics import Metrics
    from gpugate.webhook.admission.options import ServeOptions
    from gpugate.webhook.admission.policy_guard import Guarding
    from gpugate.webhook.admission.policy_reload import RulesContent, RulesFiles
    from gpugate.webhook.admission.redaction import Vocabulary
    from gpugate.webhook.admission.workers import Board


@dataclass(slots=True)
class SharedShadow:
    """The shadow policy file, and the last valid rules of it; None if there are none, for the reason in `error`.

    The processes show each other their tables in `folder`, which other users cannot enter.
    """

    files: RulesFiles
    folder: Path
    rules: Rules | None = None
    error: str = ""


@dataclass(slots=True)
class Shared:
    """Objects of which each process has its own copy, and memory and sockets that all processes share.

    `rules` is the last valid ruleset of the supervisor, with which a restarted worker begins. `hand_over` is None if
    there is one worker, which evaluates expensive reviews itself. `files` are those of the rules, and `guarding` guards
    policies outside the library. `shadow` is None without a shadow policy file, and `vocabulary` if nothing is recorded.
    """

    options: ServeOptions
    rules: Rules
    certificate: Certificate
    metrics: Metrics
    log: Log
    board: Board
    leafs: LeafMemory
    hand_over: HandOver | None
    admission: socket.socket
    health: socket.socket
    files: RulesFiles
    guarding: Guarding
    shadow: SharedShadow | None = None
    vocabulary: Vocabulary | None = None

    def policy_texts(self) -> tuple[str, ...]:
        """Return the texts of the policy files and of policies outside the library; empty if they cannot be read."""
        texts: list[str] = []
        for files in (self.files, *([self.shadow.files] if self.shadow else [])):
            with suppress(OSError, GpugateError):
                content = files.read()
                files_of_policies = (source.data for source in content.sources)
                texts += [data.decode(errors="replace") for data in (content.data or b"", *files_of_policies)]
        return tuple(texts)

    def may_load(self, content: RulesContent) -> bool:
        """Tell whether the supervisor has loaded the policies outside the library in a trial."""
        return content.own[:16] == self.guarding.guard.accepted

    def poll_certificate(self, *, force: bool = False) -> str | None:
        """Load a changed certificate, or any certificate with `force`; returns the result of `Certificate.poll`."""
        error = self.certificate.reload() if force else self.certificate.poll()
        if error is not None:
            self.metrics.certificate_reloaded(not error)
            self.metrics.certificate(self.certificate.identity.not_after)
        return error

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for the next connection.

        A new certificate from the keeper applies at once: a client must not get the previous one after the server
        reports that it is ready, or after the previous one has expired.
        """
        if self.certificate.is_behind:
            self.poll_certificate()
        return self.certificate.identity.context

    def report_start(self) -> None:
        """Set the metrics that change only with the policy file and the certificate."""
        self.metrics.built(__version__)
        self.metrics.reloaded(self.rules.generation, ok=True)
        self.metrics.certificate(self.certificate.identity.not_after)
        self.metrics.certificate_reloaded(ok=True)
        if self.shadow is not None:
            self.metrics.shadow_reloaded(ok=not self.shadow.error)


def now() -> dt.datetime:
    """Return the time in UTC."""
    return dt.datetime.now(tz=dt.UTC)
