"""The options of the webhook server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpugate.certs.authorities import Periods
from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.registration.meant import Meant

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.webhook.cluster.options import ClusterOptions


# The usual name of an API server in its client certificate. An API server sends one only if its administrator configures
# it in the kubeconfig of `--admission-control-config-file` (`k8s.io/apiserver` pkg/util/webhook/authentication.go, v1.36).
# The administrator chooses the name.
API_SERVER: Final = "kube-apiserver"


class ServeError(GpugateError):
    """The server cannot start: a file cannot be read, a certificate cannot be used, the address is taken."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where and how the keeper manages the certificate authorities of gpugate and the serving certificates.

    Attributes:
        secret: the Secret of the authorities.
        namespace: the namespace of the webhook and of the Secret.
        service: the Service of the webhook.
        configuration: the name of both webhook configurations.
        url: the URL at which API servers reach the webhook, `https://HOST:PORT`; empty if they use the Service.
        names: additional names of the serving certificate, besides the Service and the host of `url`.
        meant: the options with which both configurations were generated.
        periods: the lifetimes of authorities and certificates.
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
        """The name of the Lease with which the replicas elect a leader."""
        return self.configuration

    @property
    def certified_names(self) -> tuple[str, ...]:
        """The names of the serving certificate; API servers verify the first."""
        service = f"{self.service}.{self.namespace}.svc"
        host = urlsplit(self.url).hostname
        of_service = (service, f"{service}.cluster.local", f"{self.service}.{self.namespace}", self.service)
        return tuple(dict.fromkeys((*((host,) if host else ()), *of_service, *self.names)))


@dataclass(frozen=True, slots=True)
class Recording:
    """Where and how much of the answered reviews is recorded.

    Attributes:
        folder: the directory of the files.
        fraction: the part of all reviews, above 0 and up to 1.
        most_bytes: the limit of all files in the directory.
    """

    folder: Path
    fraction: float = 1.0
    most_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options with which the server starts.

    Attributes:
        host: the address to listen on.
        port: the TLS port for reviews; 0 selects a free port.
        health_port: the plain HTTP port for probes and scrapes; 0 selects a free port.
        workers: the number of processes that serve.
        drain_seconds: how long new connections are accepted after a SIGTERM.
        limits: the limits for clients.
        policy_file: the policy file; None gives every policy its shipped mode.
        shadow_policy_file: a policy file by which answered reviews are evaluated again, without an effect; None does not.
        policy_paths: directories of policies outside the library.
        identity: the cluster for which policy files are read; None is the one that a file names.
        tls_cert: the serving certificate, together with `tls_key`. It must be valid for every name in `tls_san`.
            Without both, a certificate is created for the host, localhost and every name in `tls_san`.
        tls_key: the key of `tls_cert`.
        tls_san: names of the serving certificate.
        ca_file: where to write the certificate authority of a created certificate; None does not write it.
        client_ca: the certificate authorities of clients. If it is set, a client of `port` must present a certificate
            from one of them, for a name in `client_names`.
        client_names: common names or DNS names of allowed client certificates.
        keeping: how to manage certificates in the cluster; None if gpugate does not manage them.
        cluster: the cluster to watch for objects that policies look up; None if there is none.
        namespace: the namespace of the webhook; empty outside a cluster.
        service: the Service of the webhook, on which Events are created.
        trace: whether to create a span for each review.
        recording: where to record answered reviews; None does not.
    """

    host: str
    port: int
    health_port: int = 8081
    workers: int = 2
    drain_seconds: float = 10
    limits: Limits = field(default_factory=Limits)
    policy_file: Path | None = None
    shadow_policy_file: Path | None = None
    policy_paths: tuple[Path, ...] = ()
    identity: ClusterIdentity | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_san: tuple[str, ...] = ()
    ca_file: Path | None = None
    client_ca: Path | None = None
    client_names: tuple[str, ...] = (API_SERVER,)
    keeping: Keeping | None = None
    cluster: ClusterOptions | None = None
    namespace: str = ""
    service: str = "gpugate"
    trace: bool = False
    recording: Recording | None = None
