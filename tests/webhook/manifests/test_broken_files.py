from __future__ import annotations

from pathlib import Path

import pytest

from gpugate.webhook.manifests.load import load

BROKEN = Path(__file__).parents[2] / "fixtures" / "broken"

# File -> line, column, what is wrong, what to do.
PROBLEMS = {
    "between-two-good-ones.yaml": (
        "9:15",
        "not YAML: mapping values are not allowed in this context",
        "indent this line under its parent, or put a value that holds `: ` in quotes",
    ),
    "encrypted.yaml": ("1:1", "encrypted with SOPS", "decrypt it first, as in `sops -d FILE | gpugate check -`"),
    "kind-of-another-group.yaml": (
        "2:7",
        "v1 has no kind Deployment",
        "write the apiVersion of apps, which has this kind",
    ),
    "latin-1.yaml": ("4:12", "not UTF-8 text at byte 52", "save it as UTF-8"),
    "list-at-the-top.yaml": (
        "1:1",
        "not a Kubernetes object but a list",
        "begin each object with ---, or put them under `items:` of a `kind: List`",
    ),
    "list-for-metadata.yaml": ("3:1", "metadata is a list", "write an object with a name"),
    "lost-indentation.yaml": (
        "3:1",
        "NodePool without a name",
        "indent what belongs to it: `name` stands beside metadata, not under it",
    ),
    "no-head.yaml": (
        "1:1",
        "missing apiVersion",
        "write apiVersion at the top, as in `apiVersion: apps/v1` and `kind: Deployment`",
    ),
    "no-name.yaml": ("1:1", "Pod without a name", "write metadata.name"),
    "number-for-name.yaml": ("4:9", "metadata.name is a number", "put it in quotes"),
    "only-text.yaml": (
        "1:1",
        "not a Kubernetes object but a string",
        "write `key: value` lines; if this was an object once, its indentation or its line breaks are lost",
    ),
    "prose-with-a-manifest.yaml": (
        "2:25",
        "not YAML: mapping values are not allowed in this context",
        "indent this line under its parent, or put a value that holds `: ` in quotes",
    ),
    "tab-indentation.yaml": (
        "4:1",
        "not YAML: found character that cannot start any token",
        "indent with spaces, not with tabs",
    ),
    "template.yaml": (
        "5:3",
        "not YAML: could not find expected ':'",
        "this looks like a template: render it first, as in `helm template CHART | gpugate check -`",
    ),
    "two-commas.json": (
        "2:16",
        "not JSON: Expecting property name enclosed in double quotes",
        "check brackets and commas here",
    ),
    "unclosed-quote.yaml": (
        "4:9",
        "not YAML: found unexpected end of stream",
        "close the quote or bracket that is open here",
    ),
    "uneven-indentation.yaml": (
        "5:3",
        "not YAML: did not find expected key",
        "begin all keys of one object in the same column",
    ),
    "unknown-kind.yaml": ("2:7", "karpenter.sh/v1 has no kind NodePol", "did you mean NodePool?"),
}


def test_the_table_names_every_broken_file() -> None:
    assert sorted(PROBLEMS) == sorted(path.name for path in BROKEN.iterdir())


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_broken_file_gives_one_error_with_place_and_remedy(name: str) -> None:
    errors = [p for p in load([str(BROKEN / name)]).problems if not p.warning]

    assert [(f"{p.line}:{p.column}", p.message, p.remedy) for p in errors] == [PROBLEMS[name]]


def test_the_rest_of_a_broken_file_is_read() -> None:
    loaded = load([str(BROKEN / "between-two-good-ones.yaml")])

    assert [manifest.request.name for manifest in loaded.manifests] == ["before", "after"]
