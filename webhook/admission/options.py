"""How the webhook server is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.engine.errors import GpugateError

if TYPE_CHECKING:
    from pathlib import Path


class ServeError(GpugateError):
    """The server cannot start: a file cannot be read, a certificate cannot be used, the address is taken."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the server is told when it starts.

    `port` 0 takes any free one. Without `policy_file` every policy has its shipped mode. `tls_cert` and `tls_key` go
    together; without them a certificate is made for the host, localhost and every name of `tls_san`, and the authority
    that signed it is written to `ca_file`, where one is given.
    """

    host: str
    port: int
    policy_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_san: tuple[str, ...] = ()
    ca_file: Path | None = None
