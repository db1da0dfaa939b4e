"""Which objects a file holds: what kubectl creates is what `check` evaluates."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from oracle.stream_strategies import streams
from oracle.test_yaml import as_the_api_server, written
from oracle.yaml_exceptions import is_read_otherwise

import tools
from gpugate.webhook.manifests.documents import read_bytes
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from oracle.process import Oracle

    from gpugate.policies.sdk.field import Json

POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
BLOCK = "  apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n"
JSON = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'

# What we say of an object that kubectl reads and that the API server would not take.
_INCOMPLETE = re.compile(
    r"missing (apiVersion|kind)|(apiVersion|kind) is |without a name|has no kind|metadata(\.\w+)? is |not a Kubernetes object"
)
# What we refuse and kubectl reads: bytes that no text has, half of a character, what the YAML tests name, and a document
# with something behind its end, which kubectl leaves unread.
_WE_REFUSE = re.compile(
    r"not JSON: Expecting property name|not UTF-8|surrogate pair|a key is (null|the number)|found unexpected ':'|kubectl does not read|<document start>"
)
# What we read and kubectl does not: lists in lists, metadata of wrong types, JSON that few bytes follow, and `...` where a
# document would begin.
_THEY_REFUSE = re.compile(
    r"no Items field in this object|ObjectMeta|after top-level value|looking for beginning of value|expected node content"
)


@given(streams())
@example(f"apiVersion: v1\nkind: List\nmetadata: {{name: x}}\nitems:\n- {POD}\n".encode())
@example(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\nitems:\n- {POD}\n".encode())
@example(f"a: 1\n---#x: |\n{BLOCK}".encode())
@example(f"{POD}\n---#x: |\n{BLOCK}".encode())
@example(f"---\n---\n---#x: |\n{BLOCK}".encode())
@example(f"{JSON}\n---\n{JSON}\n---\n{JSON}\n".encode())
@example(f"{JSON}{JSON}\n---\n{JSON}\n".encode())
@example(f"{JSON}\n  {JSON}\n{JSON}".encode())
@example(f"{JSON}\n{BLOCK}".encode())
@example(f"--- {POD}\n".encode())
@example(f"{JSON}---\r{POD}\n".encode())
@example(f"{JSON}---#x: |\n{BLOCK}".encode())
@example(f"%YAML 1.1\n---\n{POD}\n".encode())
@example(f"apiVersion: v1\nkind: Config\nitems: [{POD}]\n".encode())
@example(f"kind: List\nitems: [{POD}]\n".encode())
@example(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nitems: null\n")
@example(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nitems: {}\n")
@example(b"apiVersion: v1\nkind: PodList\nitems: [null, {metadata: {name: x}}, {kind: 5, metadata: {name: x}}]\n")
def test_a_file_holds_the_objects_that_kubectl_creates(oracle: Oracle, file: bytes) -> None:
    theirs, stopped = by_kubectl(oracle, file)
    for lenient in (False, True):
        ours, errors = by_us(file, lenient=lenient)
        created = [each for each in theirs if is_meant(each, lenient=lenient)]
        assert errors or not missing(created, ours), (created, ours)
    ours, errors = by_us(file)
    if stopped:
        assert errors or _THEY_REFUSE.search(stopped), (stopped, ours)
    else:
        excused = [each for each in errors if _INCOMPLETE.search(each) or _WE_REFUSE.search(each)]
        assert errors == excused or is_left_unread(file), (errors, theirs)
        assert not missing(ours, theirs), (ours, theirs)


@settings(max_examples=settings().max_examples // 20)
@given(streams())
def test_kubectl_itself_reads_what_its_library_reads(oracle: Oracle, tmp_path_factory: Any, file: bytes) -> None:
    name: Path = tmp_path_factory.getbasetemp() / "stream.yaml"
    name.write_bytes(file)
    command = [
        tools.path("kubectl"),
        "label",
        "--local",
        "--overwrite",
        f"--filename={name}",
        "of=kubectl",
        "--output=json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- kubectl, with a file of ours
    theirs, stopped = by_kubectl(oracle, file)

    assert bool(ran.returncode) == bool(stopped), ran.stderr
    decoder, text, labelled = json.JSONDecoder(), ran.stdout.strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        labelled.append(value)
        text = text[end:].lstrip()
    expected = [{**each, "metadata": {**each.get("metadata", {}), "labels": {"of": "kubectl"}}} for each in theirs]
    assert list(map(written, labelled)) == list(map(written, expected))


def is_left_unread(file: bytes) -> bool:
    """Tell whether a document may end before the next separator, or whether scanners take its characters otherwise."""
    text = file.decode("utf-16" if file[:2] in {BOM_UTF16_LE, BOM_UTF16_BE} else "utf-8-sig", "replace")
    return "..." in text or is_read_otherwise(text)


def by_kubectl(oracle: Oracle, file: bytes) -> tuple[list[Json], str]:
    """Return the objects of a file, and why kubectl stops in it; empty where it reads all."""
    (answer,) = oracle.ask("stream", [base64.b64encode(file).decode()])
    return answer["objects"], answer.get("stopped", "")


def by_us(file: bytes, *, lenient: bool = False) -> tuple[list[Json], list[str]]:
    """Return the objects of a file, and what keeps `check` from passing."""
    found: list[Json] = []
    errors: list[str] = []
    for document in read_bytes("stream.yaml", file):
        for part in [document] if isinstance(document, Problem) else objects(document, lenient=lenient):
            if isinstance(part, Manifest):
                found.append(part.document.value if part.request.object is None else dict(part.request.object))
            elif isinstance(part, Problem) and not part.warning:
                errors.append(part.message)
    return found, errors


def is_meant(value: Any, *, lenient: bool) -> bool:
    """Tell whether an object is one that the API server could take, and not an instruction for a tool."""
    version, kind = value.get("apiVersion"), value.get("kind")
    tool = str(version).startswith(("gpugate.dev/", "kustomize.config.k8s.io/")) or (version, kind) == ("v1", "Config")
    return not tool and (not lenient or bool(version and kind and value.get("metadata")))


def missing(wanted: list[Json], there: list[Json]) -> list[str]:
    """Return what is wanted and is not there, as text."""
    left = [written(as_the_api_server(each)) for each in there]
    lost = []
    for each in (written(as_the_api_server(value)) for value in wanted):
        if each in left:
            left.remove(each)
        else:
            lost.append(each)
    return lost
