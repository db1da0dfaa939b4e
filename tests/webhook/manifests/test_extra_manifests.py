"""Manifests in the values of charts: those in lists are objects at their lines, others are counted."""

from __future__ import annotations

import pytest

from gpugate.webhook.manifests.documents import Positions
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import Loaded, load_files
from gpugate.webhook.manifests.problems import Passing

FLUX = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: r, namespace: flux}
spec:
  chart: {spec: {chart: raw}}
  values:
    resources:
    - %s
"""
ARGO_CD = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: r, namespace: argocd}
spec:
  destination: {namespace: ml}
  source:
    chart: raw
    helm:
      valuesObject:
        x:
        - %s
"""
POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: here}}"
OTHER = POD.replace("name: a", "name: b")
LISTS = {
    "objects": f"image: x\nanyList:\n- {POD}\n",
    "below other values": f"engine:\n  extra:\n  - nested:\n    - {POD}\n",
    "texts": f"x:\n- |\n  # the Pod\n  {POD}\n",
    "texts in one line": f'x:\n- "{POD}"\n',
    "a generated name": f"x:\n- {POD.replace('name: a', 'generateName: a')}\n",
}


def loaded(text: str, name: str = "values.yaml") -> Loaded:
    return load_files([Input(name, explicit=False, data=text.encode())])


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
def test_a_list_of_values_holds_manifests(text: str) -> None:
    found = loaded(text)
    assert [each.request.kind.kind for each in found.manifests] == ["Pod"]
    line = Positions(found.manifests[0].document).find(("spec", "nodeName")).line
    assert "here" in text.splitlines()[line - 1]


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("prod-values.yaml", f"x: [{POD}, {OTHER}]\n", 2),
        ("env/prod.values.yml", f"x: [{POD}]\n", 1),
        ("prod.yaml", f"x: [{POD}]\n", 0),
        ("prod.yaml", f"extraObjects: [{POD}]\n", 1),
        ("values/prod.yaml", f"x: [{POD}]\n", 0),
        ("values.yaml", "x: [{apiVersion: apps/v1, kind: Deployment, name: a}]\n", 0),
        ("values.yaml", "x: [{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {a: b}}}]\n", 0),
        ("values.yaml", "x: ['prose about apiVersion: and kind: of objects']\n", 0),
        ("values.yaml", "x:\n" + f"- {POD}\n" * 201, 200),
    ],
)
def test_only_whole_manifests_of_values_are_objects(name: str, text: str, count: int) -> None:
    assert len(loaded(text, name).manifests) == count


@pytest.mark.parametrize("text", [f"pods:\n  first: {POD}\n", f"pod: |\n  {POD}\n"], ids=["an object", "a text"])
def test_a_manifest_outside_of_a_list_is_counted(text: str) -> None:
    found = loaded(text)
    assert found.manifests == ()
    assert [each.passing for each in found.passed_over if not isinstance(each, str)] == [
        Passing.NON_MANIFEST,
        Passing.EMBEDDED,
    ]


INSTALLERS = {
    "Flux": (FLUX, "flux"),
    "Flux elsewhere": (FLUX.replace("spec:\n", "spec:\n  targetNamespace: ml\n"), "ml"),
    "Argo CD": (ARGO_CD, "ml"),
}


@pytest.mark.parametrize(("text", "namespace"), INSTALLERS.values(), ids=INSTALLERS)
def test_the_values_of_an_object_that_installs_a_chart_are_read(text: str, namespace: str) -> None:
    _, pod = loaded(text % POD, "a.yaml").manifests
    assert (pod.request.kind.kind, pod.request.namespace) == ("Pod", namespace)
    line = Positions(pod.document).find(("spec", "nodeName")).line
    assert "here" in text.replace("%s", POD).splitlines()[line - 1]
