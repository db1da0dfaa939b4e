"""TLS handshakes without sockets: `shaken(server, client)` gives both ends, or raises what one of them says."""

from __future__ import annotations

import ssl
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.certs.pki import KeyPair

_TURNS = 10


def trusting(authorities: bytes, shown: KeyPair | None = None) -> ssl.SSLContext:
    """Make a client that trusts a bundle and shows a certificate, if it has one."""
    context = ssl.create_default_context(cadata=authorities.decode())
    if shown is not None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(shown.certificate + shown.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def shaken(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Shake hands, and read once at the client's end, where what a server sends after that arrives."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=name, session=session),
    )
    waiting = list(ends)
    for _ in range(_TURNS):
        for end in tuple(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert not waiting
    ends[0].write(b"x")
    assert ends[1].read(1) == b"x"
    return ends
