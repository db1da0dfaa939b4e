"""The settings of a project: key, flag, variable, default and description."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from gpugate.policies.sdk.structs import Struct


class Sort(Enum):
    """What a setting holds, and so how its text in a variable is read and what its paths are relative to."""

    TEXT = auto()
    TEXTS = auto()
    SWITCH = auto()
    FILE = auto()
    FOLDER = auto()
    FOLDERS = auto()
    PATHS = auto()
    PATTERNS = auto()
    OUTPUTS = auto()
    CHARTS = auto()
    OBJECTS = auto()
    TEMPLATES = auto()
    DOCS = auto()


class Setting(Struct, frozen=True):
    """One setting.

    Attributes:
        key: its name in the file.
        sort: what it holds.
        text: what it means, in half a sentence.
        flag: what gives it on the command line; empty where nothing does.
        dests: where the parsers of commands keep it; the first is filled, and the others count as given too.
        variable: what gives it in the environment; empty where nothing does.
        default: the value if no source sets it.
        commands: those that have it; others ignore it.
        choices: the texts that it takes; any where there are none.
        example: what `config init` writes behind the key.
        alias: what messages call the flag, where they call it otherwise.
    """

    key: str
    sort: Sort
    text: str
    flag: str = ""
    dests: tuple[str, ...] = ()
    variable: str = ""
    default: object = None
    commands: tuple[str, ...] = ("check", "test")
    choices: tuple[str, ...] = ()
    example: str = ""
    alias: str = ""


SETTINGS: Final = (
    Setting(
        "paths",
        Sort.PATHS,
        "input of `check` without PATH",
        "PATH",
        ("path", "filename"),
        "GPUGATE_PATHS",
        (".",),
        ("check",),
        example="[clusters/, apps/]",
    ),
    Setting(
        "exclude",
        Sort.PATTERNS,
        "files and directories to leave out; a pattern with a slash is relative to this file, one without matches names at any depth",
        "--exclude",
        ("exclude",),
        "GPUGATE_EXCLUDE",
        (),
        ("check",),
        example="['*.draft.yaml', vendor/**]",
    ),
    Setting(
        "tests",
        Sort.PATHS,
        "input of `test` without PATH",
        "PATH",
        ("path",),
        "GPUGATE_TESTS",
        (".",),
        ("test",),
        example="[tests/policies]",
    ),
    Setting(
        "policy_file",
        Sort.FILE,
        "policy file with modes, parameters and exemptions: a policy.yaml, or the manifest of its ConfigMap",
        "--policy-file",
        ("policy_file",),
        "GPUGATE_POLICY_FILE",
        commands=("check", "test", "review", "bench", "policies", "explain"),
        example="policy.yaml",
    ),
    Setting(
        "policy_paths",
        Sort.FOLDERS,
        "directories of policies outside the library, as `ORGANISATION/NAME.py` or `.yaml`; their Python code is run",
        "--policy-path",
        ("policy_path",),
        "GPUGATE_POLICY_PATHS",
        (),
        ("check", "test", "review", "bench", "policies", "explain", "new-policy"),
        example="[policies]",
    ),
    Setting(
        "catalogue",
        Sort.FILE,
        "file of instance types of nodes that are not EC2 instances, written by `gpugate catalogue`",
        "--catalogue",
        ("catalogue",),
        "GPUGATE_CATALOGUE",
        commands=("check",),
        example="instance-types.yaml",
    ),
    Setting(
        "select",
        Sort.TEXTS,
        "run only these policies; ids or patterns",
        "--select",
        ("select",),
        "GPUGATE_SELECT",
        (),
        ("check",),
        example="['nodepools/*', 'pods/*']",
    ),
    Setting(
        "ignore",
        Sort.TEXTS,
        "skip these policies; ids or patterns",
        "--ignore",
        ("ignore",),
        "GPUGATE_IGNORE",
        (),
        ("check",),
        example="[pods/missing-cost-labels]",
    ),
    Setting(
        "fail_on",
        Sort.TEXT,
        "the lowest decision that makes the exit code 1: `deny`, `mutate`, `warn` or `never`",
        "--fail-on",
        ("fail_on",),
        "GPUGATE_FAIL_ON",
        "deny",
        ("check",),
        ("deny", "mutate", "warn", "never"),
        example="warn",
    ),
    Setting(
        "as_mode",
        Sort.TEXT,
        "`enforce` disregards the global mode of the policy file, which limits what the cluster enforces; `as-is` keeps it",
        "--as-mode",
        ("as_mode",),
        "GPUGATE_AS_MODE",
        "as-is",
        ("check",),
        ("enforce", "as-is"),
        example="enforce",
    ),
    Setting(
        "baseline",
        Sort.FILE,
        "file of known findings, which are hidden; only new ones count",
        "--baseline",
        ("baseline",),
        "GPUGATE_BASELINE",
        commands=("check",),
        example="gpugate-baseline.json",
    ),
    Setting(
        "namespace",
        Sort.TEXT,
        "namespace of objects without one",
        "--namespace",
        ("namespace",),
        "GPUGATE_DEFAULT_NAMESPACE",
        "default",
        ("check",),
        example="inference",
    ),
    Setting(
        "complete_context",
        Sort.SWITCH,
        "treat the input as the complete cluster state",
        "--complete-context",
        ("complete_context",),
        "GPUGATE_COMPLETE_CONTEXT",
        False,  # noqa: FBT003 -- the default of a switch
        ("check",),
        example="true",
    ),
    Setting(
        "context_from",
        Sort.PATHS,
        "files and directories of further objects that policies may look up, and that are not evaluated",
        "--context-from",
        ("context_from",),
        "GPUGATE_CONTEXT_FROM",
        (),
        ("check",),
        example="[cluster-dump.yaml]",
    ),
    Setting(
        "charts",
        Sort.CHARTS,
        "values of Helm charts; each chart is rendered once for each entry of `values`",
        default=(),
        commands=("check",),
        example="[{path: charts/vllm, values: [values/staging.yaml, [values/base.yaml, values/prod.yaml]]}]",
    ),
    Setting(
        "objects_in_values",
        Sort.OBJECTS,
        "objects in the values of charts outside the repository: `path` leads to them, with `*` for each member or item",
        default=(),
        commands=("check",),
        example="[{files: ['karpenter-values*.yaml'], path: nodePools.*, api_version: karpenter.sh/v1, kind: NodePool, spec: spec}]",
    ),
    Setting(
        "templates",
        Sort.TEMPLATES,
        "files with placeholders that a tool fills in before they are applied: `envsubst`, `terraform`, `go-template`, `jinja`, or `sed` for any placeholder",
        default=(),
        commands=("check",),
        example="[{paths: [infra/manifests/**], tool: terraform}]",
    ),
    Setting(
        "schemas",
        Sort.FOLDER,
        "folder of additional schemas, written by `gpugate schema add`",
        "--schemas",
        ("schemas",),
        "GPUGATE_SCHEMAS",
        commands=("check",),
        example=".gpugate/schemas",
    ),
    Setting(
        "output",
        Sort.OUTPUTS,
        "output formats, with =FILE to write a file",
        "--output",
        ("output",),
        "GPUGATE_OUTPUT",
        commands=("check",),
        example="[text, sarif=gpugate.sarif]",
        alias="-o",
    ),
    Setting(
        "docs",
        Sort.DOCS,
        "where the documentation's site is published; findings link to its pages",
        commands=("check",),
        example="{base_url: https://docs.example.com/gpugate/}",
    ),
)


_HEAD: Final = """\
# Settings of gpugate in this repository. Flags and variables override them; paths are relative to this file.
# `gpugate config show --origin` prints the effective settings; `gpugate config schema project` prints a JSON schema.
"""


def skeleton(policy_file: str) -> str:
    """Return a project file that names a policy file, and has every other key in a comment."""
    keys = "".join(
        f"\n# {setting.text[:1].upper()}{setting.text[1:]}.\n"
        f"{f'{setting.key}: {policy_file}' if setting.key == 'policy_file' else f'# {setting.key}: {setting.example}'}\n"
        for setting in SETTINGS
    )
    return _HEAD + keys
