from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.webhook.config.published_schemas import project_schema
from gpugate.webhook.project.find import ProjectFileError, VariableError
from gpugate.webhook.project.read import Chart, Objects, ProjectConfig, Template, read_project
from gpugate.webhook.project.settings import SETTINGS
from gpugate.webhook.project.settle import Settled, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tree = Callable[[dict[str, str]], Path]

FLAGS = {"fail_on": "flag"}
VARIABLES = {"GPUGATE_FAIL_ON": "warn"}
TEXT = "# a comment\nfail_on: mutate\n"
PRECEDENCE: dict[str, tuple[dict[str, object], dict[str, str], str, tuple[str, str]]] = {
    "a flag": (FLAGS, VARIABLES, TEXT, ("flag", "--fail-on")),
    "a variable": ({}, VARIABLES, TEXT, ("warn", "GPUGATE_FAIL_ON")),
    "the file": ({}, {}, TEXT, ("mutate", ".gpugate.yaml:2")),
    "nobody": ({}, {}, "", ("deny", "default")),
    "an empty variable, which says nothing": ({}, {"GPUGATE_FAIL_ON": ""}, TEXT, ("mutate", ".gpugate.yaml:2")),
}


def settled(
    tree: Tree, text: str, flags: dict[str, object] | None = None, variables: dict[str, str] | None = None
) -> dict[str, Settled]:
    root = tree({".gpugate.yaml": text})
    return settle(flags or {}, variables or {}, read_project(Path(".gpugate.yaml"), root), root)


@pytest.mark.parametrize(("flags", "variables", "text", "expected"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_who_says_what_holds(
    flags: dict[str, object], variables: dict[str, str], text: str, expected: tuple[str, str], tree: Tree
) -> None:
    found = settled(tree, text, flags, variables)["fail_on"]

    assert (found.value, found.origin) == expected


# Key, what the file says, and what that is in a directory below and beside it.
REBASED: dict[str, tuple[str, str, Any]] = {
    "a path": ("policy_file", "policy.yaml", "../conf/policy.yaml"),
    "a path upward": ("policy_file", "../policy.yaml", "../policy.yaml"),
    "paths, with standard input": ("paths", "[a/, -]", ("../conf/a", "-")),
    "patterns": ("exclude", "['*.draft.yaml', /x, vendor/**, ../work/b]", ("*.draft.yaml", "/x", "./../conf/vendor/**", "./b")),
    "outputs": ("output", "[text, sarif=a.sarif]", ("text", "sarif=../conf/a.sarif")),
    "charts": (
        "charts",
        "[{path: c, values: [a.yaml, [b.yaml]]}]",
        (Chart(path="../conf/c", values=("../conf/a.yaml", ("../conf/b.yaml",))),),
    ),
    "objects in values": (
        "objects_in_values",
        "[{files: [values/*.yaml, v.yaml], path: a.*, api_version: v1, kind: Pod}]",
        (Objects(files=("./../conf/values/*.yaml", "v.yaml"), path="a.*", api_version="v1", kind="Pod"),),
    ),
    "templates": (
        "templates",
        "[{paths: [a/**, '*.tmpl.yaml'], tool: envsubst}]",
        (Template(paths=("./../conf/a/**", "*.tmpl.yaml"), tool="envsubst"),),
    ),
    "no path": ("namespace", "a", "a"),
}  # fmt: skip


@pytest.mark.parametrize(("key", "said", "expected"), REBASED.values(), ids=REBASED)
def test_paths_of_a_file_are_relative_to_it(key: str, said: str, expected: Any, tree: Tree) -> None:
    root = tree({".git/": "", "conf/.gpugate.yaml": f"{key}: {said}\n", "work/": ""})

    found = settle({}, {}, read_project(Path("../conf/.gpugate.yaml"), root / "work"), root / "work")

    assert found[key].value == expected


# What is a work tree, what the file in `a/` says, and its index and column where it is refused.
OUTPUTS: dict[str, tuple[str, str, tuple[int, int] | None]] = {
    "a file beside": ("", "[sarif=b]", None),
    "standard output": ("", "[text, sarif=-]", None),
    "a file above, in the work tree": ("", "[sarif=../b]", None),
    "a file above the work tree": ("", "[text, sarif=../../b]", (1, 16)),
    "a file above, where there is no work tree": ("other/", "[sarif=../b]", (0, 10)),
    "a file below, where there is no work tree": ("other/", "[sarif=b/c]", None),
    "a file with its whole path": ("", "[sarif=/b]", (0, 10)),
    "a link out of the work tree": ("", "[sarif=link/b]", (0, 10)),
    "no name of a file": ("", '["sarif=a\\0b"]', (0, 10)),
    "a file of git": ("", "[sarif=../.git/config]", (0, 10)),
}


@pytest.mark.parametrize(("top", "said", "refused"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_of_a_file_are_in_its_work_tree(
    top: str, said: str, refused: tuple[int, int] | None, tree: Tree
) -> None:
    root = tree({f"tree/{top}.git/": "", "tree/a/.gpugate.yaml": f"output: {said}\n"})
    (root / "tree/a/link").symlink_to(root)
    project = read_project(Path(".gpugate.yaml"), root / "tree/a")

    try:
        settle({}, {}, project, root / "tree/a")
    except ProjectFileError as error:
        found = str(error).partition("]: ")[0]
    else:
        found = ""

    assert found == (f".gpugate.yaml:1:{refused[1]}: output[{refused[0]}" if refused else "")


def test_an_output_of_a_flag_may_be_anywhere(tree: Tree) -> None:
    assert settled(tree, "output: [text=../b]\n", {"output": ["text=/b"]})["output"].value == ["text=/b"]


VARIABLE_VALUES = {
    "a list": ("GPUGATE_SELECT", "pods/*, nodepools/*,", "select", ("pods/*", "nodepools/*")),
    "a switch": ("GPUGATE_COMPLETE_CONTEXT", "true", "complete_context", True),
    "a switch that is off": ("GPUGATE_COMPLETE_CONTEXT", "0", "complete_context", False),
    "a text": ("GPUGATE_DEFAULT_NAMESPACE", "a", "namespace", "a"),
}


@pytest.mark.parametrize(("variable", "text", "key", "value"), VARIABLE_VALUES.values(), ids=VARIABLE_VALUES)
def test_what_a_variable_says(variable: str, text: str, key: str, value: object) -> None:
    assert settle({}, {variable: text}, None, Path("/"))[key].value == value


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("GPUGATE_COMPLETE_CONTEXT", "maybe", "^GPUGATE_COMPLETE_CONTEXT='maybe': write true or false$"),
        ("GPUGATE_FAIL_ON", "audit", "^GPUGATE_FAIL_ON='audit': write deny or mutate or warn or never$"),
    ],
)
def test_a_variable_that_says_something_else_is_refused(variable: str, text: str, message: str) -> None:
    with pytest.raises(VariableError, match=message):
        settle({}, {variable: text}, None, Path("/"))


def test_the_table_has_every_key_of_the_file() -> None:
    assert {setting.key for setting in SETTINGS} == {field.name for field in msgspec.structs.fields(ProjectConfig)}


def test_every_setting_has_its_own_variable() -> None:
    variables = [setting.variable for setting in SETTINGS if setting.variable]

    assert len(variables) == len(set(variables))


def test_choices_are_those_of_the_file() -> None:
    properties = project_schema()["properties"]

    known = {setting.key: set(setting.choices) for setting in SETTINGS}
    assert known == {key: set(each.get("enum", ())) for key, each in properties.items()}


# Leaves of the project file's schema that name no file to read; an entry that is new must be in this list or refused.
NO_PATHS = {
    "exclude[]",  # leaves out
    "select[]",
    "ignore[]",
    "fail_on",
    "as_mode",
    "namespace",
    "complete_context",
    "charts[].set[]",  # `helm --set`, which reads no files
    "charts[].release",
    "charts[].namespace",
    "charts[].api_versions[]",
    "objects_in_values[].files[]",  # chooses among files that are read
    "objects_in_values[].path",
    "objects_in_values[].api_version",
    "objects_in_values[].kind",
    "objects_in_values[].spec",
    "templates[].paths[]",  # patterns for files that are read anyway
    "templates[].tool",
    "docs.base_url",
}
FORMAT = "text="  # an output is one behind its format


def leaves(schema: dict[str, Any], node: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the leaves of a JSON schema that hold a text, as `charts[].values[][]`."""
    if "$ref" in node:
        yield from leaves(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], path)
    for each in node.get("anyOf", ()):
        yield from leaves(schema, each, path)
    if node.get("type") == "array":
        yield from leaves(schema, node["items"], f"{path}[]")
    elif node.get("type") == "object":
        for key, member in node["properties"].items():
            yield from leaves(schema, member, f"{path}.{key}" if path else key)
    elif node.get("type") in {"string", "boolean"} or "enum" in node:
        yield path


def said(leaf: str, value: str) -> dict[str, Any]:
    """Return a project file that says a value at a leaf and nothing else that it can leave out."""
    made: Any = f"{FORMAT}{value}" if leaf == "output[]" else value
    for part in reversed(re.findall(r"\[\]|[a-z_]+", leaf)):
        made = [made] if part == "[]" else {part: made}
    if leaf.startswith("charts[]."):
        made["charts"][0].setdefault("path", "inside")
    return dict(made)


PATH_LEAVES = sorted(set(leaves(project_schema(), project_schema())) - NO_PATHS)
# What a stranger would write, from the directory of the project file.
STOLEN = ("../secret", "{outside}/secret", "link", "below/secret", ".git/config", ".GIT/config", "/proc/self/environ", "ptmx", "pipe")  # fmt: skip


def test_every_setting_is_known_to_be_a_path_or_none() -> None:
    assert {leaf.partition("[")[0] for leaf in PATH_LEAVES} == {
        "baseline",
        "catalogue",
        "charts",
        "context_from",
        "output",
        "paths",
        "policy_file",
        "policy_paths",
        "schemas",
        "tests",
    }


@pytest.mark.parametrize("stolen", STOLEN)
@pytest.mark.parametrize("leaf", PATH_LEAVES)
def test_no_setting_of_a_project_file_names_what_is_not_of_the_repository(leaf: str, stolen: str, tree: Tree) -> None:
    root = tree({"secret": "", "repo/.git/config": "", "repo/inside": ""})
    (root / "repo/link").symlink_to("../secret")
    (root / "repo/below").symlink_to("..")
    (root / "repo/ptmx").symlink_to("/dev/ptmx")
    os.mkfifo(root / "repo/pipe")
    text = msgspec.json.encode(said(leaf, stolen.format(outside=root))).decode()
    (root / "repo/.gpugate.yaml").write_text(text)
    project = read_project(Path(".gpugate.yaml"), root / "repo")

    with pytest.raises(ProjectFileError) as refused:
        settle({}, {}, project, root / "repo")

    place, setting, _ = str(refused.value).split(": ", 2)
    assert place.startswith(".gpugate.yaml:1:")
    assert re.sub(r"\[\d+\]", "[]", setting) in {leaf, leaf.removesuffix("[]")}


@pytest.mark.parametrize("leaf", PATH_LEAVES)
def test_what_is_of_the_repository_may_be_named(leaf: str, tree: Tree) -> None:
    root = tree({"repo/.git/": "", "repo/conf/.gpugate.yaml": ""})
    text = msgspec.json.encode(said(leaf, "../inside")).decode()
    (root / "repo/conf/.gpugate.yaml").write_text(text)

    settle({}, {}, read_project(Path(".gpugate.yaml"), root / "repo/conf"), root / "repo/conf")
