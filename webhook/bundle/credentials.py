"""Credentials of registries, from the configuration file of Docker, which Podman, Helm, ORAS and image pull Secrets share.

Sources: Docker CLI v29 `cli/config/configfile` (keys and precedence), docker-credential-helpers v0.9 (the protocol of the
programs), and Kubernetes v1.36 `pkg/credentialprovider` (keys with a path).
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import read_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpugate.webhook.bundle.reference import Reference

_MOST_BYTES: Final = 1 << 20
_HELPER_SECONDS: Final = 30
# The configuration names a program `docker-credential-NAME`; a path would run any other one.
_HELPER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HUB_KEY: Final = "index.docker.io"
_TOKEN_USER: Final = "<token>"  # noqa: S105 -- what a helper calls the user of an identity token


class CredentialsError(GpugateError):
    """Credentials cannot be read; the text names the file or the program, and never its content."""


class Login(Struct, frozen=True):
    """Credentials of a registry.

    Attributes:
        user: the user; empty with an identity token.
        password: the password.
        identity_token: a refresh token, which the registry's token service exchanges.
    """

    user: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        """Return no credentials."""
        return "Login(...)"

    @property
    def basic(self) -> str:
        """User and password as HTTP's basic authentication has them."""
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may contain."""
        return tuple(filter(None, (self.password, self.identity_token, self.basic if self.user else "")))


class _Auth(msgspec.Struct, rename=str.lower):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""


class _Config(msgspec.Struct):
    auths: dict[str, _Auth | None] = {}
    helpers: dict[str, str] = msgspec.field(name="credHelpers", default_factory=dict)
    store: str = msgspec.field(name="credsStore", default="")


class _Answer(msgspec.Struct):
    user: str = msgspec.field(name="Username", default="")
    secret: str = msgspec.field(name="Secret", default="")


def docker_config(environ: Mapping[str, str], home: Path) -> Path:
    """Return where Docker's configuration is; the file need not exist."""
    named = environ.get("DOCKER_CONFIG")
    return (Path(named) if named else home / ".docker") / "config.json"


def find_login(reference: Reference, file: Path) -> Login | None:
    """Return the credentials for an artifact; None if the configuration has none, or does not exist.

    A program `docker-credential-NAME` runs only if the configuration names it for the registry, or for all.

    Raises:
        CredentialsError: the file or the answer of the program is invalid, or the program fails.
    """
    try:
        data = read_named(file, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CredentialsError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None
    try:
        config = read_json(msgspec.json.Decoder(_Config).decode, data)
    except (msgspec.DecodeError, UnicodeError):
        # The message of the decoder could quote a value.
        raise CredentialsError(f"{file}: not a configuration of Docker: write it with `docker login`") from None
    keys = [*_keys(reference)]
    helpers = {_normal(key): name for key, name in config.helpers.items()}
    helper = next((helpers[key] for key in keys if key in helpers), config.store)
    if helper:
        login = _ask(helper, _HUB_URL if reference.registry == "docker.io" else reference.registry, file)
        if login is not None:
            return login
    logins = {_normal(key): auth for key, auth in config.auths.items() if auth is not None}
    auth = next((logins[key] for key in keys if key in logins), None)
    return _login(auth, file) if auth is not None else None


_HUB_URL: Final = f"https://{_HUB_KEY}/v1/"


def _keys(reference: Reference) -> Iterator[str]:
    """Yield the keys of a configuration that apply, from the repository to the registry."""
    parts = reference.repository.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join([reference.registry, *parts[:count]])
    yield reference.registry
    if reference.registry == "docker.io":
        yield _HUB_KEY


def _normal(key: str) -> str:
    """Return a key without scheme, trailing slash and the version of an API, which old versions of Docker wrote."""
    bare = key.removeprefix("https://").removeprefix("http://").rstrip("/")
    return bare.removesuffix("/v1").removesuffix("/v2")


def _login(auth: _Auth, file: Path) -> Login | None:
    user, password = auth.username, auth.password
    if auth.auth:
        try:
            user, _, password = base64.b64decode(auth.auth, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeError, ValueError):
            raise CredentialsError(f"{file}: invalid base64 in `auth`: log in again with `docker login`") from None
    if auth.identitytoken:
        return Login(identity_token=auth.identitytoken)
    return Login(user, password.rstrip("\0")) if user else None


def _ask(helper: str, registry: str, file: Path) -> Login | None:
    if not _HELPER.fullmatch(helper):
        raise CredentialsError(f"{file}: invalid name of a credential helper: write the part after docker-credential-")
    program = f"docker-credential-{helper}"
    try:
        ran = subprocess.run(  # noqa: S603 -- the program that the user's own configuration names
            [program, "get"], input=registry.encode(), capture_output=True, timeout=_HELPER_SECONDS, check=False
        )
    except FileNotFoundError:
        raise CredentialsError(f"{file}: {program} is not installed, or not in PATH") from None
    except OSError as error:
        raise CredentialsError(f"{program}: {(error.strerror or 'cannot be run').lower()}") from None
    except subprocess.TimeoutExpired:
        raise CredentialsError(f"{program}: no answer within {_HELPER_SECONDS} s") from None
    if ran.returncode:
        # The protocol reports absent credentials by this text on standard output. Other text may contain anything.
        if b"credentials not found" in ran.stdout[:_MOST_BYTES]:
            return None
        raise CredentialsError(f"{program}: failed with exit code {ran.returncode}: run `{program} get` to see why")
    try:
        answer = read_json(msgspec.json.Decoder(_Answer).decode, ran.stdout[:_MOST_BYTES])
    except (msgspec.DecodeError, UnicodeError):
        raise CredentialsError(f"{program}: the answer is not that of a credential helper") from None
    if not answer.secret:
        return None
    if answer.user == _TOKEN_USER:
        return Login(identity_token=answer.secret)
    return Login(answer.user, answer.secret)
