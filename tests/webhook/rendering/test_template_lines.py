from __future__ import annotations

import pytest

from gpugate.webhook.rendering.chart_places import template_lines

# Each line that may get a mark ends in `<`.
MARKABLE = {
    "text": "a: 1<\n\nb: 2<",
    "an action on a line": "a: {{ .x }}<\n{{ .y }}\n  {{ .z }}",
    "text after an action": "{{ .x }}: 1<",
    "a document's beginning": "---\na: 1<\n--- # c\nb: 2<",
    "an action that takes the space after it": "a: {{ .x -}}\nb: 1<",
    "an action that takes the space before it": "a: 1<\n{{- .x }}\nb: 1<",
    "an action over several lines": "a: {{ list\n  1\n  2 }}\nb: {{ list\n 1 }}c<",
    "braces in strings": "a: {{ \"}}\" }}<\nb: {{ `}}\n` }}c<\nd: {{ '}' }}<",
    "a comment": "{{/* a: }}\n b */}}\na: 1<\n{{- /* }} */ -}}\nb: 2<",
    "a definition": '{{ define "x" }}\na: 1\n{{ if .x }}b{{ end }}\nc\n{{ end }}\nd: 1<',
    "an action without an end": "a: 1<\nb: {{ .x\nc: 2",
}


@pytest.mark.parametrize("text", MARKABLE.values(), ids=MARKABLE)
def test_a_mark_goes_behind_text_that_stands_where_it_is_written(text: str) -> None:
    wanted = [line.endswith("<") for line in text.split("\n")]

    lines = template_lines(text.replace("<", ""))

    assert [line.markable for line in lines] == wanted


BACK_TO = {
    "no loop": ("{{ if .x }}\na\n{{ end }}", [None, None, None]),
    "a loop": ("{{ range .x }}\na\n{{ end }}", [None, None, 1]),
    "a loop in a loop": ("{{ range .x }}\n{{ range .y }}\n{{ end }}\n{{ end }}", [None, None, 2, 1]),
    "a condition in a loop": ("{{ range .x }}\n{{ if .y }}\n{{ end }}\n{{ end }}", [None, None, None, 1]),
    "a jump": ("{{ range .x }}\n{{ if .y }}{{ continue }}{{ end }}\n{{ end }}", [None, 1, 1]),
    "a definition": ('{{ define "x" }}\n{{ .y }}\n{{ end }}\n{{ .z }}', [0, 0, 0, None]),
}


@pytest.mark.parametrize(("text", "wanted"), BACK_TO.values(), ids=BACK_TO)
def test_a_line_says_where_a_loop_that_ends_on_it_began(text: str, wanted: list[int | None]) -> None:
    # The line that opens a definition is counted as a part of it.
    found = [line.back_to for line in template_lines(text)]

    assert found == wanted


ACTIONS = {
    "a value": ("{{ .x }}", 1),
    "two values": ("{{ .x }}{{ toYaml .y }}", 2),
    "an included template": ('{{ template "x" . }}', 1),
    "an assignment": ("{{ $x := .y }}{{ $x = .z }}", 0),
    "a comparison": ("{{ eq .x .y }}", 1),
    "a variable": ("{{ $x }}", 1),
    "a comment": ("{{- /* a */ -}}", 0),
    "a condition": ("{{- if .x }}a{{ else }}b{{ end }}", 0),
}


@pytest.mark.parametrize(("text", "wanted"), ACTIONS.values(), ids=ACTIONS)
def test_actions_that_may_write_are_counted(text: str, wanted: int) -> None:
    assert template_lines(text)[0].actions == wanted
