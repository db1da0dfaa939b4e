"""A server with the front of gpugate and a WSGI application that does nothing: what a review costs besides.

    bare_server.py WORKERS CA_FILE

Prints `ready: URL`; ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.certs.serving import server_context
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.server import Front, listen
from gpugate.webhook.admission.gate import Gate, Rules

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"","allowed":true}}'


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Read the body and answer always the same."""
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(ANSWER)))])
    return [ANSWER]


async def serve(listener: socket.socket, tls: ssl.SSLContext) -> None:
    """Answer on our front until SIGTERM; everything but the two paths of reviews reaches the application."""
    gate = Gate(Rules(bind((), PolicyConfig()), "bare"), NoFacts(), lambda: dt.datetime.now(dt.UTC))
    front = Front(lambda load, turns: AdmissionAsgi(gate, application, load, turns, _uncounted), Limits(), _uncounted)
    front.accept_from(listener, lambda: tls)
    stop = asyncio.Event()
    front.loop.add_signal_handler(signal.SIGTERM, stop.set)
    keeping_time = asyncio.create_task(front.keep_time())
    await stop.wait()
    await front.leave(1)
    keeping_time.cancel()


def certificate(ca_file: Path) -> ssl.SSLContext:
    """Make a certificate as `gpugate serve` does, and write down who vouches for it."""
    now, lifetime = dt.datetime.now(dt.UTC), dt.timedelta(days=1)
    authority = certificate_authority("bare", now=now, lifetime=lifetime)
    ca_file.write_bytes(authority.certificate)
    return server_context(server_certificate(authority, ("127.0.0.1",), now=now, lifetime=lifetime))


def main() -> None:
    """Start the workers and wait for them."""
    workers, ca_file = int(sys.argv[1]), Path(sys.argv[2])
    tls = certificate(ca_file)
    listener = listen("127.0.0.1", 0)
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            uvloop.run(serve(listener, tls))
            os._exit(0)
        children.append(child)

    def pass_on(number: int, _: object) -> None:
        for child in children:
            os.kill(child, number)

    signal.signal(signal.SIGTERM, pass_on)
    sys.stdout.write(f"ready: https://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    for child in children:
        os.waitpid(child, 0)


def _uncounted(_: object) -> None:
    pass


if __name__ == "__main__":
    main()
