"""The commands of `docs/install.md`, run as they are written there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml
from chart.installed.release import NAME, ROOT
from chart.installed.requests import eventually, gpu_pod, pass_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage


def commands(file: str, heading: str) -> list[str]:
    """Return the commands below a heading, each on a line of its own."""
    return re.findall(r"^\$ (.*)$", "".join(blocks(file, heading, "console")), re.MULTILINE)


def blocks(file: str, heading: str, language: str) -> list[str]:
    """Return the blocks of a language below a heading."""
    text = (ROOT / file).read_text(encoding="utf-8")
    section = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"{file} has no {heading}"
    return re.findall(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)


def tolerates(stage: Stage, tenant: str) -> bool:
    stored = stage.api.create(gpu_pod(tenant), dry_run=True).body
    return "nvidia.com/gpu" in [each["key"] for each in stored["spec"]["tolerations"]]


def test_one_policy(
    stage: Stage,
    prepare: Callable[..., AbstractContextManager[Release]],
    tenant: str,
    figures: list[str],
) -> None:
    install, test, doctor, upgrade, uninstall = commands("docs/install.md", "## Try one policy")
    with prepare(namespace=NAME) as release:
        release.ran(install)
        figures.append(f"chart: `{install}`: {release.seconds:.1f} s")
        release.ran(test)
        assert "0 errors, 0 warnings" in release.ran(doctor)
        pass_by(stage, tenant)
        (policy,) = blocks("docs/install.md", "## Try one policy", "yaml values")
        release.add_values(yaml.safe_load(policy))
        release.ran(upgrade)
        eventually(lambda: tolerates(stage, tenant))
        release.ran(uninstall)
        pass_by(stage, tenant)


def test_without_a_release(
    stage: Stage, prepare: Callable[..., AbstractContextManager[Release]], tenant: str, figures: list[str]
) -> None:
    documented = [
        line for line in commands("docs/install.md", "# Install the webhook in a cluster") if "kubectl" in line
    ]
    with prepare() as release:
        create, apply = (line.replace("namespace gpugate", f"namespace {release.namespace}") for line in documented)
        release.ran(create)
        release.ran(apply)
        release.ran(f"gpugate webhook wait --namespace {release.namespace}")
        figures.append(f"chart: `gpugate webhook wait` after `kubectl apply`: {release.seconds:.1f} s")
        release.ran(f"gpugate doctor --namespace {release.namespace}")
        pass_by(stage, tenant)
        _, _, *removal = commands("docs/install.md", "## Uninstall")
        for line in removal[:3]:
            release.ran(re.sub(r"--namespace \w+", f"--namespace {release.namespace}", line))
            pass_by(stage, tenant)
