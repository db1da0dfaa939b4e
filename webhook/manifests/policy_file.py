"""Reads the policy configuration from its file, and says where in it a mistake is.

The file is a PolicyConfig, or the manifest of the ConfigMap that carries one to the webhook, so that one file rules both.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.policies.engine.config import PolicyConfig, parse_config
from gpugate.policies.engine.errors import ConfigError, GpugateError
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import read_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


T = TypeVar("T")

# `k8s.io/api` core/v1 types.go, ConfigMap and MaxSecretSize (v0.36).
MAX_POLICY_FILE: Final = 2**20
# The generation of the rules without a policy file: every policy has its shipped mode.
SHIPPED: Final = "shipped"
_DIGITS: Final = 12


class PolicyFileError(GpugateError):
    """The policy file cannot be read, or what it says is refused; the text begins with file, line and column."""


def load_policy_file(path: Path | None, use: Callable[[PolicyConfig], T], data: bytes | None = None) -> T:
    """Read the configuration and return what is made of it; without a file, every policy has its shipped mode.

    Args:
        path: the file.
        data: its content where that is not the file on disk.
        use: what makes something of it, such as `bind` with the catalogue in hand; it may refuse the configuration too.

    Raises:
        PolicyFileError: the file cannot be read, is not YAML, or is refused; says where and what to write.
    """
    if path is None:
        return use(PolicyConfig())
    return parse_policy_file(path, read_policy_file(path) if data is None else data, use)


def read_policy_file(path: Path) -> bytes:
    """Read the bytes of the configuration.

    Raises:
        PolicyFileError: the file cannot be read, or is larger than a ConfigMap.
    """
    try:
        return read_named(path, MAX_POLICY_FILE)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise PolicyFileError(
                f"{path}: {(error.strerror or '').removeprefix('is ')}, the most that a ConfigMap holds"
            ) from None
        raise PolicyFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def generation(data: bytes) -> str:
    """Name the bytes of a configuration, for logs and metrics: the first 12 hexadecimal digits of their SHA-256."""
    import hashlib  # noqa: PLC0415 -- loads OpenSSL, which `check` does without

    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def parse_policy_file(path: Path, data: bytes, use: Callable[[PolicyConfig], T]) -> T:
    """Return what is made of the configuration in the bytes of a file; as `load_policy_file`, without reading it."""
    from gpugate.webhook.manifests.policy_source import policy_source  # noqa: PLC0415 -- costs start-up time

    source = policy_source(path, data)
    try:
        return use(parse_config(source.document.value))
    except ConfigError as error:
        line, column = source.place(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        raise PolicyFileError(f"{path}:{line}:{column}: {where}{error.message}") from None
