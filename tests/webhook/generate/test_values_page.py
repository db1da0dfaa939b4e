from __future__ import annotations

import pytest

from gpugate.webhook.generate.chart_files import chart_values
from gpugate.webhook.generate.reference_pages import values_page

VALUES = """# Not about a key.

# -- How many.
count: 2

# -- A section, over
# two lines.
section:
  # -- An object.
  object:
    a: [1]
  # -- A | text.
  text: on
"""


def test_a_comment_belongs_to_the_key_below_it() -> None:
    count, section = chart_values(VALUES)

    assert (count.path, count.meaning, count.default) == ("count", "How many.", 2)
    assert (section.meaning, [each.path for each in section.members]) == (
        "A section, over two lines.",
        ["section.object", "section.text"],
    )


def test_an_object_without_comments_is_one_value() -> None:
    _, section = chart_values(VALUES)

    assert (section.members[0].default, section.members[0].members) == ({"a": [1]}, [])


def test_the_page_has_a_row_for_each_value() -> None:
    page = values_page(VALUES)

    assert "| `count` | `2` | How many. |" in page
    assert "## section\n\nA section, over two lines.\n" in page
    assert '| `section.object` | `{"a":[1]}` | An object. |' in page
    assert "| `section.text` | `true` | A \\| text. |" in page


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("# -- One.\na: 1\nb: 2\n", "values.yaml:3: write a comment with `# --` above b"),
        ("# One.\na: 1\n", "values.yaml:2: write a comment with `# --` above a"),
        ("- a\n", "values.yaml: is no mapping"),
        ("# -- One.\na:\n  # -- Two.\n  b: 1\n  c: 1\n", "values.yaml:5: write a comment with `# --` above a.c"),
    ],
    ids=["none", "another-comment", "no-mapping", "in-a-section"],
)
def test_a_mistake_is_named(text: str, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        chart_values(text)
