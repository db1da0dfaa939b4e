from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]

PASSING = {
    "a file": """
        def test_it(gpugate, manifest):
            found = gpugate.review(manifest("pool.yaml"))
            assert not found.allowed
            assert found.denied_by("nodepools/missing-gpu-limit")
            assert found["nodepools/missing-gpu-limit"].location == ("pool.yaml", 4, 1)
    """,
    "a file that is changed": """
        def test_it(gpugate, manifest):
            pool = manifest("pool.yaml")
            pool["spec"]["limits"] = {"nvidia.com/gpu": "8"}
            assert gpugate.review(pool).allowed
            assert "limits" not in manifest("pool.yaml")["spec"]
    """,
    "a builder": """
        import pytest
        @pytest.mark.parametrize("gpus", [8, "64"])
        def test_it(gpugate, node_pool, gpus):
            assert gpugate.review(node_pool(gpus=gpus)).allowed
    """,
    "a mutation": """
        def test_it(gpugate, gpu_pod):
            found = gpugate.review(gpu_pod(tolerates=False))
            assert found.mutated_by("pods/missing-gpu-toleration")
            assert found.patched["spec"]["tolerations"][0]["key"] == "nvidia.com/gpu"
            assert found.patch[0]["op"] == "add"
    """,
    "an update": """
        def test_it(gpugate, node_pool):
            found = gpugate.review(node_pool(gpus=None), old=node_pool(gpus=None, capacity="spot"))
            assert found.allowed and found.warned_by("nodepools/missing-gpu-limit")
    """,
    "a delete": """
        def test_it(gpugate, node_pool):
            found = gpugate.review(node_pool(gpus=None), operation="DELETE")
            assert (found.allowed, found.findings, found.patched) == (True, (), None)
    """,
    "objects together": """
        def test_it(gpugate, scaled_object):
            hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                   "metadata": {"name": "a", "namespace": "serving"},
                   "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"}}}
            alone, (together, _) = gpugate.review(scaled_object()), gpugate.check(scaled_object(), hpa)
            assert not alone.warned_by("scaling/hpa-conflict")
            assert together.warned_by("scaling/hpa-conflict")
            assert gpugate.review(scaled_object(), context=[hpa]).warned_by("scaling/hpa-conflict")
    """,
    "another configuration": """
        def test_it(gpugate, node_pool):
            warned = gpugate.configured({"nodepools/missing-gpu-limit": {"mode": "warn"}}).review(node_pool(gpus=None))
            assert warned.allowed and warned.warned_by("nodepools/missing-gpu-limit")
            recorded = gpugate.configured(mode="audit").review(node_pool(gpus=None))
            assert recorded.recorded_by("nodepools/missing-gpu-limit")
    """,
    "an object that is malformed": """
        def test_it(gpugate, gpu_pod):
            assert gpugate.review(gpu_pod(patch={"spec": {"containers": "many"}})).denied_by("malformed")
    """,
    "a place in an object of the test": """
        def test_it(gpugate, node_pool):
            place = gpugate.review(node_pool(gpus=None))["nodepools/missing-gpu-limit"].location
            assert (place.file, place.line > 1) == ("object", True)
    """,
}


@pytest.mark.parametrize("body", PASSING.values(), ids=PASSING)
def test_what_a_test_can_ask(body: str, run: Run, project: pytest.Pytester) -> None:
    project.makepyfile(body)

    ran = run()

    assert ran.ret == 0, ran.outlines
    assert ran.parseoutcomes()["passed"] >= 1


FAILING = {
    "what was found is shown with a code frame": (
        'assert gpugate.review(manifest("pool.yaml")).allowed',
        [
            "*gpugate: CREATE of NodePool gpu*",
            "error?nodepools/missing-gpu-limit?: *",
            "*--> pool.yaml:4:1*",
            "4 | spec:",
        ],
    ),
    "and in a line": (
        'assert gpugate.review(manifest("pool.yaml")).allowed',
        ["E *where*False = <CREATE of NodePool gpu: DENIED (nodepools/missing-gpu-limit error)>.allowed"],
    ),
    "a policy that finds nothing": (
        'assert gpugate.review(manifest("pool.yaml"))["nodepools/legacy-api"]',
        ["*KeyError*nodepools/legacy-api finds nothing in <CREATE of NodePool gpu*"],
    ),
    "a policy that does not exist": (
        'assert not gpugate.review(manifest("pool.yaml")).denied_by("nodepools/mising-gpu-limit")',
        ["*ValueError: unknown policy nodepools/mising-gpu-limit; did you mean nodepools/missing-gpu-limit?"],
    ),
    "a file that is missing": ('manifest("pol.yaml")', ["*ObjectError: pol.yaml: is not in *"]),
    "a file with several objects": (
        'manifest("both.yaml")',
        ["*ObjectError: both.yaml: several objects fit; choose with kind=, *NodePool gpu, ConfigMap settings"],
    ),
    "what is no object": ('gpugate.review({"a": 1})', ["*ObjectError: *apiVersion*"]),
}


@pytest.mark.parametrize(("body", "lines"), FAILING.values(), ids=FAILING)
def test_what_a_failing_test_says(body: str, lines: list[str], run: Run, project: pytest.Pytester) -> None:
    texts = [(project.path / name).read_text() for name in ("pool.yaml", "settings.yaml")]
    (project.path / "both.yaml").write_text("---\n".join(texts))
    project.makepyfile(f"def test_it(gpugate, manifest):\n    {body}\n")

    ran = run("-vv")

    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(lines)


def test_a_passing_test_shows_nothing(run: Run, project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(gpugate, manifest):\n    gpugate.review(manifest('pool.yaml'))\n")

    run("-rA").stdout.no_fnmatch_line("*missing-gpu-limit*")


def test_the_policy_file_of_the_settings_holds(run: Run, project: pytest.Pytester) -> None:
    policies = "policies: {nodepools/missing-gpu-limit: {mode: warn}}\n"
    (project.path / "policy.yaml").write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{policies}")
    project.makepyfile("def test_it(gpugate, manifest):\n    assert gpugate.review(manifest('pool.yaml')).allowed\n")

    run("-o", "gpugate_policy_file=policy.yaml").assert_outcomes(passed=1)


def test_the_policy_file_of_the_project_file_holds(run: Run, project: pytest.Pytester) -> None:
    policies = "policies: {nodepools/missing-gpu-limit: {mode: warn}}\n"
    (project.path / "policy.yaml").write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{policies}")
    (project.path / ".gpugate.yaml").write_text("policy_file: policy.yaml\n")
    project.makepyfile("def test_it(gpugate, manifest):\n    assert gpugate.review(manifest('pool.yaml')).allowed\n")

    run().assert_outcomes(passed=1)
