"""The configuration and caches that all policy tests of a run share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.testing import command as test
from gpugate.webhook.testing.setup import Setup

if TYPE_CHECKING:
    from pathlib import Path

_SETUP = pytest.StashKey[Setup]()


def surroundings(config: pytest.Config) -> Setup:
    """Return the surroundings of a run of pytest.

    Raises:
        pytest.UsageError: the policy file, or the project file, is refused.
    """
    if _SETUP not in config.stash:
        try:
            _, project = project_flags.parse(test.parser(), "test", [])
            ruleset, catalog = options.bound(policy_file(config), project.own)
            config.stash[_SETUP] = Setup(ruleset.config, catalog=catalog)
        except GpugateError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SETUP]


def policy_file(config: pytest.Config) -> Path | None:
    """Return the policy file: of the flag, of pytest's settings, else of the project file or its variable."""
    flag: str | None = config.getoption("--gpugate-policy-file")
    if flag:
        return config.invocation_params.dir / flag
    named = config.getini("gpugate_policy_file")
    if named:
        return config.rootpath / str(named)
    args, _ = project_flags.parse(test.parser(), "test", [])
    configured: Path | None = args.policy_file
    return configured


def relative_name(file: Path) -> str:
    """Return the name of a file, relative to the working directory if it is below it."""
    here = os.path.relpath(file)
    return str(file) if here.startswith(os.pardir) else here
