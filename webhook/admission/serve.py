"""Puts the webhook together and runs it: rules, facts, gate, application, certificate, server."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from typing import TYPE_CHECKING

from gpugate import __version__
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission import telemetry
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.certificate import identity, names
from gpugate.webhook.admission.front import server as front
from gpugate.webhook.admission.gate import Gate
from gpugate.webhook.admission.options import ServeError, ServeOptions
from gpugate.webhook.admission.registration import READY, how_to_register
from gpugate.webhook.manifests.policy_file import load_policy_file

if TYPE_CHECKING:
    import socket

    from gpugate.policies.engine.ruleset import Ruleset

__all__ = ["ServeError", "ServeOptions", "serve"]


def serve(options: ServeOptions) -> int:
    """Answer admission reviews until SIGTERM or SIGINT; returns 0 then.

    Raises:
        PolicyFileError: the policy file cannot be read or is refused.
        ServeError: a certificate cannot be used, or the address is taken.
    """
    ruleset = load_policy_file(options.policy_file, lambda config: bind(CATALOG, config))
    tls = identity(options, _now())
    listener = _listen(options)
    telemetry.to_stderr()
    gate = Gate(ruleset, NoFacts(), _now, telemetry.log)
    url = _url(options, listener)

    def announce() -> None:
        lines = (
            f"gpugate {__version__} with {_summary(ruleset)}",
            "No cluster to look at: policies that need other objects skip what they cannot know.",
            how_to_register(url, tls.authority, options.ca_file),
            f"{READY}{url}",
        )
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    front.run(gate, create_app(gate), listener, tls.context, announce)
    return 0


def _now() -> dt.datetime:
    return dt.datetime.now(tz=dt.UTC)


def _listen(options: ServeOptions) -> socket.socket:
    try:
        return front.listen(options.host, options.port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServeError(f"cannot listen on {options.host} port {options.port}: {reason.lower()}") from None


def _url(options: ServeOptions, listener: socket.socket) -> str:
    host = names(options)[0]
    port: int = listener.getsockname()[1]
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _summary(ruleset: Ruleset) -> str:
    modes = Counter(rule.mode for rule in ruleset.rules)
    shares = ", ".join(f"{count} {mode.word}" for mode, count in sorted(modes.items(), reverse=True))
    return f"{len(ruleset.rules)} policies ({shares})"
