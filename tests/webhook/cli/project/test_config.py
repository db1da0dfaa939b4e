from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse_config
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.platform import Platform
from gpugate.webhook.config import starter
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.project.read import parse_project
from gpugate.webhook.project.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., Any]

POLICY = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
mode: warn
target: {kubernetes: "1.35"}
policies:
  pods/missing-gpu-toleration: {mode: enforce}
  scaling/*:
    mode: audit
  nodepools/single-instance-type:
    params:
      at_least: {training: 3}
exemptions:
  - {policies: ["pods/*"], reason: r, owner: o, expires: 2027-03-31}
"""


@pytest.fixture
def lines(gpugate: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `config show --origin` prints of a project."""
    (project / ".gpugate.yaml").write_text("policy_file: policy.yaml\nnamespace: a\nselect: [pods/*]\n")
    (project / "policy.yaml").write_text(POLICY)
    monkeypatch.setenv("GPUGATE_SELECT", "scaling/*")
    flags = ("--fail-on", "warn", "--baseline", "b.json", "-f", "c", "b")
    out: str = gpugate("config", "show", "--origin", *flags).out
    return out.splitlines()


ORIGINS = {
    "a flag": "fail_on: warn  # --fail-on",
    "a flag with a file": "baseline: b.json  # --baseline",
    "paths, and those of -f": "paths: [b, c]  # PATH",
    "a variable": "select: [scaling/*]  # GPUGATE_SELECT",
    "the project file": "namespace: a  # .gpugate.yaml:2",
    "a path of it": "policy_file: policy.yaml  # .gpugate.yaml:1",
    "nobody": "complete_context: false  # default",
    "the target": '  kubernetes: "1.35"  # policy.yaml:4',
    "a target that nobody says": "  keda: ",
    "an exemption": "  - {policies: [pods/*], reason: r, owner: o, ",
}


@pytest.mark.parametrize("line", ORIGINS.values(), ids=ORIGINS)
def test_each_value_says_where_it_comes_from(line: str, lines: list[str]) -> None:
    assert [found for found in lines if found.startswith(line)] != [], lines[-3:]


MODES = {
    "of its own": ("pods/missing-gpu-toleration", "    mode: enforce  # policy.yaml:6"),
    "of a pattern": ("scaling/unbounded-replicas", "    mode: audit  # policy.yaml:8"),
    "of the ceiling": ("pods/missing-cost-labels", "    mode: warn  # policy.yaml:3"),
    "as shipped": ("nodepools/legacy-key", "    mode: warn  # shipped"),
}


@pytest.mark.parametrize(("policy", "line"), MODES.values(), ids=MODES)
def test_each_mode_says_where_it_comes_from(policy: str, line: str, lines: list[str]) -> None:
    assert lines[lines.index(f"  {policy}:") + 1] == line


def test_each_parameter_says_where_it_comes_from(lines: list[str]) -> None:
    at = lines.index("  nodepools/single-instance-type:")
    found = [line.partition("  # ")[2] for line in lines[at:] if line.startswith("      at_least: ")]

    assert found[0] == "policy.yaml:11"


def test_what_is_shown_is_what_is_meant(lines: list[str]) -> None:
    settings, policies = (part.value for part in read_text("shown", "\n".join(lines)) if isinstance(part, Document))

    ruleset = bind(CATALOG, parse_config(policies))
    assert isinstance(settings, dict)
    assert set(settings) == {setting.key for setting in SETTINGS}
    assert {rule.policy.id: rule.mode.word for rule in ruleset.rules}["nodepools/legacy-key"] == "warn"


def test_without_origins_the_projects_policy_file_is_shown(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("policy_file: policy.yaml\n")
    (project / "policy.yaml").write_text(POLICY)

    assert "kubernetes: '1.35'" in gpugate("config", "show").out.replace('"', "'")


def test_init_writes_every_key_in_a_comment_but_the_policy_file(gpugate: Run, project: Path) -> None:
    ran = gpugate("config", "init")

    text = (project / ".gpugate.yaml").read_text()
    assert (ran.code, ran.out) == (0, "wrote .gpugate.yaml\nwrote policy.yaml\n")
    assert [setting.key for setting in SETTINGS if f"# {setting.key}: " not in text] == ["policy_file"]
    assert "\npolicy_file: policy.yaml\n" in text
    assert gpugate("check", "manifests").code == 0


def test_the_policy_file_of_init_sets_the_conventions_as_they_are_shipped(gpugate: Run, project: Path) -> None:
    gpugate("config", "init")
    config = starter.configuration()
    ruleset = bind(CATALOG, config)

    assert (project / "policy.yaml").read_text() == starter.POLICY_FILE
    assert config.platform.workload_classes == Platform().classes
    assert {rule.policy.id: rule.params for rule in ruleset.rules} == {
        rule.policy.id: rule.params for rule in bind(CATALOG, PolicyConfig()).rules
    }
    assert [rule.policy.id for rule in ruleset.rules if not rule.is_configured] == []


def test_init_keeps_a_policy_file(gpugate: Run, project: Path) -> None:
    (project / "policy.yaml").write_text(POLICY)

    ran = gpugate("config", "init")

    assert (ran.code, ran.out) == (0, "wrote .gpugate.yaml\nkept policy.yaml\n")
    assert (project / "policy.yaml").read_text() == POLICY


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_each_line_of_it_may_be_uncommented(setting: Any, gpugate: Run, project: Path) -> None:
    gpugate("config", "init")
    text = (project / ".gpugate.yaml").read_text().replace(f"# {setting.key}: ", f"{setting.key}: ")
    (document,) = (part.value for part in read_text("shown", text) if isinstance(part, Document))

    assert getattr(parse_project(document), setting.key) is not None


def test_init_overwrites_nothing(gpugate: Run, project: Path) -> None:
    (project / ".gpugate.yaml").write_text("paths: [a]\n")

    ran = gpugate("config", "init")

    assert (ran.code, ran.err) == (
        2,
        "error: .gpugate.yaml: already exists; gpugate does not overwrite it, so edit the file\n",
    )
    assert (project / ".gpugate.yaml").read_text() == "paths: [a]\n"


def test_the_schema_of_the_project_file_is_published_as_it_is_printed(gpugate: Run) -> None:
    published = Path(__file__).parents[4] / "docs" / "schemas" / "project-v1.schema.json"

    assert published.read_text(encoding="utf-8") == gpugate("config", "schema", "project").out


FLEET = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
policies:
  pods/*: {mode: enforce}
  nodepools/single-instance-type: {params: {at_least: {training: 3}}}
clusters:
  - match: {env: dev}
    mode: audit
    target: {kubernetes: "1.35"}
  - match: {region: eu-*}
    policies:
      nodepools/single-instance-type: {mode: warn}
    exemptions:
      - {policies: [pods/*], reason: r, owner: o, expires: 2027-03-31}
"""
OF_CLUSTERS = {
    "of an entry that matches": (
        ("gpu-1", "env=dev"),
        "pods/missing-gpu-toleration",
        "    mode: audit  # policy.yaml:8",
    ),
    "of the whole file": (("gpu-1", "env=prod"), "pods/missing-gpu-toleration", "    mode: enforce  # policy.yaml:4"),
    "as shipped": (("gpu-1", "env=prod"), "nodepools/legacy-key", "    mode: warn  # shipped"),
}


@pytest.mark.parametrize(("cluster", "policy", "line"), OF_CLUSTERS.values(), ids=OF_CLUSTERS)
def test_config_show_of_a_cluster(
    cluster: tuple[str, str], policy: str, line: str, gpugate: Run, project: Path
) -> None:
    (project / "policy.yaml").write_text(FLEET)

    shown = gpugate("config", "show", "-p", "policy.yaml", "--cluster", cluster[0], "--cluster-label", cluster[1])

    lines = shown.out.splitlines()
    assert (shown.code, lines[lines.index(f"  {policy}:") + 1]) == (0, line)


def test_config_show_says_which_entries_apply(gpugate: Run, project: Path) -> None:
    (project / "policy.yaml").write_text(FLEET)

    shown = gpugate("config", "show", "-p", "policy.yaml", "--cluster", "gpu-1", "--cluster-region", "eu-west-1").out

    assert shown.startswith(
        "# Policy file: policy.yaml\n# Cluster: name=gpu-1, region=eu-west-1\n"
        "# clusters[0] (policy.yaml:7) does not apply: env is not set, not dev\n"
        "# clusters[1] (policy.yaml:10) applies\napiVersion: gpugate.dev/v1\n"
    )
    (exemption,) = (line for line in shown.splitlines() if line.startswith("  - {policies"))
    assert exemption.endswith("}  # policy.yaml:14")
    assert '  kubernetes: "1.36"  # default' in shown


def test_the_policy_file_of_a_cluster_can_be_used_alone(gpugate: Run, project: Path) -> None:
    (project / "policy.yaml").write_text(FLEET)
    of_cluster = ("-p", "policy.yaml", "--cluster", "gpu-1", "--cluster-label", "env=dev")
    shown = gpugate("config", "show", *of_cluster).out
    (project / "dev.yaml").write_text(shown)

    again = gpugate("config", "show", "-p", "dev.yaml", "--cluster", "gpu-1").out

    shown_document, again_document = (next(iter(read_text("shown", text))) for text in (shown, again))
    assert isinstance(shown_document, Document)
    assert isinstance(again_document, Document)
    assert shown_document.value == again_document.value


def test_a_file_is_checked_for_a_cluster(gpugate: Run, project: Path) -> None:
    (project / "policy.yaml").write_text(FLEET)
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  containers:\n  - name: a\n    image: a\n"
    (project / "pod.yaml").write_text(f"{pod}    env: [{{name: NVIDIA_VISIBLE_DEVICES, value: all}}]\n")
    flags = ("check", "-p", "policy.yaml", "--as-mode", "as-is", "--select", "pods/hidden-gpu-access", "pod.yaml")

    everywhere, in_dev = (gpugate(*flags), gpugate(*flags, "--cluster-label", "env=dev"))

    assert (everywhere.code, in_dev.code) == (1, 0)


WRONG_CLUSTERS = {
    "a name": (("--cluster-name", "a/b"), "--cluster-name a/b: write letters and digits"),
    "a label without a value": (("--cluster-label", "env"), "--cluster-label env: write KEY=VALUE"),
}


@pytest.mark.parametrize(("flags", "message"), WRONG_CLUSTERS.values(), ids=WRONG_CLUSTERS)
def test_an_invalid_cluster_is_refused(flags: tuple[str, ...], message: str, gpugate: Run) -> None:
    ran = gpugate("check", *flags)

    assert (ran.code, message in ran.err) == (2, True)
