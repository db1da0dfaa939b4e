"""Says how to make an API server send its reviews here."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The line that says the server answers; scripts wait for it.
READY = "ready: "
# The line that says where probes and scrapes go.
HEALTH = "health: "


def how_to_register(url: str, authority: bytes | None, ca_file: Path | None) -> str:
    """Write what goes into the two webhook configurations, for a server at `url`.

    Args:
        url: scheme, host and port.
        authority: the certificate authority made at start, PEM; None when the certificate was given.
        ca_file: where the authority was written.
    """
    if authority is None:
        bundle = "the authority that signed the certificate you gave, PEM in base64"
    elif ca_file is not None:
        bundle = f"$(base64 -w0 {ca_file})"
    else:
        bundle = base64.b64encode(authority).decode("ascii")
    trust = f"--cacert {ca_file}" if ca_file is not None else "--cacert CA_FILE"
    return f"""To register it (admissionregistration.k8s.io/v1, sideEffects: None):
  MutatingWebhookConfiguration    clientConfig.url: {url}/mutate
  ValidatingWebhookConfiguration  clientConfig.url: {url}/validate
  both                            clientConfig.caBundle: {bundle}
To try it:
  curl {trust} -H 'Content-Type: application/json' --data-binary @review.json {url}/validate"""
