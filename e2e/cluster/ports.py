"""Ports of loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack

HOST = "127.0.0.1"


def free_ports(number: int) -> list[int]:
    """Return different ports that nobody listens on."""
    with ExitStack() as stack:
        # All are held until the last is known.
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]
