"""What tests of case files expect, against what the engine says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml

from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.cli.identity import identity_flags
from gpugate.webhook.cli.main import main
from gpugate.webhook.config import starter
from gpugate.webhook.testing.run import run_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.testing.cases import Case
    from gpugate.webhook.testing.setup import Setup

NO_LIMIT = "{base: pool.yaml, patch: {spec: {limits: null}}}"
TOLERATION = "{op: add, path: /spec/tolerations, value: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}"
LIMIT = "nodepools/missing-gpu-limit"
TOLERATES = "pods/missing-gpu-toleration"


def only(object_: str, expect: str, more: str = "") -> str:
    return f"tests:\n  - name: it\n    object: {object_}\n    expect: {expect}\n{more}"


@pytest.mark.parametrize(
    ("object_", "expect"),
    [
        ("pool.yaml", "{}"),
        ("pool.yaml", "{allow: true}"),
        ("{file: both.yaml, kind: NodePool}", "{allow: true}"),
        ("{file: both.yaml, name: embedder, namespace: serving}", f"{{mutate: [{TOLERATES}]}}"),
        (NO_LIMIT, f"{{deny: [{LIMIT}]}}"),
        (NO_LIMIT, f"{{allow: false, deny: [{LIMIT}], at: {{{LIMIT}: spec.limits}}}}"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], at: {{{LIMIT}: {{path: spec.limits, line: 16}}}}}}"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], at: {{{LIMIT}: [{{line: 16}}]}}}}"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], message: {{{LIMIT}: nothing limits}}}}"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], message: {{{LIMIT}: [nothing, GPU, the pool]}}}}".replace("GPU", "nvidia")),
        (NO_LIMIT, "{allow: false, also: any}"),
        ("pod.yaml", f"{{mutate: [{TOLERATES}]}}"),
        ("pod.yaml", f"{{patch: [{TOLERATION}]}}"),
        (
            "pod.yaml",
            "{fixed: {base: pod.yaml, patch: {spec: {tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}}}}",
        ),
        (
            "{base: pod.yaml, patch: {spec: {tolerations: 3}}}",
            "{allow: false, malformed: [spec.tolerations], also: any}",
        ),
    ],
)
def test_what_comes_is_expected(outcomes: Callable[[str], dict[str, str]], object_: str, expect: str) -> None:
    assert outcomes(only(object_, expect)) == {"it": "passed"}


@pytest.mark.parametrize(
    ("object_", "expect", "fails"),
    [
        ("pool.yaml", f"{{deny: [{LIMIT}]}}", f"{LIMIT} is expected to deny"),
        ("pool.yaml", "{allow: false}", "the request goes through"),
        (NO_LIMIT, "{}", f"{LIMIT} denies, which is not expected"),
        (NO_LIMIT, f"{{warn: [{LIMIT}]}}", f"{LIMIT} is expected to warn; {LIMIT} denies, which is not expected"),
        (NO_LIMIT, "{allow: true, also: any}", "the request is denied"),
        (
            NO_LIMIT,
            f"{{deny: [{LIMIT}], at: {{{LIMIT}: spec}}}}",
            f"{LIMIT} finds nothing at spec; {LIMIT} finds something at spec.limits, line 16, which is not expected",
        ),
        (
            NO_LIMIT,
            f"{{deny: [{LIMIT}], at: {{{LIMIT}: [spec.limits, spec.weight]}}}}",
            f"{LIMIT} finds nothing at spec.weight",
        ),
        (
            NO_LIMIT,
            f"{{deny: [{LIMIT}], message: {{{LIMIT}: [nothing limits, TPU]}}}}",
            f"no message of {LIMIT} contains 'TPU'",
        ),
        ("pool.yaml", f"{{also: any, at: {{{LIMIT}: spec.limits}}}}", f"{LIMIT} finds nothing"),
        ("pool.yaml", f"{{also: any, message: {{{LIMIT}: limits}}}}", f"{LIMIT} finds nothing"),
        ("pod.yaml", "{}", f"{TOLERATES} mutates, which is not expected"),
        ("pod.yaml", "{patch: []}", "the patch differs"),
        ("pool.yaml", f"{{patch: [{TOLERATION}]}}", "the patch differs"),
        ("pod.yaml", "{fixed: pod.yaml}", "the resulting object differs"),
        ("pool.yaml", f"{{skip: [{LIMIT}]}}", f"{LIMIT} was evaluated"),
        ("pool.yaml", "{malformed: [spec.limits]}", "spec.limits is well-formed"),
        (
            "{base: pod.yaml, patch: {spec: {tolerations: 3}}}",
            "{allow: false, also: any}",
            "spec.tolerations: must be a list, not a number",
        ),
    ],
)
def test_what_comes_is_not_expected(
    outcomes: Callable[[str], dict[str, str]], object_: str, expect: str, fails: str
) -> None:
    assert outcomes(only(object_, expect)) == {"it": fails}


@pytest.mark.parametrize(
    ("object_", "expect", "says"),
    [
        ("pool.yaml", "{deny: [nodepools/missing-gpu-limits]}", f"did you mean {LIMIT}?"),
        ("pool.yaml", "{warn: [x]}", ":4:21: unknown policy x; `gpugate policies` lists them"),
        ("pool.yaml", f"{{at: {{{LIMIT}: spec}}}}", f"{LIMIT} is in none of deny, warn, record, mutate"),
        ("pool.yaml", f"{{allow: true, deny: [{LIMIT}]}}", "leave `allow` or `deny`"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], at: {{{LIMIT}: {{}}}}}}", "no place"),
        (NO_LIMIT, "{also: any}", "write what else is expected, `allow` at least"),
        ("pool.yaml", f"{{also: any, at: {{{LIMIT}: []}}}}", "no place"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], message: {{{LIMIT}: []}}}}", "no text"),
        (NO_LIMIT, f"{{deny: [{LIMIT}], message: {{{LIMIT}: ''}}}}", "no text"),
        ("no.yaml", "{}", ":3:13: no.yaml: no such file or directory"),
        ("both.yaml", "{}", "2 objects fit (NodePool gpu-inference, Pod embedder): choose one"),
        ("{file: both.yaml, kind: Job}", "{}", "no object of both.yaml fits; it holds NodePool gpu-inference"),
        ("{file: both.yaml, knd: Job}", "{}", ":3:36: unknown key; did you mean `kind`?"),
        ("{kind: Pod}", "{}", "missing apiVersion"),
        ("{base: pool.yaml}", "{}", "missing `patch`, which is required"),
        ("broken.yaml", "{}", "broken.yaml:2:1: not YAML"),
        ("empty.yaml", "{}", "empty.yaml holds no object"),
        ("pool.yaml", "{fixed: no.yaml}", "no.yaml: no such file"),
        ("{base: pod.yaml, patch: {metadata: {name: null}}}", "{}", "Pod without a name"),
    ],
)
def test_a_test_that_cannot_be_meant_is_broken(
    outcomes: Callable[[str], dict[str, str]], folder: Path, object_: str, expect: str, says: str
) -> None:
    (folder / "broken.yaml").write_text("a: [\n")
    (folder / "empty.yaml").write_text("# nothing\n")
    found = outcomes(only(object_, expect))["it"]
    assert found.startswith("broken: ")
    assert says in found


@pytest.mark.parametrize(
    ("object_", "more", "expect", "comes"),
    [
        (NO_LIMIT, "config: {mode: warn}", f"{{warn: [{LIMIT}]}}", "passed"),
        (NO_LIMIT, f"config: {{policies: {{{LIMIT}: {{mode: off}}}}}}", "{}", "passed"),
        (NO_LIMIT, "policy_file: policy.yaml", f"{{record: [{LIMIT}]}}", "passed"),
        (NO_LIMIT, "config: {mod: warn}", "{}", ":5:19: mod: unknown key; did you mean `mode`?"),
        (NO_LIMIT, "config: {policies: {pods/x: {mode: off}}}", "{}", "unknown policy `pods/x`"),
        (NO_LIMIT, "policy_file: no.yaml", "{}", "no.yaml: no such file"),
        (NO_LIMIT, "policy_file: wrong.yaml", "{}", "wrong.yaml:3:6: mod: unknown key"),
        (NO_LIMIT, "{policy_file: policy.yaml, config: {}}", "{}", "both `config` and `policy_file`"),
        (NO_LIMIT, "request: {operation: DELETE}", "{allow: true}", "passed"),
        (NO_LIMIT, "request: {operation: UPDATE}", "{}", "an UPDATE needs `old`"),
        (NO_LIMIT, f"request: {{old: {NO_LIMIT}}}", f"{{allow: true, warn: [{LIMIT}]}}", "passed"),
        (NO_LIMIT, "request: {old: pool.yaml}", f"{{deny: [{LIMIT}]}}", "passed"),
        (NO_LIMIT, "request: {old: pod.yaml}", "{}", "is another object than NodePool gpu-inference"),
        ("pod.yaml", "request: {namespace: kube-system}", "{}", "the object is in namespace serving"),
        ("pod.yaml", "request: {subresource: status}", "{allow: true}", "passed"),
        ("pool.yaml", "request: {namespace_labels: {a: b}}", "{}", "a NodePool is in no namespace"),
        ("pod.yaml", "config: {excluded_namespaces: [serving]}", "{allow: true}", "passed"),
        ("pool.yaml", "target: {karpenter: '1.0'}", "{allow: true}", "passed"),
    ],
)
def test_what_surrounds_the_object(
    outcomes: Callable[[str], dict[str, str]], folder: Path, object_: str, more: str, expect: str, comes: str
) -> None:
    head = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
    (folder / "policy.yaml").write_text(f"{head}mode: audit\n")
    (folder / "wrong.yaml").write_text(f"{head}mod: audit\n")
    more = more[1:-1].replace(", config", "\n    config") if more.startswith("{") else more
    assert comes in outcomes(only(object_, expect, f"    {more}\n"))["it"]


POD_WITH_CLAIM = "{base: pod.yaml, patch: {spec: {resourceClaims: [{name: g, resourceClaimTemplateName: mig}], tolerations: [{operator: Exists, key: nvidia.com/gpu}]}}}"
TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mig, namespace: serving}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


@pytest.mark.parametrize(
    ("more", "expect"),
    [
        ("", "{skip: [claims/missing-template, claims/unused, pods/missing-gpu-toleration]}"),
        ("complete_context: true", "{warn: [claims/missing-template]}"),
        ("context: [template.yaml]", "{warn: [claims/unused]}"),
        ("{context: [template.yaml], complete_context: true}", "{warn: [claims/unused]}"),
    ],
)
def test_the_context_is_what_exists_beside_the_object(
    outcomes: Callable[[str], dict[str, str]], folder: Path, more: str, expect: str
) -> None:
    (folder / "template.yaml").write_text(TEMPLATE)
    more = more[1:-1].replace(", complete", "\n    complete") if more.startswith("{") else more
    assert outcomes(only(POD_WITH_CLAIM, expect, f"    {more}\n")) == {"it": "passed"}


def test_labels_of_the_namespace_are_known(outcomes: Callable[[str], dict[str, str]], setup: Setup) -> None:
    setup.config = starter.configuration()
    without = "{base: pod.yaml, patch: {metadata: {labels: null}, spec: {tolerations: [{operator: Exists, key: nvidia.com/gpu}]}}}"
    labels = "    request: {namespace_labels: {team: a, cost-center: cc-1}}\n"
    assert outcomes(only(without, "{mutate: [pods/missing-cost-labels]}", labels)) == {"it": "passed"}


def test_a_failure_shows_the_place_in_the_file_that_is_judged(
    cases: Callable[[str], tuple[Case, ...]], setup: Setup
) -> None:
    (case,) = cases(only(NO_LIMIT, "{}"))
    (failure,) = run_case(case, setup).failures
    assert str(failure).splitlines() == [
        "nodepools/missing-gpu-limit denies, which is not expected",
        "  --> pool.yaml:16:11",
        "   |",
        '15 |         - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}',
        '16 |   limits: {nvidia.com/gpu: "32"}',
        "   |           ^^^^^^^^^^^^^^^^^^^^^^",
        "17 |   disruption:",
        "   |",
        "   spec.limits: nothing limits how many nvidia.com/gpu the pool may have",
    ]


class TestClusters:
    """A policy file with `clusters`, and tests that name the cluster."""

    FILE = f"""\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
mode: warn
clusters:
  - match: {{env: dev}}
    mode: audit
  - match: {{region: eu-*}}
    policies: {{{LIMIT}: {{mode: enforce}}}}
  - match: {{name: [gpu-1, gpu-2], env: prod}}
    mode: enforce
    exemptions:
      - {{policies: [{LIMIT}], names: [gpu-inference], reason: test, owner: me, expires: 2099-01-01}}
"""
    CLUSTERS = (
        "{name: none}",
        "{name: a, labels: {env: dev}}",
        "{name: a, region: eu-west-1}",
        "{name: a, region: eu-west-1, labels: {env: dev}}",
        "{name: gpu-1, region: eu-west-1, labels: {env: prod}}",
        "{name: gpu-3, region: us-east-1, labels: {env: prod}}",
    )

    @pytest.mark.parametrize(
        ("cluster", "expect"),
        [
            ("null", f"{{warn: [{LIMIT}]}}"),
            ("{name: a, labels: {env: dev}}", f"{{record: [{LIMIT}]}}"),
            ("{name: a, region: eu-west-1}", f"{{deny: [{LIMIT}]}}"),
            ("{name: gpu-1, labels: {env: prod}}", f"{{record: [{LIMIT}]}}"),  # an exemption
        ],
    )
    def test_the_entries_of_a_cluster_apply(
        self, outcomes: Callable[[str], dict[str, str]], folder: Path, cluster: str, expect: str
    ) -> None:
        (folder / "all.yaml").write_text(self.FILE)
        more = f"    policy_file: all.yaml\n    cluster: {cluster}\n"
        inline = more.replace("policy_file: all.yaml", f"config: {json.dumps(self._config())}")

        assert outcomes(only(NO_LIMIT, expect, more)) == {"it": "passed"}
        assert outcomes(only(NO_LIMIT, expect, inline)) == {"it": "passed"}

    def _config(self) -> dict[str, object]:
        written = yaml.safe_load(self.FILE.replace("2099-01-01", "'2099-01-01'"))
        return {key: value for key, value in written.items() if key not in {"apiVersion", "kind"}}

    def test_a_test_adds_to_the_default_cluster(self, outcomes: Callable[[str], dict[str, str]], folder: Path) -> None:
        (folder / "all.yaml").write_text(self.FILE)
        defaults = "defaults: {policy_file: all.yaml, cluster: {name: gpu-1, labels: {env: dev}}}\n"
        more = "    cluster: {region: eu-west-1}\n"

        assert outcomes(defaults + only(NO_LIMIT, f"{{record: [{LIMIT}]}}")) == {"it": "passed"}
        assert outcomes(defaults + only(NO_LIMIT, f"{{deny: [{LIMIT}]}}", more)) == {"it": "passed"}

    def test_a_cluster_takes_precedence_over_the_one_that_the_file_names(
        self, outcomes: Callable[[str], dict[str, str]], folder: Path
    ) -> None:
        (folder / "all.yaml").write_text(f"{self.FILE}platform: {{cluster: {{name: gpu-9, labels: {{env: dev}}}}}}\n")
        file = "    policy_file: all.yaml\n"
        more = f"{file}    cluster: {{labels: {{env: prod}}}}\n"

        assert outcomes(only(NO_LIMIT, f"{{record: [{LIMIT}]}}", file)) == {"it": "passed"}
        assert outcomes(only(NO_LIMIT, f"{{warn: [{LIMIT}]}}", more)) == {"it": "passed"}

    @pytest.mark.parametrize(
        ("cluster", "says"),
        [
            ("{nam: a}", "did you mean `name`?"),
            ("{name: 'a b'}", "cluster.name"),
            ("gpu-1", "cluster: expected `object | null`"),
        ],
    )
    def test_an_invalid_cluster_is_an_error_with_its_line(
        self, outcomes: Callable[[str], dict[str, str]], cluster: str, says: str
    ) -> None:
        found = outcomes(only(NO_LIMIT, "{}", f"    cluster: {cluster}\n"))["it"]

        assert found.startswith("broken: x.gpugate-test.yaml:5:")
        assert says in found

    @pytest.mark.parametrize("cluster", CLUSTERS)
    def test_a_test_agrees_with_what_config_show_says_of_the_cluster(
        self, outcomes: Callable[[str], dict[str, str]], folder: Path, cluster: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The output of `config show` is the policy file of one cluster, without `clusters`."""
        (folder / "all.yaml").write_text(self.FILE)
        identity = msgspec.convert(yaml.safe_load(cluster), ClusterIdentity)
        flags = [flag.replace("--cluster-name", "--cluster") for flag in identity_flags(identity)]
        assert main(["config", "show", "--policy-file", "all.yaml", *flags]) == 0
        (folder / "one.yaml").write_text(capsys.readouterr().out)
        expectations = [f"{{{key}: [{LIMIT}]}}" for key in ("deny", "warn", "record")] + ["{}"]

        named = f"    policy_file: all.yaml\n    cluster: {cluster}\n"
        of_cluster = [outcomes(only(NO_LIMIT, expect, named)) for expect in expectations]
        shown = [outcomes(only(NO_LIMIT, expect, "    policy_file: one.yaml\n")) for expect in expectations]
        assert of_cluster == shown
        assert of_cluster.count({"it": "passed"}) == 1
