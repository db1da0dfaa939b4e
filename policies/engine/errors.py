"""The exceptions of the engine; findings are values, these are for people who configure or run it.

GpugateError
└── ConfigError          the configuration is refused: what is wrong, at which field, and what to write instead
OutOfTimeError           the time for a request is over
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


class OutOfTimeError(BaseException):
    """The time to evaluate a request was over; there is no verdict. `policy` is the one at that time, where known.

    No `Exception`, because it may be raised inside a policy, which may catch those.
    """

    def __init__(self, policy: str = "") -> None:
        super().__init__(f"out of time at {policy}")
        self.policy = policy
