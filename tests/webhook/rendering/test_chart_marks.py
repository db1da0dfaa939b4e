from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.rendering.chart_places import line_origins, marked_copy, sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Templates with what Helm makes of them; each line of the latter ends in the line of the template it is from.
RENDERED = {
    "text and values": ("a: {{ .x }}\nb: 1", "a: 5<1>\nb: 1<2>"),
    "an action between": ("a:\n  {{- toYaml .x | nindent 2 }}\nb: 1", "a:<1>\n  c: 5<2>\n  d: 6<2>\nb: 1<3>"),
    "an action in a condition": (
        "a:\n  {{- with .x }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\nb: 1",
        "a:<1>\n  c: 5<3>\nb: 1<5>",
    ),
    "an action before a loop": (
        "a:\n  {{- toYaml .x }}\n{{- range .y }}\n- b: 1\n{{- end }}",
        "a:<1>\n  c: 5<2>\n- b: 1<4>\n- b: 1<4>",
    ),
    "an action at the end": ("a:\n  {{- toYaml .x }}", "a:<1>\n  c: 5<2>"),
    "two actions between": ("a:\n  {{- toYaml .x }}\n  {{- toYaml .y }}\nb: 1", "a:<1>\n  c: 5\nb: 1<4>"),
    "an action that a loop goes back to": (
        "{{- range .x }}\n{{ toYaml .y }}\na: 1\n{{- end }}\nb: 1",
        "c: 5\na: 1<3>\nc: 5\na: 1<3>\nb: 1<5>",
    ),
    "an action behind text that a value may begin with too": (
        "a: 1\n{{ .x }}\n{{ .y }}: 2",
        "a: 1<1>\nc: 5\nd: 2<3>",
    ),
    "an action before the first text": ("{{ .x }}\na: 1", "c: 5\na: 1<2>"),
    "an action of another document": ("a:\n{{ .x }}\n---\nb: 1", "a:<1>\nc: 5\n---\nb: 1<4>"),
}


def marked(text: str, rendered: str) -> str:
    """What Helm makes of a copy with marks: each line of text of its own has its mark."""
    lines = text.split("\n")
    return "\n".join(
        f"{line} #gpugate-line=0:{number}#"
        if number
        and not lines[int(number) - 1].lstrip().startswith("{{-")
        and not re.fullmatch(r"\s*\{\{[^}]*\}\}", lines[int(number) - 1])
        else line
        for line, number in re.findall(r"^(.*?)(?:<(\d+)>)?$", rendered, re.MULTILINE)
    )


@pytest.mark.parametrize(("template", "rendered"), RENDERED.values(), ids=RENDERED)
def test_a_line_has_the_place_that_is_certain(
    template: str, rendered: str, tree: Callable[..., Path], tmp_path: Path
) -> None:
    root = tree({"app/templates/a.yaml": template})
    copy = marked_copy("app", str(tmp_path / "copy"))
    text = re.sub(r"<\d+>", "", rendered)
    wanted = [int(found) if found else None for _, found in re.findall(r"^(.*?)(?:<(\d+)>)?$", rendered, re.MULTILINE)]

    origins = line_origins(text, marked(template, rendered), copy)

    assert [origin and origin[1] for origin in origins] == wanted
    assert {origin[0] for origin in origins if origin} == {"app/templates/a.yaml"}
    assert (root / "app/templates/a.yaml").read_text() == template


def test_a_line_that_differs_by_more_than_its_mark_has_none(tree: Callable[..., Path], tmp_path: Path) -> None:
    tree({"app/templates/a.yaml": "a: {{ sha }}\nb: 1"})
    copy = marked_copy("app", str(tmp_path / "copy"))

    origins = line_origins("a: 12\nb: 1", "a: 34 #gpugate-line=0:1#\nb: 1 #gpugate-line=0:2#", copy)

    assert origins == [None, ("app/templates/a.yaml", 2)]


def test_texts_of_different_length_have_no_places(tree: Callable[..., Path], tmp_path: Path) -> None:
    tree({"app/templates/a.yaml": "a: 1"})

    assert line_origins("a: 1", "a: 1\nb: 2", marked_copy("app", str(tmp_path / "copy"))) == [None]


def test_a_copy_has_what_is_no_template_as_it_is(tree: Callable[..., Path], tmp_path: Path) -> None:
    tree({"app/values.yaml": "a: 1\n", "app/templates/a.yaml": "a: 1\r\n", "app/charts/b/templates/c.yaml": "c: 1\n"})

    marked_copy("app", str(tmp_path / "copy"))

    assert (tmp_path / "copy/values.yaml").read_text() == "a: 1\n"
    assert (tmp_path / "copy/templates/a.yaml").read_bytes() == b"a: 1 #gpugate-line=0:1#\r\n"
    assert (tmp_path / "copy/charts/b/templates/c.yaml").read_text() == "c: 1 #gpugate-line=1:1#\n"


def test_lines_are_of_the_template_that_helm_names() -> None:
    text = "---\n# Source: a/templates/b.yaml\nx: 1\n---\n# Source: a/c.yaml\ny: 2\n---\nz: 3"

    named = sources(text)

    assert named == ["", *["a/templates/b.yaml"] * 2, "", *["a/c.yaml"] * 2, "", ""]


def test_what_an_action_writes_may_be_very_long(tree: Callable[..., Path], tmp_path: Path) -> None:
    tree({"app/templates/a.yaml": "a:\n{{ toYaml .x }}\nb: 1"})
    copy = marked_copy("app", str(tmp_path / "copy"))
    written = "- c\n" * 200_000

    origins = line_origins(f"a:\n{written}b: 1", f"a: #gpugate-line=0:1#\n{written}b: 1 #gpugate-line=0:3#", copy)

    assert set(origins[1:-1]) == {("app/templates/a.yaml", 2)}


def test_a_very_long_template_has_no_marks(tree: Callable[..., Path], tmp_path: Path) -> None:
    tree({"app/templates/a.yaml": "a: 1\n" * 600_000})

    assert marked_copy("app", str(tmp_path / "copy")).files == []


def test_what_is_no_regular_file_is_a_link_in_the_copy(tree: Callable[..., Path], tmp_path: Path) -> None:
    root = tree({"app/templates/a.yaml": "a: 1"})
    (root / "app/templates/z.yaml").symlink_to("/dev/zero")

    copy = marked_copy("app", str(tmp_path / "copy"))

    assert copy.files == ["app/templates/a.yaml"]
    assert (tmp_path / "copy/templates/z.yaml").is_char_device()
