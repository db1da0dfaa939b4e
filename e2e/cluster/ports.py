"""Ports of loopback."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Final

HOST = "127.0.0.1"

_LOWEST: Final = 12_000
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(number: int) -> list[int]:
    """Return different ports that nobody listens on, and that nobody else takes as long as this process lives.

    The kernel gives sockets without a port one of its own range, at any time. The ports are below that range, and each is
    reserved for this process by a UDP socket of the same number: of two processes that ask, one gets it.
    """
    ports: list[int] = []
    for port in SystemRandom().sample(range(_LOWEST, _lowest_ephemeral()), 4_000):
        if len(ports) == number:
            break
        with suppress(OSError):
            _reserve(port)
            ports.append(port)
    assert len(ports) == number, f"fewer than {number} ports are free"
    return ports


def _reserve(port: int) -> None:
    """Reserve a port until this process ends.

    Raises:
        OSError: another process listens on it or has reserved it.
    """
    with socket.socket() as used, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reserved:
        used.bind((HOST, port))
        reserved.bind((HOST, port))
        reserved.detach()


def _lowest_ephemeral() -> int:
    with suppress(OSError):
        return max(int(_EPHEMERAL.read_text().split()[0]), _LOWEST + 4_000)
    return 32_768
