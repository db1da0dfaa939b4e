"""The exceptions of the engine; findings are values, these are for people who configure or run it.

GpugateError
└── ConfigError          the configuration is refused: what is wrong, at which field, and what to write instead
OutOfTimeError           whoever asked wanted no more policies to be called
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.field import render

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path


class GpugateError(Exception):
    """Something a user can mend; its text is shown as it is."""


class ConfigError(GpugateError):
    """The policy configuration is refused at `path`."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{render(path)}: {message}" if path else message)
        self.path = path
        self.message = message


class OutOfTimeError(Exception):
    """The time to judge a request was over before `policy` could be called; there is no verdict."""

    def __init__(self, policy: str) -> None:
        super().__init__(f"out of time before {policy}")
        self.policy = policy
