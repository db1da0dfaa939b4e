from __future__ import annotations

import datetime as dt
import inspect
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine import config
from gpugate.policies.engine.config import ConfigError, PolicyConfig, near_misses, parse_config, stance_of
from gpugate.policies.sdk import platform
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind

if TYPE_CHECKING:
    from gpugate.policies.engine.config import Mode
    from gpugate.policies.sdk.field import Json

EXEMPTION: dict[str, Json] = {
    "policies": ["nodepools/*"],
    "kinds": ["NodePool"],
    "names": ["legacy-*"],
    "reason": "INC-4312, migrating",
    "owner": "platform",
    "expires": "2027-03-31",
}

ADDED: dict[str, Json] = {"apiVersion": "example.com/v1", "kind": "Train", "path": "spec.workers[*].template"}


def document(**sections: Json) -> dict[str, Json]:
    return {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **sections}


def without(key: str) -> dict[str, Json]:
    return {k: v for k, v in EXEMPTION.items() if k != key}


def test_a_file_that_says_nothing_is_the_default() -> None:
    assert parse_config(document()) == PolicyConfig()


def test_an_exemption_holds_a_day() -> None:
    assert parse_config(document(exemptions=[EXEMPTION])).exemptions[0].expires == dt.date(2027, 3, 31)


def test_added_templates_are_paths_by_type_each_once() -> None:
    other = {**ADDED, "path": "spec.driver.template"}
    found = parse_config(document(pod_templates=[ADDED, other, ADDED])).added_templates
    assert found == {
        GroupVersionKind("example.com", "v1", "Train"): (
            ("spec", "workers", "*", "template"),
            ("spec", "driver", "template"),
        )
    }


def test_a_bare_off_which_yaml_reads_as_false_is_a_mode() -> None:
    assert parse_config(document(mode=False)).mode is False


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ([], "the policy file is not a YAML mapping"),
        ({"kind": "PolicyConfig"}, "apiVersion: must be gpugate.dev/v1"),
        ({"apiVersion": "gpugate.dev/v2", "kind": "PolicyConfig"}, "apiVersion: must be gpugate.dev/v1"),
        ({"apiVersion": "gpugate.dev/v1", "kind": "Config"}, "kind: must be PolicyConfig"),
        (document(pod_templates=[{**ADDED, "apiVersion": "v1"}]), "pod_templates[0].apiVersion: invalid"),
        (document(pod_templates=[{**ADDED, "apiVersion": "example.com"}]), "pod_templates[0].apiVersion: invalid"),
        (document(pod_templates=[ADDED, {**ADDED, "kind": "train run"}]), "pod_templates[1].kind: invalid"),
        (document(pod_templates=[{**ADDED, "path": "spec..template"}]), "pod_templates[0].path: invalid"),
        (document(pod_templates=[{**ADDED, "path": "*.template"}]), "pod_templates[0].path: invalid"),
        (document(pod_templates=[{**ADDED, "path": "spec.pods[0]"}]), "pod_templates[0].path: invalid"),
        (document(pod_templates=[{**ADDED, "path": "a." * 16 + "b"}]), "pod_templates[0].path: invalid"),
        (document(pod_templates=[ADDED] * 101), "pod_templates: has 101 entries (limit: 100)"),
        (document(pod_templates=[{"kind": "Train", "path": "spec"}]), "pod_templates[0]: missing `apiVersion`"),
        (document(pod_templates=[{**ADDED, "paths": []}]), "pod_templates[0].paths: unknown key; did you mean `path`?"),
        (document(modee="audit"), "modee: unknown key; did you mean `mode`?"),
        (document(mode="Audit"), "mode: invalid enum value 'Audit'; did you mean `audit`?"),
        (document(target={"karpenter": 1.14}), "target.karpenter: expected `str`, got `float`"),
        (
            document(namespaces={"a-*": {"mode": "warn"}}),
            'namespaces["a-*"].mode: unknown key here; allowed: `policies`',
        ),
        (document(policies={"a/b": {"modes": "warn"}}), 'policies["a/b"].modes: unknown key; did you mean `mode`?'),
        (document(policies={"a/b": []}), 'policies["a/b"]: expected `object`, got `array`'),
        (document(namespaces={"x": {}}), "namespaces.x: missing `policies`, which is required"),
        (
            document(namespaces={"x": {"policies": {"a/b": {}}}}),
            'namespaces.x.policies["a/b"]: missing `mode`, which is required',
        ),
        (document(exemptions=[without("expires")]), "exemptions[0]: missing `expires`, which is required"),
        (document(exemptions=[without("reason")]), "exemptions[0]: missing `reason`, which is required"),
        (document(exemptions=[EXEMPTION | {"owner": " "}]), "exemptions[0].owner: must not be empty"),
        (document(exemptions=[EXEMPTION | {"expires": "soon"}]), "exemptions[0].expires: invalid RFC3339 encoded date"),
        *(
            (document(exemptions=[EXEMPTION | {key: ["a", ""]}]), f"exemptions[0].{key}[1]: is empty: write a name")
            for key in ("policies", "kinds", "namespaces", "names", "users", "groups")
        ),
        (document(excluded_namespaces=[""]), "excluded_namespaces[0]: is empty"),
        (document(namespaces={"": {"policies": {}}}), 'namespaces[""]: is empty'),
        (document(platform={"taint": {}}), "platform.taint: unknown key; did you mean `taints`?"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_mistake_is_refused_with_its_place_and_a_remedy(config: Json, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(config)
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (document(target={"karpenter": 1.14}), "target.karpenter: expected `str`, got `float`"),
        (document(qqqq=1), "qqqq: unknown key"),
        (document(modee="audit"), "modee: unknown key; did you mean `mode`?"),
        (document(target={"mode": "warn"}), "target.mode: unknown key here"),
        (
            document(policies={"a/b": {"audit": {}}}),
            'policies["a/b"].audit: unknown key here; allowed: `mode`, `params`',
        ),
        (document(platform={"taints": {"a": [{}]}}), "platform.taints: missing `key`, which is required"),
        (
            document(exemptions=[EXEMPTION, EXEMPTION | {"kinds": [1]}]),
            "exemptions[1].kinds[0]: expected `str`, got `int`",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_mistake_is_said_in_one_sentence(config: Json, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(config)
    assert str(refused.value) == says
    assert refused.value.message == says.partition(": ")[2]


@pytest.mark.parametrize("key", ["reason", "owner"])
def test_an_empty_explanation_of_an_exemption_is_refused_with_its_place(key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(document(exemptions=[EXEMPTION, EXEMPTION | {key: "\t"}]))
    assert refused.value.path == ("exemptions", 1, key)


@pytest.mark.parametrize(
    ("mode", "stance"),
    [
        ("off", Stance.OFF),
        (False, Stance.OFF),
        ("audit", Stance.AUDIT),
        ("warn", Stance.WARN),
        ("enforce", Stance.ENFORCE),
    ],
)
def test_a_mode_is_read(mode: Mode, stance: Stance) -> None:
    assert stance_of(mode, ()) is stance


def test_true_is_no_mode() -> None:
    with pytest.raises(ConfigError, match=r"^policies\.a: must be off, audit, warn or enforce, not a boolean"):
        stance_of(True, ("policies", "a"))  # noqa: FBT003 -- what YAML reads


def test_at_most_three_names_look_like_another() -> None:
    assert near_misses("pods/one", ["pods/on", "pods/once", "pods/ones", "pods/own", "x"]) == [
        "pods/ones",
        "pods/once",
        "pods/on",
    ]


SECTIONS = [
    section
    for module in (config, platform)
    for section in vars(module).values()
    if isinstance(section, type) and issubclass(section, msgspec.Struct) and section.__module__ == module.__name__
]


@pytest.mark.parametrize(
    "section", [*SECTIONS, *dict.fromkeys(each.params for each in CATALOG)], ids=lambda s: s.__name__
)
def test_a_section_cannot_change_and_refuses_unknown_keys(section: type[msgspec.Struct]) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(section).parameters.values()}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    assert section.__struct_config__.frozen
    assert section.__struct_config__.forbid_unknown_fields
