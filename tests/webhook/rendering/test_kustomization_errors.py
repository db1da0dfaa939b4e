from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from gpugate.webhook.rendering.kustomization_files import KustomizationFile
from gpugate.webhook.rendering.kustomizations import KustomizationJob, kustomization_problem

if TYPE_CHECKING:
    from pathlib import Path


class Said(NamedTuple):
    """What kustomize 5.5 says at the end, and where it is shown in which words."""

    text: str
    file: str
    line: int
    message: str


BASE = "resources:\n- pod.yaml\npatches:\n- path: patch.yaml\nnosuch: 1\n"
MISSING = "evalsymlink failure on 'x' : lstat x: no such file or directory"
SAID = {
    "a file that a patch names": Said(
        f"failed to get the patch file from path(patch.yaml): {MISSING}",
        "base/kustomization.yaml", 4, f"cannot be built: failed to get the patch file from path(patch.yaml): {MISSING}",
    ),
    "an unknown field": Said(
        'invalid Kustomization: json: unknown field "nosuch"',
        "base/kustomization.yaml", 5, 'cannot be built: invalid Kustomization: json: unknown field "nosuch"',
    ),
    "a patch of nothing": Said(
        "failed to find unique target for patch Pod.v1/zz",
        "base/kustomization.yaml", 0, "cannot be built: failed to find unique target for patch Pod.v1/zz",
    ),
    "a resource that cannot be read": Said(
        "accumulating resources: accumulating resources from 'pod.yaml': MalformedYAMLError: yaml: line 1: did not find",
        "base/pod.yaml", 0, "cannot be read by kustomize: MalformedYAMLError: yaml: line 1: did not find",
    ),
    "a resource without a name": Said(
        "accumulating resources: accumulation err='accumulating resources from 'pod.yaml': missing metadata.name': "
        "must build at directory: 'x/pod.yaml': file is not directory",
        "base/pod.yaml", 0, "cannot be read by kustomize: missing metadata.name",
    ),
    "an object twice": Said(
        "accumulating resources: accumulation err='merging resources from 'pod.yaml': may not add resource with an already "
        "registered id: Pod.v1/a': must build at directory: 'x/pod.yaml': file is not directory",
        "base/kustomization.yaml", 2,
        "cannot be built: merging resources from 'pod.yaml': may not add resource with an already registered id: Pod.v1/a",
    ),
}  # fmt: skip
# As kustomize writes it on a terminal, and as kubectl logs it, in one line and in several.
FRAMES = {
    "kustomize": "Error: {}\n",
    "kubectl": 'E1122 17:19:05.0 20860 run.go:72] "command failed" err="{}"\n',
    "kubectl, in lines": 'E1122 17:19:05.0 20860 run.go:72] "command failed" err=<\n\t{}\n >\n',
}


@pytest.fixture
def job(tmp_path: Path) -> KustomizationJob:
    base = KustomizationFile(
        str(tmp_path / "base"), "base/kustomization.yaml", BASE, resources=(str(tmp_path / "base/pod.yaml"),)
    )
    over = KustomizationFile(str(tmp_path / "over"), "over/kustomization.yaml", "resources: [../base]\n")
    return KustomizationJob("over", over, parts=(over, base))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_the_cause_is_shown_in_the_file_that_holds_it(said: Said, frame: str, job: KustomizationJob) -> None:
    base = job.parts[1].directory
    way = f"accumulating resources: accumulation err='accumulating resources from '../base': '{base}' must resolve to a file': "
    text = f"{way * 20}recursed accumulation of path '{base}': {said.text}"
    quoted = text.replace('"', '\\"') if 'err="' in frame else text

    problem = kustomization_problem(job, frame.format(quoted), "")

    assert (problem.source, problem.line, problem.message) == (said.file, said.line, said.message)


def test_a_long_message_keeps_its_beginning_and_its_end(job: KustomizationJob) -> None:
    message = kustomization_problem(job, f"Error: {'first: ' * 500}the cause", "").message

    assert message.startswith("cannot be built: first: ")
    assert message.endswith("first: the cause")
    assert len(message) < 700


HOSTILE = (
    "recursed accumulation of path '",
    "accumulating resources from '",
    "accumulating resources from 'a': must build at directory: ",
    "E1122 a err=<\n",
    "': must build at directory: ",
)


@pytest.mark.parametrize("part", HOSTILE)
def test_messages_of_any_length_are_read_in_linear_time(part: str, job: KustomizationJob) -> None:
    """A file of the tree may be named like any of these words."""
    assert kustomization_problem(job, part * 30_000, "").message
