"""What pytest loads: flags, settings, markers and fixtures.

Without `--gpugate`, `gpugate = true` or a fixture of ours in a test, nothing is collected and no other module of gpugate
is imported, so that installing gpugate neither slows nor changes anybody's tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from gpugate.webhook.testing.pytest_plugin.fixtures import (
    ANSWERS,
    gpu_pod,
    gpugate,
    gpugate_chart,
    manifest,
    node_pool,
    resource_claim_template,
    scaled_object,
)

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["gpu_pod", "gpugate", "gpugate_chart", "manifest", "node_pool", "resource_claim_template", "scaled_object"]

_MARKER: Final = (
    "gpugate_chart(path, values=(), set=()): run the test once for each values file, with what the chart becomes in the "
    "fixture gpugate_chart"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add flags and settings."""
    group = parser.getgroup("gpugate", "policy tests")
    add = group.addoption
    add("--gpugate", action="store_true", help="collect *.gpugate-test.yaml and manifests with `# expect: ID`")
    add("--gpugate-policy-file", metavar="FILE", help="the policy file (default: that of the project file)")
    add("--gpugate-update", action="store_true", help="rewrite the expectations of tests that fail")
    add(
        "--gpugate-coverage",
        nargs="?",
        const=0.0,
        type=_percent,
        metavar="MIN",
        help="say which policies have a passing and a failing test; fail below MIN percent (write --gpugate-coverage=MIN)",
    )
    parser.addini("gpugate", "collect policy tests without --gpugate", type="bool", default=False)
    parser.addini("gpugate_policy_file", "the policy file, from the root of the tests", default="")
    parser.addini(
        "gpugate_manifests", "patterns, from the root of the tests: each object is a test", type="linelist", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect policy tests if a flag or a setting enables it."""
    config.addinivalue_line("markers", _MARKER)
    wanted = config.getoption("--gpugate") or config.getini("gpugate")
    if not wanted:
        for flag in ("--gpugate-update", "--gpugate-coverage"):
            # A coverage of 0 was asked for too, and equals False.
            if not any(config.getoption(flag) is unset for unset in (None, False)):
                raise pytest.UsageError(f"{flag} is about collected policy tests: add --gpugate")
        return
    from gpugate.webhook.testing.pytest_plugin.items import PolicyTests  # noqa: PLC0415 -- only for those who want it

    config.pluginmanager.register(PolicyTests(config), "gpugate-policy-tests")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of a chart once for each of its values files."""
    marker = metafunc.definition.get_closest_marker("gpugate_chart")
    if marker is None or "gpugate_chart" not in metafunc.fixturenames:
        return
    from gpugate.webhook.testing.pytest_plugin.charts import variants  # noqa: PLC0415 -- only for those who want it

    charts = variants(marker)
    metafunc.parametrize("gpugate_chart", charts, ids=[chart.label for chart in charts], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the findings in the objects that a failing test evaluated."""
    report = yield
    if report.when == "call" and report.failed:
        report.sections += [(f"gpugate: {answer.title}", answer.report) for answer in item.stash.get(ANSWERS, ())]
    return report


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise pytest.UsageError(
            f"--gpugate-coverage {text}: write a number from 0 to 100, as in --gpugate-coverage=80, and files before it"
        )
    return value
