"""How the webhook server is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpugate.policies.engine.errors import GpugateError
from gpugate.webhook.admission.front.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.cluster.options import ClusterOptions


class ServeError(GpugateError):
    """The server cannot start: a file cannot be read, a certificate cannot be used, the address is taken."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the server is told when it starts.

    Ports: 0 takes any free one; `port` speaks TLS and answers reviews, `health_port` speaks plain HTTP and answers
    probes and scrapes. `workers` is how many processes serve. After a SIGTERM new connections are still accepted for
    `drain_seconds`. Without `policy_file` every policy has its shipped mode. `tls_cert` and `tls_key` go together;
    without them a certificate is made for the host, localhost and every name of `tls_san`, and the authority that
    signed it is written to `ca_file`, where one is given. `cluster` is where other objects are looked up, None when
    there is none. With `trace`, each review makes a span.
    """

    host: str
    port: int
    health_port: int = 8081
    workers: int = 2
    drain_seconds: float = 10
    limits: Limits = field(default_factory=Limits)
    policy_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_san: tuple[str, ...] = ()
    ca_file: Path | None = None
    cluster: ClusterOptions | None = None
    trace: bool = False
