"""The manifests of the page on Argo CD and Flux: their own definitions take them, and the chart takes the values in them."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from auditing.report_definitions import installed
from cluster.custom_resources import read_definitions
from cluster.namespaces import made_namespaces
from documentation.blocks import ROOT, blocks_of
from documentation.helm_values import delivered_values

import tools
from gpugate.webhook.cluster.policy_bundle import bundle_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

Json = dict[str, Any]
PAGE: Final = ROOT / "docs" / "how-to" / "gitops.md"
CRDS: Final = "config/crd/bases"
FOLDERS: Final = (
    (tools.ARGO_CD, "manifests/crds"),
    (tools.FLUX_HELM, CRDS),
    (tools.FLUX_KUSTOMIZE, CRDS),
    (tools.FLUX_SOURCE, CRDS),
)
MANIFESTS: Final = {
    f"{block.line}-{each['kind']}": each
    for block in blocks_of(PAGE)
    if block.language == "yaml"
    for each in yaml.safe_load_all(block.text)
    if "kind" in each
}

pytestmark = pytest.mark.usefixtures("unregistered")


@pytest.fixture(scope="module", autouse=True)
def _definitions(api: Api) -> Iterator[None]:
    found = [
        each
        for module, folder in FOLDERS
        for each in read_definitions(tools.module_folder(*module) / folder)
        if each["kind"] == "CustomResourceDefinition"
    ]
    with made_namespaces(api, "argocd", "flux-system"):
        yield from installed(api, found)


def test_the_page_names_the_versions_of_the_definitions() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    pinned = re.findall(r"/([a-z-]+-c[a-z]+)(?:/v\d+)? v(\S+)$", (ROOT / "e2e/gitops/go.mod").read_text(), re.MULTILINE)

    assert len(pinned) == len(FOLDERS)
    assert [name for name, version in pinned if f"{name.replace('argo-cd', 'Argo CD')} {version}" not in text] == []


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_its_definition_takes_it(api: Api, manifest: Json) -> None:
    answer = api.create(manifest, dry_run=True, strict=True)

    assert (answer.ok, answer.warnings) == (True, []), answer.message


def test_an_unknown_field_is_refused(api: Api) -> None:
    manifest = next(each for each in MANIFESTS.values() if each["kind"] == "HelmRelease")
    wrong = {**manifest, "spec": {**manifest["spec"], "driftDetections": {}}}

    assert "driftDetections" in api.create(wrong, dry_run=True, strict=True).message


@pytest.mark.parametrize(
    "values", [found for each in MANIFESTS.values() if (found := delivered_values(each)) is not None]
)
def test_the_chart_takes_its_values(values: Json) -> None:
    ran = subprocess.run(  # noqa: S603 -- helm, with arguments of ours
        [tools.path("helm"), "template", "gpugate", "charts/gpugate", "--namespace", "gpugate", "--values", "-"],
        cwd=ROOT,
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert ran.returncode == 0, ran.stderr
    (webhook,) = [each for each in yaml.safe_load_all(ran.stdout) if each and each["kind"] == "Deployment"]
    pod = webhook["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].startswith(values["image"]["repository"])
    # As doctor and audit recognize it.
    assert bundle_reference(pod) == values.get("policy", {}).get("bundle", {}).get("reference", "")
