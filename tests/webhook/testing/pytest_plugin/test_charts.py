from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., pytest.RunResult]

pytest_plugins = ["pytester"]
TEMPLATE = """\
apiVersion: v1
kind: Pod
metadata:
  name: model
  labels: {team: search, cost-center: cc-1234}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
  containers:
    - name: main
      image: registry.example.com/model:1.0.0
      resources: {limits: {nvidia.com/gpu: "{{ .Values.gpus }}"}}
"""
TEST = """\
import pytest

@pytest.mark.gpugate_chart("chart", values=["fine.yaml", "bad.yaml"])
def test_chart(gpugate_chart):
    assert gpugate_chart.objects == 1
    assert gpugate_chart.allowed
"""


@pytest.fixture
def chart(project: pytest.Pytester) -> pytest.Pytester:
    files = {
        "chart/Chart.yaml": "apiVersion: v2\nname: model\nversion: 1.0.0\n",
        "chart/values.yaml": "gpus: 1\n",
        "chart/templates/pod.yaml": TEMPLATE,
        "fine.yaml": "gpus: 2\n",
        "chart/bad.yaml": "gpus: half\n",
    }
    for name, text in files.items():
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return project


needs_helm = pytest.mark.skipif(not shutil.which("helm"), reason="helm is missing")


@needs_helm
def test_each_values_file_is_a_test(chart: pytest.Pytester, run: Run) -> None:
    chart.makepyfile(TEST)

    ran = run("-v")

    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["*::test_chart?fine.yaml? PASSED*", "*::test_chart?bad.yaml? FAILED*"])
    ran.stdout.fnmatch_lines(["*gpugate: chart with bad.yaml*", "error?malformed?: *"])


@needs_helm
def test_without_values_the_chart_has_its_own(chart: pytest.Pytester, run: Run) -> None:
    chart.makepyfile(TEST.replace(', values=["fine.yaml", "bad.yaml"]', ""))

    run().assert_outcomes(passed=1)


@needs_helm
def test_values_can_be_set(chart: pytest.Pytester, run: Run) -> None:
    chart.makepyfile(TEST.replace('values=["fine.yaml", "bad.yaml"]', 'set="gpus=half"'))

    run().assert_outcomes(failed=1)


WRONG = {
    "no chart": ("", "*write @pytest.mark.gpugate_chart*"),
    "an argument that is none": ('"chart", value="fine.yaml"', "*write @pytest.mark.gpugate_chart*"),
    "a chart that is missing": ('"charts/none"', "*charts/none is a directory neither of*"),
    "a values file that is missing": ('"chart", values="none.yaml"', "*the values file none.yaml is neither in*"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_marker_is_said(arguments: str, said: str, chart: pytest.Pytester, run: Run) -> None:
    chart.makepyfile(TEST.replace('"chart", values=["fine.yaml", "bad.yaml"]', arguments))

    ran = run()

    assert ran.ret != 0
    assert any(line for line in [*ran.outlines, *ran.errlines] if said.strip("*") in line), ran.outlines


def test_the_fixture_needs_the_marker(chart: pytest.Pytester, run: Run) -> None:
    chart.makepyfile("def test_chart(gpugate_chart): pass")

    ran = run()

    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines(["*say which with @pytest.mark.gpugate_chart*"])
