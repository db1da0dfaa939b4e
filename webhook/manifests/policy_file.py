"""Reads the policy configuration from its file, and says where in it a mistake is.

The file is a PolicyConfig, or the manifest of the ConfigMap that carries one to the webhook, so that one file rules both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from gpugate.policies.engine.config import PolicyConfig, parse_config
from gpugate.policies.engine.errors import ConfigError, GpugateError
from gpugate.policies.sdk.field import render

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


def load_policy_file(path: Path | None, use: Callable[[PolicyConfig], T]) -> T:
    """Read the configuration and return what is made of it; without a file, every policy has its shipped mode.

    Args:
        path: the file.
        use: what makes something of it, such as `bind` with the catalogue in hand; it may refuse the configuration too.

    Raises:
        PolicyFileError: the file cannot be read, is not YAML, or is refused; says where and what to write.
    """
    return use(PolicyConfig()) if path is None else parse_policy_file(path, read_policy_file(path), use)


def read_policy_file(path: Path) -> bytes:
    """Read the bytes of the configuration.

    Raises:
        PolicyFileError: the file cannot be read, or is larger than a ConfigMap.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_POLICY_FILE + 1)
    except OSError as error:
        raise PolicyFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(data) > MAX_POLICY_FILE:
        raise PolicyFileError(f"{path}: larger than {MAX_POLICY_FILE >> 20} MiB, the most that a ConfigMap holds")
    return data


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
