"""Why an API server was not reached, in words for whoever runs gpugate."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cluster.errors import ClusterError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_TLS: Final = {
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not trusted: "
    "the certificate-authority of the kubeconfig must be the one that signed it",
    "WRONG_VERSION_NUMBER": "that is no TLS: is this the HTTPS port of an API server?",
}
_TLS_FAILED: Final = "TLS failed: check the client certificate of the kubeconfig"
# By the names of urllib3's exceptions.
_WORDS: Final = {
    "NameResolutionError": "the name does not resolve: check the server of the kubeconfig, and DNS",
    "ConnectTimeoutError": "no connection: check the network, network policies and firewalls on the way",
    "ProxyError": "the proxy does not let us through: check HTTPS_PROXY and NO_PROXY",
    "ReadTimeoutError": "it fell silent",
}


@contextmanager
def explained(host: str) -> Iterator[None]:
    """Turn what the transport raises into `UnreachableError`.

    Raises:
        UnreachableError: the transport, or reading the credentials, failed.
    """
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 -- only what speaks with a cluster pays for it

    try:
        yield
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{host}: {_reason(error)}") from None
    except ClusterError as error:
        raise UnreachableError(str(error)) from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error  # a MaxRetryError says what its last try met
    name, text = type(cause).__name__, str(cause)
    if name == "SSLError":
        return next((words for sign, words in _TLS.items() if sign in text), _TLS_FAILED)
    if name == "NewConnectionError":
        system = cause.__cause__ if isinstance(cause, BaseException) else None
        detail = system.strerror if isinstance(system, OSError) and system.strerror else "no connection"
        return f"{detail.lower()}: is the API server running, and the server of the kubeconfig right?"
    return _WORDS.get(name, f"the connection broke ({name})")
