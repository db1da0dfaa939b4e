from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.manifests.policy_file import PolicyFileError, load_policy_file

if TYPE_CHECKING:
    from pathlib import Path


def as_it_is(config: PolicyConfig) -> PolicyConfig:
    return config


HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"


def test_without_a_file_every_policy_is_as_shipped() -> None:
    assert load_policy_file(None, as_it_is) == PolicyConfig()


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{HEAD}mode: audit\npolicies:\n  pods/mig-without-claim: {{mode: off}}\n")

    config = load_policy_file(file, as_it_is)

    assert (config.mode, config.policies["pods/mig-without-claim"].mode) == ("audit", False)


EXEMPTION = "exemptions:\n  - policies: [pods/*]\n    reason: moving\n    owner: ml\n"
NAMED = "platform: {cluster: {name: gpu-1}}\n"
REFUSED = {
    "not YAML": ("a: b: c\n", "1:5: not YAML: mapping values are not allowed in this context: indent"),
    "nothing": ("", " holds 0 documents: write one PolicyConfig"),
    "two documents": (f"{HEAD}---\n{HEAD}", " holds 2 documents: write one PolicyConfig"),
    "a repeated key": (f"{HEAD}mode: warn\nmode: audit\n", "4:1: the key mode occurs twice: kubectl keeps"),
    "a list": ("- a\n", "1:1: the policy file is not a YAML mapping; start it with `apiVersion: gpugate.dev/v1`"),
    "another kind": ("apiVersion: gpugate.dev/v1\nkind: Policy\n", "2:7: kind: must be PolicyConfig"),
    "an unknown key": (f"{HEAD}polices: {{}}\n", "3:10: polices: unknown key; did you mean `policies`?"),
    "an unknown policy": (
        f"{HEAD}policies:\n  pods/missing-gpu-tolerations: {{mode: warn}}\n",
        '4:33: policies["pods/missing-gpu-tolerations"]: unknown policy `pods/missing-gpu-tolerations`; did you mean',
    ),
    "an unknown parameter": (
        f"{HEAD}policies:\n  nodepools/single-instance-type:\n    params:\n      atleast: 3\n",
        '6:16: policies["nodepools/single-instance-type"].params.atleast: unknown key; did you mean `at_least`?',
    ),
    "a selector without a label": (
        f"{HEAD}clusters:\n  - match: {{}}\n    mode: warn\n",
        "4:12: clusters[0].match: is empty: write what holds in every cluster outside `clusters`, or a label here",
    ),
    "a selector that matches no cluster": (
        f"{HEAD}clusters:\n  - match: {{env: prod, region: [eu-*, eu west]}}\n",
        "4:39: clusters[0].match.region[1]: matches no cluster: names, regions and labels of clusters have letters",
    ),
    "a selector without a value": (
        f"{HEAD}clusters:\n  - match: {{env: []}}\n",
        "4:18: clusters[0].match.env: matches no",
    ),
    "a selector of no label": (
        f"{HEAD}clusters:\n  - match: {{'env ': a}}\n",
        '4:21: clusters[0].match["env "]: matches no',
    ),
    "an unknown key of a cluster": (
        f"{HEAD}clusters:\n  - match: {{env: prod}}\n    polices: {{}}\n",
        "5:14: clusters[0].polices: unknown key; did you mean `policies`?",
    ),
    "a section that holds for all clusters": (
        f"{HEAD}clusters:\n  - match: {{env: prod}}\n    excluded_namespaces: [a]\n",
        "5:26: clusters[0].excluded_namespaces: unknown key",
    ),
    "a property of the platform that the API server depends on": (
        f"{HEAD}clusters:\n  - match: {{env: prod}}\n    platform:\n      taints: {{}}\n",
        "6:15: clusters[0].platform.taints: unknown key",
    ),
    "an unknown policy of another cluster": (
        f"{HEAD}clusters:\n  - match: {{env: prod}}\n    policies:\n      pods/mig-without-clam: {{mode: warn}}\n{NAMED}",
        '6:30: clusters[0].policies["pods/mig-without-clam"]: unknown policy `pods/mig-without-clam`; did you mean',
    ),
    "an invalid parameter of another cluster": (
        (
            f"{HEAD}clusters:\n  - match: {{env: prod}}\n    policies:\n"
            "      nodepools/single-instance-type: {params: {at_least: {spot: few}}}\n" + NAMED
        ),
        '6:66: clusters[0].policies["nodepools/single-instance-type"].params.at_least.spot: expected `int`, got `str`',
    ),
    "an exemption of a cluster without a reason": (
        (
            f"{HEAD}clusters:\n  - match: {{env: prod}}\n    exemptions:\n"
            "      - {policies: [pods/*], reason: '', owner: ml, expires: 2027-03-31}\n"
        ),
        "6:30: clusters[0].exemptions[0].reason: must not be empty",
    ),
    "an unknown cluster": (
        f"{HEAD}clusters:\n  - match: {{env: prod}}\n",
        "3:1: clusters: depends on the cluster, but its name and labels are unknown: add --cluster-name NAME",
    ),
    "an exemption without a date": (f"{HEAD}{EXEMPTION}", "4:5: exemptions[0]: missing `expires`, which is required"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_with_file_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)

    with pytest.raises(PolicyFileError) as caught:
        load_policy_file(file, lambda config: bind(CATALOG, config))

    assert str(caught.value).removeprefix(f"{file}:").startswith(message)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match=r"policy\.yaml: no such file or directory"):
        load_policy_file(tmp_path / "policy.yaml", as_it_is)


def test_a_file_larger_than_a_config_map_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{HEAD}#{'x' * 2**20}\n")
    with pytest.raises(PolicyFileError, match=r"policy\.yaml: larger than 1 MiB, the most that a ConfigMap holds"):
        load_policy_file(file, as_it_is)
