"""Runs `gpugate check` in this process, with the project's settings, and returns its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.cli import check, check_flags, project_flags
from gpugate.webhook.pytest_plugin.surroundings import policy_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from gpugate.webhook.report.located import Report


def checked(arguments: Sequence[str], config: pytest.Config) -> Report:
    """Judge what the arguments of `gpugate check` name.

    Raises:
        GpugateError: they, the project file or the policy file are refused.
    """
    file = policy_file(config)
    chosen = ["--policy-file", str(file)] if file else []
    args, project = project_flags.parse(check_flags.parser(), "check", ["--quiet", *chosen, *arguments])
    result, _ = check.judged(args, project)
    return result.report
