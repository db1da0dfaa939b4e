"""References to artifacts in an OCI registry, such as `ghcr.io/acme/gpu-policies:v3@sha256:...`.

The grammar of repositories, tags and digests is that of the OCI distribution specification v1.1.1 (`spec.md`, Pulling
Manifests) and of the image specification v1.1.1 (`descriptor.md`, Digests).
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Final, NamedTuple, Self

from gpugate.policies.engine.config import GpugateError

_SCHEME: Final = "oci://"  # as Helm and Flux write references
_HOST: Final = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII | re.IGNORECASE)
_REPOSITORY: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MOST: Final = 512
_SHOWN: Final = 120
_EXAMPLE: Final = (
    "write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:..., such as ghcr.io/acme/gpu-policies:v3"
)
# Docker's own name of Docker Hub is not the name of the registry behind it.
_HUB: Final = "docker.io"
_HUB_REGISTRY: Final = "registry-1.docker.io"


class InvalidReferenceError(GpugateError):
    """A reference is invalid; the text says why and what to write."""


class Reference(NamedTuple):
    """An artifact in a registry.

    Attributes:
        registry: host and port, as the user wrote them.
        repository: the repository in the registry.
        tag: the tag; empty if there is none.
        digest: the digest of the manifest, as `sha256:` and 64 hexadecimal digits; empty if there is none. It takes
            precedence over the tag.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    @property
    def selector(self) -> str:
        """What a registry is asked for: the digest, else the tag."""
        return self.digest or self.tag

    @property
    def host(self) -> str:
        """Host and port to connect to."""
        return _HUB_REGISTRY if self.registry == _HUB else self.registry

    @property
    def is_local(self) -> bool:
        """Whether the registry is on this machine, where HTTP without TLS is accepted."""
        match = _HOST.fullmatch(self.registry)
        return match is not None and is_loopback(match["name"])

    def with_digest(self, digest: str) -> Self:
        """Return the same artifact pinned by digest."""
        return self._replace(digest=digest)

    def __str__(self) -> str:
        """Return the reference as users write it."""
        return f"{self.name}{f':{self.tag}' if self.tag else ''}{f'@{self.digest}' if self.digest else ''}"


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, without a lookup of its name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def digest_of(data: bytes) -> str:
    """Return the digest of some content."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_digest(text: str) -> bool:
    """Tell whether a text is a SHA-256 digest."""
    return _DIGEST.fullmatch(text) is not None


def parse_reference(text: str) -> Reference:
    """Parse a reference with a tag, a digest or both; `oci://` before it is accepted.

    Raises:
        InvalidReferenceError: it is invalid, or has neither tag nor digest.
    """
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."

    def refused(reason: str) -> InvalidReferenceError:
        return InvalidReferenceError(f"invalid reference {shown!r}: {reason}; {_EXAMPLE}")

    if len(text) > _MOST:
        raise refused(f"longer than {_MOST} characters")
    rest, has_digest, digest = text.removeprefix(_SCHEME).partition("@")
    if "://" in rest:
        raise refused("a URL")
    if "@" in digest:
        raise refused("contains a user, or two digests")
    registry, has_path, path = rest.partition("/")
    repository, has_tag, tag = path.partition(":")
    host = _HOST.fullmatch(registry)
    if not has_path or host is None or not _is_registry(host):
        raise refused("the registry is missing or invalid")
    if not _REPOSITORY.fullmatch(repository):
        raise refused("the repository is missing, or has other characters than lower-case letters, digits and . _ - /")
    if has_tag and not _TAG.fullmatch(tag):
        raise refused("the tag is invalid")
    if has_digest and not is_digest(digest):
        raise refused("the digest is not sha256: and 64 hexadecimal digits")
    if not tag and not digest:
        raise refused("neither a tag nor a digest")
    return Reference(registry, repository, tag, digest)


def _is_registry(host: re.Match[str]) -> bool:
    """Tell whether a first part is a registry, by the rule of Docker: it has a dot or a port, or is `localhost`."""
    name, port = host["name"], host["port"]
    valid = not port or 0 < int(port) < 1 << 16
    return valid and ("." in name or "[" in name or port is not None or name == "localhost")
