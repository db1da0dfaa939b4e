"""A real OCI registry on loopback: over TLS by an authority of its own, for one user, with its content on disk."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cluster.ports import HOST, free_ports
from cluster.process import Process

import tools
from gpugate.certs.pki import certificate_authority, server_certificate
from gpugate.webhook.bundle.credentials import Login
from gpugate.webhook.bundle.reference import Reference
from gpugate.webhook.bundle.registry import Registry as Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

USER: Final = "pipeline"
_PASSWORD: Final = "only-of-tests"  # noqa: S105 -- of a registry on loopback, for as long as a test runs
# Its hash by bcrypt, the one algorithm that the registry takes.
_HASH: Final = "$2b$05$abcdefghijklmnopqrstuua0N0BAPzpsEamdO7TBX9WmThDkEi5XG"
_LIFETIME: Final = dt.timedelta(days=1)
_ANSWER_SECONDS: Final = 60
_BLOBS: Final = "docker/registry/v2/blobs/sha256"


class Registry:
    """A registry that runs, until it is stopped.

    Args:
        folder: an empty folder for its files.

    Attributes:
        host: its host and port.
        authority: a PEM file with the authority that signed its certificate.
    """

    def __init__(self, folder: Path) -> None:
        now = dt.datetime.now(dt.UTC)
        authority = certificate_authority("gpugate-e2e-registry", now=now, lifetime=_LIFETIME)
        served = server_certificate(authority, (HOST,), now=now, lifetime=_LIFETIME)
        (port,) = free_ports(1)
        self.host = f"{HOST}:{port}"
        self.authority = folder / "ca.crt"
        self._folder = folder
        self._content = folder / "content"
        users, certificate, key = (folder / name for name in ("users", "server.crt", "server.key"))
        self.authority.write_bytes(authority.certificate)
        certificate.write_bytes(served.certificate)
        key.write_bytes(served.key)
        users.write_text(f"{USER}:{_HASH}\n", encoding="ascii")
        config = {
            "version": "0.1",
            "log": {"level": "info", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(self._content)}},
            "auth": {"htpasswd": {"realm": "e2e", "path": str(users)}},
            "http": {"addr": self.host, "secret": "e2e", "tls": {"certificate": str(certificate), "key": str(key)}},
        }
        # JSON is YAML.
        (folder / "config.yml").write_text(json.dumps(config), encoding="utf-8")
        self._process = self._started()

    def stop(self) -> None:
        """Stop it; its content stays."""
        self._process.stop()

    def start(self) -> None:
        """Start it again at the same address."""
        self._process = self._started()

    def login(self, password: str = _PASSWORD) -> Mapping[str, object]:
        """Return the configuration of Docker with credentials, as `docker login` writes it."""
        return {"auths": {self.host: {"auth": _basic(password)}}}

    def blob(self, digest: str) -> Path:
        """Return the file with the content of a blob or a manifest."""
        value = digest.removeprefix("sha256:")
        return self._content / _BLOBS / value[:2] / value / "data"

    def put_manifest(self, repository: str, selector: str, media_type: str, document: object) -> bytes:
        """Store a manifest or an index at a tag, and return its content."""
        data = json.dumps(document).encode()
        url = f"https://{self.host}/v2/{repository}/manifests/{selector}"
        headers = {"Content-Type": media_type, "Authorization": f"Basic {_basic(_PASSWORD)}"}
        request = urllib.request.Request(url, data, headers, method="PUT")
        urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._context()).close()  # noqa: S310 -- on loopback
        return data

    def put_blob(self, repository: str, data: bytes) -> dict[str, object]:
        """Store a blob, and return its digest and size, as a manifest has them."""
        reference = Reference(self.host, repository)
        client = Client(reference, Login(USER, _PASSWORD), _ANSWER_SECONDS, self.authority)
        return {"digest": client.push_blob(data), "size": len(data)}

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def _started(self) -> Process:
        command = [str(tools.path("registry")), "serve", str(self._folder / "config.yml")]
        # It would send its traces to an address on this machine.
        environment = {"PATH": os.environ["PATH"], "OTEL_TRACES_EXPORTER": "none"}
        process = Process("the registry", command, self._folder / "log", environment)
        try:
            process.wait_until(self._answers)
        except BaseException:
            process.stop()
            raise
        return process

    def _answers(self) -> bool:
        url = f"https://{self.host}/v2/"
        try:
            urllib.request.urlopen(url, timeout=_ANSWER_SECONDS, context=self._context()).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code == 401
        except OSError:
            return False
        return False


def _basic(password: str) -> str:
    return base64.b64encode(f"{USER}:{password}".encode()).decode()


@contextmanager
def running_registry(folder: Path) -> Iterator[Registry]:
    """Run a registry until the end.

    Raises:
        ProcessError: it ended, or did not become ready.
        ToolsError: the program is missing.
    """
    registry = Registry(folder)
    try:
        yield registry
    finally:
        registry.stop()
