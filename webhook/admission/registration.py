"""Says how to make an API server send its reviews here."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.admission.options import Keeping

# The line that says the server answers; scripts wait for it.
READY = "ready: "
# The line that says where probes and scrapes go.
HEALTH = "health: "


def how_to_register(url: str, *, made: bool, ca_file: Path | None, policy_file: Path | None) -> str:
    """Write the commands that register a server at `url`, and that try it.

    Args:
        url: scheme, host and port.
        made: whether the certificate and its authority were made at start.
        ca_file: where that authority was written.
        policy_file: the policy file in force.
    """
    file = shlex.quote(str(ca_file)) if made and ca_file else "CA_FILE"
    rules = f" --policy-file {shlex.quote(str(policy_file))}" if policy_file else ""
    lines = [
        "To register it with a cluster that reaches this address:",
        f"  gpugate registration --url {url} --ca-file {file}{rules} | kubectl apply -f -",
        "To try it:",
        f"  curl --cacert {file} -H 'Content-Type: application/json' --data-binary @review.json {url}/validate",
    ]
    if not made:
        lines.insert(2, "  where CA_FILE holds the authority that signed the certificate you gave, PEM")
    elif ca_file is None:
        lines.insert(2, "  where CA_FILE is written by: gpugate serve --ca-file CA_FILE")
    return "\n".join(lines)


def how_it_is_kept(keeping: Keeping) -> str:
    """Write where the certificates come from, and who is told to trust them."""
    return (
        f"Certificates come from the authorities in the Secret {keeping.namespace}/{keeping.secret}; "
        f"the webhook configurations {keeping.configuration} are told to trust them."
    )
