from __future__ import annotations

import pytest

from gpugate.tools.chart_files import chart_values
from gpugate.tools.reference_pages import chart_readme, values_page

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


README = """# Chart

<!-- values: written by `make generate` from values.yaml -->
stale
<!-- end of values -->
Last.
"""


def test_the_readme_gets_the_table_between_its_comments() -> None:
    text = chart_readme(README, VALUES)
    rows = [line for line in text.splitlines() if line.startswith("| `")]

    assert [row.split("`")[1] for row in rows] == ["count", "section", "section.object", "section.text"]
    assert "stale" not in text
    assert text.startswith("# Chart\n")
    assert text.endswith("<!-- end of values -->\nLast.\n")
    assert chart_readme(text, VALUES) == text


@pytest.mark.parametrize("comment", ["<!-- values", "<!-- end"])
def test_a_readme_without_a_comment_is_rejected(comment: str) -> None:
    with pytest.raises(ValueError, match="the table of values needs"):
        chart_readme(README.replace(comment, "<!--"), VALUES)


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
