from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.project.find import ProjectFileError
from gpugate.webhook.project.read import MOST_BYTES, Chart, Docs, ProjectConfig, read_project
from gpugate.webhook.project.settings import skeleton

if TYPE_CHECKING:
    from collections.abc import Callable

    Tree = Callable[[dict[str, str]], Path]

FILE = ".gpugate.yaml"
READ = {
    "nothing": (FILE, "", ProjectConfig()),
    "comments": (FILE, skeleton("policy.yaml"), ProjectConfig(policy_file="policy.yaml")),
    "YAML": (FILE, "paths: [a, b]\nfail_on: warn\n", ProjectConfig(paths=("a", "b"), fail_on="warn")),
    "a chart": (
        FILE,
        "charts:\n- {path: c, values: [a.yaml, [a.yaml, b.yaml]]}\n",
        ProjectConfig(charts=(Chart(path="c", values=("a.yaml", ("a.yaml", "b.yaml"))),)),
    ),
    "an address": (
        FILE,
        "docs: {base_url: 'https://docs.example.com:8443/a/latest/'}\n",
        ProjectConfig(docs=Docs(base_url="https://docs.example.com:8443/a/latest/")),
    ),
    "TOML": ("pyproject.toml", "[tool.gpugate]\ncomplete_context = true\n", ProjectConfig(complete_context=True)),
    "a list that is empty": (FILE, "select: []\n", ProjectConfig(select=())),
}


@pytest.mark.parametrize(("name", "text", "config"), READ.values(), ids=READ)
def test_what_a_file_says(name: str, text: str, config: ProjectConfig, tree: Tree) -> None:
    assert read_project(Path(name), tree({name: text})).config == config


NO_URL = "not an address: write one such as https://docs.example.com/gpugate/"
REFUSED = {
    "an unknown key": (FILE, "paths: [a]\nselct: [b]\n", "2:8: selct: unknown key; did you mean `select`?"),
    "an unknown value": (FILE, "fail_on: denyed\n", "1:10: fail_on: invalid enum value 'denyed'; did you mean `deny`?"),
    "a wrong type": (FILE, "paths: manifests\n", "1:8: paths: expected `array`, got `str`"),
    "an unknown key of a chart": (
        FILE,
        "charts:\n- path: a\n- path: b\n  value: [x]\n",
        "4:10: charts[1].value: unknown key; did you mean `values`?",
    ),
    "an unknown tool of a template": (
        FILE,
        "templates:\n- paths: [a]\n  tool: envsub\n",
        "3:9: templates[0].tool: invalid enum value 'envsub'; did you mean `envsubst`?",
    ),
    "an address without a scheme": (FILE, "docs: {base_url: docs.example.com}\n", f"1:18: docs.base_url: {NO_URL}"),
    "an address of a program": (FILE, 'docs: {base_url: "javascript:a"}\n', f"1:18: docs.base_url: {NO_URL}"),
    "an address with a line break": (FILE, 'docs: {base_url: "https://a/\\n::error::"}\n', f"1:18: docs.base_url: {NO_URL}"),
    "an address with a fragment": (FILE, "docs: {base_url: 'https://a/#b'}\n", f"1:18: docs.base_url: {NO_URL}"),
    "a list": (FILE, "- a\n", "1:1: not an object: write `key: value` lines, such as `policy_file: policy.yaml`"),
    "a name that no file can have": (FILE, 'policy_file: "a\\0b"\n', "1:14: policy_file: is not a valid file name"),
    "such a name in a list": (FILE, 'paths: [a, "a\\0b"]\n', "1:12: paths[1]: is not a valid file name"),
    "such a name in a chart": (
        FILE,
        'charts:\n- path: a\n  values: [["a\\0b"]]\n',
        "3:13: charts[0].values[0][0]: is not a valid file name",
    ),
    "such a name in TOML": (
        "pyproject.toml",
        '[tool.gpugate]\nbaseline = "a\\u0000b"\n',
        "2:1: baseline: is not a valid file name",
    ),
    "not YAML": (FILE, "a: b: c\n", "1:5: not YAML: mapping values are not allowed in this context: indent"),
    "a key twice": (FILE, "paths: [a]\npaths: [b]\n", "2:1: the key paths occurs twice: kubectl keeps the last one only"),
    "two documents": (FILE, "paths: [a]\n---\npaths: [b]\n", "2:1: a second document: write one"),
    "an unknown key of TOML": (
        "pyproject.toml",
        '[project]\nname = "a"\n\n[tool.gpugate]\npaths = ["a"]\nnamespaec = "b"\n',
        "6:1: namespaec: unknown key; did you mean `namespace`?",
    ),
    "an unknown key of a chart of TOML": (
        "pyproject.toml",
        '[tool.gpugate]\n[[tool.gpugate.charts]]\npath = "a"\nvalue = []\n',
        "4:1: charts[0].value: unknown key; did you mean `values`?",
    ),
    "an inline table of TOML": (
        "pyproject.toml",
        "[tool]\n# gpugate\ngpugate = {paths = 1}\n",
        "3:1: paths: expected `array`, got `int`",
    ),
    "not TOML": ("pyproject.toml", "[tool.gpugate]\npaths = a\n", "2:9: not TOML: invalid value"),
    "TOML without a table of ours": ("pyproject.toml", "a = 1\n", " has no [tool.gpugate]"),
    "too large": (FILE, "#" * (MOST_BYTES + 1), " larger than 1 MiB: this is not a project file"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_refused_with_file_line_and_column(name: str, text: str, message: str, tree: Tree) -> None:
    with pytest.raises(ProjectFileError) as caught:
        read_project(Path(name), tree({name: text}))

    assert str(caught.value).removeprefix(f"{name}:").startswith(message)


def test_a_missing_file_is_refused(tree: Tree) -> None:
    with pytest.raises(ProjectFileError, match=r"^none\.yaml: no such file or directory$"):
        read_project(Path("none.yaml"), tree({}))
