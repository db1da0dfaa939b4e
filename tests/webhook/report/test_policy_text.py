from __future__ import annotations

import pytest

from gpugate.webhook.report.policy_text import SOURCES, WHY, first_sentence, section

DOC = """Title.

## Why is this bad?
It costs money
every hour. And more.

## Sources
Karpenter v1.14.1 `a.go`.
"""
SECTIONS = {
    "in the middle": (WHY, "It costs money\nevery hour. And more."),
    "at the end": (SOURCES, "Karpenter v1.14.1 `a.go`."),
    "missing": ("Instead", ""),
}


@pytest.mark.parametrize(("heading", "text"), SECTIONS.values(), ids=SECTIONS)
def test_a_section_is_the_text_under_its_heading(heading: str, text: str) -> None:
    assert section(DOC, heading) == text


SENTENCES = {
    "one": ("It costs money.", "It costs money."),
    "several, over lines": ("It costs\nmoney. And more.", "It costs money."),
    "a version is no end": ("Since v1.2. it is gone. More.", "Since v1.2. it is gone."),
    "none": ("", ""),
}


@pytest.mark.parametrize(("text", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_the_first_sentence_ends_before_a_capital(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
