"""How the webhook server is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpugate.certs.authorities import Periods
from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.generate.meant import Meant

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.cluster.options import ClusterOptions


# What an API server is usually called in a client certificate. It shows one only where its administrator gave it one, in
# the kubeconfig of `--admission-control-config-file` (`k8s.io/apiserver` pkg/util/webhook/authentication.go, v1.36); the
# name is theirs to choose.
API_SERVER: Final = "kube-apiserver"


class ServeError(GpugateError):
    """The server cannot start: a file cannot be read, a certificate cannot be used, the address is taken."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How certificates are kept that come from authorities of our own.

    Attributes:
        secret: the Secret of the authorities.
        namespace: the namespace of this webhook, in which the Secret is.
        service: the Service that leads to it.
        configuration: the name of both webhook configurations.
        url: where API servers reach it, as `https://HOST:PORT`, when not through the Service.
        names: what its certificate is for besides the Service and the host of `url`.
        meant: what was chosen where both configurations were generated.
        periods: how long authorities and certificates last.
    """

    secret: str
    namespace: str
    service: str = "gpugate"
    configuration: str = "gpugate"
    url: str = ""
    names: tuple[str, ...] = ()
    meant: Meant = field(default_factory=Meant)
    periods: Periods = field(default_factory=Periods)

    @property
    def lease(self) -> str:
        """The Lease by which replicas agree on who writes."""
        return self.configuration

    @property
    def certified_names(self) -> tuple[str, ...]:
        """Every name that the certificate is for; the first is what API servers ask for."""
        service = f"{self.service}.{self.namespace}.svc"
        host = urlsplit(self.url).hostname
        of_service = (service, f"{service}.cluster.local", f"{self.service}.{self.namespace}", self.service)
        return tuple(dict.fromkeys((*((host,) if host else ()), *of_service, *self.names)))


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the server is told when it starts.

    Ports: 0 takes any free one; `port` speaks TLS and answers reviews, `health_port` speaks plain HTTP and answers
    probes and scrapes. `workers` is how many processes serve. After a SIGTERM new connections are still accepted for
    `drain_seconds`. Without `policy_file` every policy has its shipped mode. `tls_cert` and `tls_key` go together;
    without them a certificate is made for the host, localhost and every name of `tls_san`, and the authority that
    signed it is written to `ca_file`, where one is given; one that is given must be for every name of `tls_san`. With
    `client_ca`, who connects to `port` must show a certificate of an authority in that file, for one of `client_names`
    (its common name or a DNS name). With `keeping`, certificates are kept in the `cluster`. `cluster` is where other objects are looked up, None when there is none. With
    `trace`, each review makes a span.
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
    client_ca: Path | None = None
    client_names: tuple[str, ...] = (API_SERVER,)
    keeping: Keeping | None = None
    cluster: ClusterOptions | None = None
    trace: bool = False
