from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"
POD = f"{HEAD}  labels: {{team: a, cost-center: b}}\n"

# What is in the file -> exit code, and how the first finding begins; "" where there is none.
CONTENTS: dict[str, tuple[bytes | str, int, str]] = {
    "nothing": ("", 3, ""),
    "only comments": ("# a\n# b\n", 3, ""),
    "only markers": ("---\n---\n", 3, ""),
    "a scalar": ("text\n", 4, "1:1 error not a Kubernetes object but a string"),
    "a list": ("- a\n", 4, "1:1 error not a Kubernetes object but a list"),
    "a key twice": (f"{POD}kind: Pod\n", 0, "6:1 warning the key kind occurs twice"),
    "a tab": ("a:\n\tb: 1\n", 4, "2:1 error not YAML: found character that cannot start any token"),
    "uneven indentation": ("a:\n   b: 1\n  c: 2\n", 4, "3:3 error not YAML: did not find expected key"),
    "an open quote": ("a: 'b\n", 4, "1:4 error not YAML: found unexpected end of stream"),
    "a tag of Python": (f"{POD}a: !!python/object/apply:os.system [ls]\n", 0, "6:4 warning the tag !!python/object/apply:os.system"),
    "a tag of nobody": (f"{POD}spec: !foo {{}}\n", 0, "6:7 warning the tag !foo means nothing"),
    "bytes in base64": (f"{POD}data: !!binary aGk=\n", 0, ""),
    "no base64": (f"{POD}data: !!binary 'a b'\n", 4, "6:7 error is tagged !!binary and is not base64"),
    "an equals sign": (f"{POD}data: =\n", 0, ""),
    "keys that are no text": (f"{POD}on: 1\nn: 2\n8: 3\n", 0, ""),
    "a date that is none": (f"{POD}data: 2024-13-45\n", 0, ""),
    "a number of 5,000 digits": (f"{POD}data: {'9' * 5000}\n", 4, "6:7 error a number of 5000 digits is out of range"),
    "not a number": (f"{POD}data: .nan\n", 4, "6:7 error .nan is not a number in JSON"),
    "no end": (f"{POD}data: -.inf\n", 4, "6:7 error -.inf is not a number in JSON"),
    "aliases of aliases": (
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join(f'*{a}' for _ in range(10))}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
        4,
        "5:29 error aliases expand to more than 100,000 values",
    ),
    "an alias in itself": ("a: &a [*a]\n", 4, "1:8 error anchor a contains itself"),
    "a merge": (f"x: &x {{a: 1}}\n{POD}spec: {{<<: *x}}\n", 0, ""),
    "2,000 brackets": ("[" * 2000, 4, "1:129 error more than 128 levels of nesting"),
    "50,000 brackets": ("a: " + "[" * 50_000, 4, "1:131 error more than 128 levels of nesting"),
    "20,000 anchors": ("".join(f"- &a{n} x\n" for n in range(20_000)), 4, "1:1 error not a Kubernetes object but a list"),
    "a NUL": (f"{POD}data: a\x00b\n", 4, "6:8 error not YAML: the control character U+0000"),
    "Latin 1": (POD.encode() + b"data: \xe9\n", 4, "6:7 error not UTF-8 text at byte 87"),
    "UTF-16": (POD.encode("utf-16"), 0, ""),
    "a byte order mark": (b"\xef\xbb\xbf" + POD.encode(), 0, ""),
    "DOS lines": (POD.replace("\n", "\r\n"), 0, ""),
    "half a surrogate pair": (f'{POD}data: "\\ud83d"\n', 4, "6:10 error not YAML: found invalid Unicode character escape code"),
    "JSON": (json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), 0, ""),
    "JSON Lines": ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}\n' * 2, 0, ""),
    "lists in lists in lists": ("{kind: List, apiVersion: v1, items: [" * 4 + "]}" * 4, 4, "1:74 warning a list within a list, which kubectl does not read"),
    "a template": ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n", 0, ""),
    "a template with instructions": ("apiVersion: v1\nkind: Pod\nmetadata:\n{{- if .x }}\n  name: a\n{{- end }}\n", 4, "5:3 error not YAML"),
    "a kustomization": ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", 3, ""),
    "SOPS": ("data: ENC[x]\nsops: {}\n", 4, "1:1 error encrypted with SOPS"),
    "no apiVersion": ("kind: Pod\nmetadata: {name: a}\n", 4, "1:1 error missing apiVersion"),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}\n", 4, "1:1 error missing kind"),
    "no name": ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", 4, "3:1 error Pod without a name"),
    "a name that is yet to be made": (POD.replace("name:", "generateName:"), 0, ""),
    "the same object twice": (f"{POD}---\n{POD}", 0, ""),
}  # fmt: skip


@pytest.mark.parametrize(("content", "code", "first"), CONTENTS.values(), ids=CONTENTS)
def test_a_file_is_read_as_kubectl_reads_it_or_is_an_error_with_its_place(
    content: bytes | str, code: int, first: str, gpugate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)

    ran = gpugate("check", "-o", "json", "--ignore", "*", "--no-schemas", file)

    found = [f"{f['line']}:{f['column']} {f['severity']} {f['message']}" for f in json.loads(ran.out)["findings"]]
    assert ran.code == code
    assert ran.err == ""
    assert (found or [""])[0].startswith(first)
    assert bool(found) is bool(first)


def test_a_file_of_more_than_64_mib_is_not_read(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    with file.open("wb") as large:
        large.truncate(65 * 2**20)

    ran = gpugate("check", file)

    assert (ran.code, ran.out.splitlines()[0]) == (4, "error[unreadable]: larger than 64 MiB")


def test_100_000_documents_are_read(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n" * 100_000)

    ran = gpugate("check", "-o", "json", file)

    assert (ran.code, json.loads(ran.out)["summary"]["objects"]) == (0, 100_000)


def special(tmp_path: Path, what: str) -> Path:
    path = tmp_path / "path.yaml"
    if what == "FIFO":
        os.mkfifo(path)
    elif what == "link to itself":
        path.symlink_to(path)
    elif what == "device":
        return type(path)("/dev/zero")
    elif what == "directory that holds itself":
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "up").symlink_to(tmp_path)
        return tmp_path
    return path


PATHS = {
    "nothing": "no such file or directory",
    "FIFO": "is neither a file nor a directory",
    "link to itself": "too many levels of symbolic links",
    "device": "is neither a file nor a directory",
    "directory that holds itself": "is a link to a directory above it",
}


@pytest.mark.parametrize(("what", "message"), PATHS.items(), ids=PATHS)
def test_a_path_that_is_no_file_is_an_error(what: str, message: str, gpugate: Run, tmp_path: Path) -> None:
    ran = gpugate("check", special(tmp_path, what))

    assert (ran.code, ran.out.splitlines()[0]) == (4, f"error[unreadable]: {message}")


def test_standard_input_that_is_closed_is_an_error(tmp_path: Path) -> None:
    program = f"exec {sys.executable} -m gpugate.webhook.cli.main check - <&-"

    ran = subprocess.run(["sh", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603, S607 -- fixed words

    assert (ran.returncode, ran.stdout.splitlines()[0]) == (4, "error[unreadable]: is closed")


def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("a\n---\n" * 5000)
    command = [sys.executable, "-m", "gpugate.webhook.cli.main", "check", str(file)]

    # Without a buffer Python does not notice that only a part was written.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:  # noqa: S603 -- ours
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (141, "")
