from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Kustomization, sources
from gpugate.webhook.rendering.kustomization_files import planned
from gpugate.webhook.rendering.kustomizations import KustomizationJob
from gpugate.webhook.rendering.options import RenderOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PART = "kind: Component\n"
# What directories build on, with those that are built.
BUILT = {
    "a base and its overlay": ({"a": "resources: [../b]", "b": ""}, ["./a"]),
    "a circle, which kustomize refuses": ({"a": "resources: [../b]", "b": "resources: [../a]"}, ["./a", "./b"]),
    "one below a circle": ({"a": "resources: [../b]", "b": "resources: [../a, ../c]", "c": ""}, ["./a", "./b"]),
    "one that names itself": ({"a": "resources: [../a]"}, ["./a"]),
    "one of a part that nothing uses": ({"a": "", "b": PART + "resources: [../a]"}, ["./a"]),
    "one of a part that is used": (
        {"a": "", "b": PART + "resources: [../a]", "c": "components: [../b]"},
        ["./c"],
    ),
    "a very long chain": (
        {"a": "resources: [../1]"} | {f"{n}": f"resources: [../{n + 1}]" for n in range(1, 1500)} | {"1500": ""},
        ["./a"],
    ),
}


@pytest.mark.parametrize(("files", "built"), BUILT.values(), ids=BUILT)
def test_what_is_in_nothing_that_is_built_is_built_itself(
    files: dict[str, str], built: list[str], tree: Callable[..., Path], program: Callable[[str, str], Path]
) -> None:
    program("kubectl", "")
    tree({f"{name}/kustomization.yaml": f"namePrefix: x\n{text}\n" for name, text in files.items()})
    found = list(sources(["."]))

    plan = planned(found, RenderOptions("1.35"))

    jobs = [job for part in found if isinstance(part, Kustomization) for job in plan.of(part)]
    assert [job.name for job in jobs if isinstance(job, KustomizationJob)] == built
