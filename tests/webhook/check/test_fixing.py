from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import Exemption, PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Violation
from gpugate.policies.sdk.objects import NODE_POOL, POD
from gpugate.policies.sdk.policy import AnyContext, Policy, mutates, validates
from gpugate.webhook.check import fix as changing
from gpugate.webhook.check.fix import FixedFile, apply_fixes, changed
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.session import Evaluation
from gpugate.webhook.manifests.inputs import Input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Field
    from gpugate.webhook.manifests.documents import Document
    from gpugate.webhook.manifests.objects import Manifest

DAY = dt.date(2026, 1, 1)
POD_YAML = """\
# ours
apiVersion: v1
kind: Pod
metadata:
  name: a # the name
spec:
  containers: []
"""
POOL_YAML = """\
# ours
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: a
spec:
  weight: 1 # low
"""


@mutates(POD)
def _tolerating(pod: Field, _: AnyContext) -> Iterator[Patch]:
    if not pod["spec", "tolerations"]:
        yield Patch("append", pod["spec", "tolerations"].path, {"key": "gpu"}, "adds a toleration")


@validates(POD)
def _named(pod: Field, _: AnyContext) -> Iterator[Violation]:
    path = pod["metadata", "labels", "name"].path
    if pod["spec", "tolerations"] and not pod["metadata", "labels", "name"]:
        fix = Patches((Patch("set", path, pod["metadata", "name"].value, ""),), safe=True)
        yield Violation(path, "has no label", fix=fix)


@validates(NODE_POOL)
def _heavy(pool: Field, _: AnyContext) -> Iterator[Violation]:
    if pool["spec", "weight"].value == 1:
        path = pool["spec", "weight"].path
        yield Violation(path, "is light", fix=Patches((Patch("set", path, 9, ""),)))


@validates(NODE_POOL)
def _budgeted(pool: Field, _: AnyContext) -> Iterator[Violation]:
    budgets = pool["spec", "disruption", "budgets"]
    if len([*budgets]) < 2:
        patch = Patch("append", budgets.path, {"nodes": "0"}, "")
        yield Violation(budgets.path, "has one budget", fix=Patches((patch,), safe=True))


@validates(NODE_POOL)
def _split(pool: Field, _: AnyContext) -> Iterator[Violation]:
    if pool["metadata", "name"].text == "a":
        objects: Any = tuple({"kind": "NodePool", "metadata": {"name": name}, "y": "on"} for name in ("b", "c"))
        yield Violation(("metadata", "name"), "is two", fix=Replacement(objects))


@validates(NODE_POOL)
def _renamed(pool: Field, _: AnyContext) -> Iterator[Violation]:
    if pool["metadata", "name"].text == "a":
        obj: Any = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "b"},
            "spec": {"weight": 1},
        }
        yield Violation(("metadata", "name"), "is old", fix=Replacement((obj,)))


@validates(NODE_POOL, needs=(Need(POD, ("metadata.labels",)),))
def _followed(pool: Field, ctx: AnyContext) -> Iterator[Violation]:
    pods: Any = ctx.facts.list(POD)
    if any(item["metadata", "labels", "name"] for item in pods.items) and not pool["spec", "followed"]:
        path = pool["spec", "followed"].path
        yield Violation(path, "is followed", fix=Patches((Patch("set", path, value=True, reason=""),), safe=True))


@validates(NODE_POOL)
def _never_content(pool: Field, _: AnyContext) -> Iterator[Violation]:
    path = pool["spec", "list"].path
    yield Violation(path, "is never content", fix=Patches((Patch("append", path, 1, ""),), safe=True))


@validates(NODE_POOL)
def _never_enough(pool: Field, _: AnyContext) -> Iterator[Violation]:
    path = pool["spec", "list"].path
    patch = Patch("append", path, 1, "")
    yield Violation(path, f"has {len([*pool['spec', 'list']])}", fix=Patches((patch,), safe=True))


HANDLERS = (_tolerating, _named, _heavy, _budgeted, _split, _renamed, _followed, _never_content, _never_enough)
CATALOG = {handler.run.__name__.strip("_"): handler for handler in HANDLERS}


@pytest.fixture
def fixed(tmp_path: Path) -> Callable[..., list[FixedFile]]:
    """Fix texts, each a file, with some policies made for these tests."""

    def run(*texts: str, policies: str, unsafe: bool = False, suffix: str = "yaml") -> list[FixedFile]:
        files = []
        for number, text in enumerate(texts):
            file = tmp_path / f"{number}.{suffix}"
            file.write_bytes(text.encode())
            files.append(Input(str(file), explicit=True))
        catalog = [Policy(f"pods/{name}", "A policy.", (CATALOG[name],)) for name in policies.split()]
        return apply_fixes(files, (), bind(catalog, PolicyConfig()), Options(DAY), unsafe=unsafe)

    return run


TOLERATED = POD_YAML + "  tolerations:\n    - key: gpu\n"
LABELLED = TOLERATED.replace("# the name\n", "# the name\n  labels:\n    name: a\n")
TEMPLATE = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    spec: {}\n"
ITEMS = "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n  spec: {}\n"
JSON = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}\n'

SAFE: dict[str, tuple[str, str, str]] = {
    "what admission adds": (POD_YAML, "tolerating", TOLERATED),
    "a fix that this makes necessary": (POD_YAML, "tolerating named", LABELLED),
    "what Pods of a template get": (
        TEMPLATE,
        "tolerating",
        TEMPLATE.replace("spec: {}", "spec:\n      tolerations:\n        - key: gpu"),
    ),
    "an item of a typed list": (
        ITEMS,
        "tolerating",
        ITEMS.replace("spec: {}", "spec:\n    tolerations:\n    - key: gpu"),
    ),
    "JSON": (JSON, "tolerating", JSON.replace('"spec": {}', '"spec": {"tolerations": [{"key": "gpu"}]}')),
    "a list that is there by default only": (
        POOL_YAML,
        "budgeted",
        POOL_YAML + '  disruption:\n    consolidateAfter: 0s\n    budgets:\n      - nodes: "10%"\n      - nodes: "0"\n',
    ),
    "not what is unsafe": (POOL_YAML, "heavy", POOL_YAML),
    "not what a comment lets pass": (
        POD_YAML.replace("spec:", "spec: # gpugate: ignore[pods/tolerating] by hand"),
        "tolerating",
        POD_YAML.replace("spec:", "spec: # gpugate: ignore[pods/tolerating] by hand"),
    ),
    "not twice what never helps": (POOL_YAML, "never_content", POOL_YAML + "  list:\n    - 1\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "policies", "after"), SAFE.values(), ids=SAFE)
def test_safe_changes_are_made_in_the_text(
    text: str, policies: str, after: str, fixed: Callable[..., list[FixedFile]]
) -> None:
    (file,) = fixed(text, policies=policies)

    assert (file.after, file.left) == (after, [])


UNSAFE: dict[str, tuple[str, str, str]] = {
    "a value": (POOL_YAML, "heavy", POOL_YAML.replace("1 #", "9 #")),
    "an object in its place": (POOL_YAML, "renamed", POOL_YAML.replace("name: a", "name: b")),
    "an object with comments in its place": (
        POOL_YAML + "  # heavy\n  limits:\n    cpu: 1\n",
        "renamed",
        POOL_YAML.replace("name: a", "name: b"),
    ),
    "two objects": (
        POOL_YAML + "---\n" + POD_YAML,
        "split",
        '# ours\nkind: NodePool\nmetadata:\n  name: b\n"y": "on"\n---\nkind: NodePool\nmetadata:\n  name: c\n"y": "on"\n---\n'
        + POD_YAML,
    ),
}


@pytest.mark.parametrize(("text", "policies", "after"), UNSAFE.values(), ids=UNSAFE)
def test_unsafe_changes_are_made_when_asked_for(
    text: str, policies: str, after: str, fixed: Callable[..., list[FixedFile]]
) -> None:
    (file,) = fixed(text, policies=policies, unsafe=True)

    assert file.after == after


def test_what_changes_in_one_file_counts_for_the_others(fixed: Callable[..., list[FixedFile]]) -> None:
    _, pool = fixed(TOLERATED, POOL_YAML, policies="named followed")

    assert pool.after == POOL_YAML + "  followed: true\n"


LEFT = {
    "an alias": (
        "apiVersion: v1\nkind: List\nitems:\n- &a\n  apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- *a\n",
        "tolerating",
        "the value is an alias of another one",
    ),
    "two objects in a list": (
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}}\n",
        "split",
        "the object is an item of a list",
    ),
}


@pytest.mark.parametrize(("text", "policies", "why"), LEFT.values(), ids=LEFT)
def test_what_cannot_be_changed_safely_is_left_and_said(
    text: str, policies: str, why: str, fixed: Callable[..., list[FixedFile]]
) -> None:
    (file,) = fixed(text, policies=policies, unsafe=True)

    assert file.after == text
    assert file.left
    assert {line.rpartition(": ")[2] for line in file.left} == {why}


LIST = "apiVersion: v1\nkind: List\nitems:\n"
ITEM = "- apiVersion: v1\n  kind: Pod\n  metadata: {name: NAME}\n"
ADDED = "  spec:\n    tolerations:\n    - key: gpu\n"
ITEM_JSON = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME"}, "spec": {}}'
ADDED_JSON = ITEM_JSON.replace("{}", '{"tolerations": [{"key": "gpu"}]}')


def listed(*items: str, head: str = LIST, between: str = "", tail: str = "") -> str:
    return head + between.join(item.replace("NAME", f"p{number}") for number, item in enumerate(items)) + tail


LISTS = {
    "items": (listed(ITEM, ITEM, ITEM), listed(*[ITEM + ADDED] * 3)),
    "items that are indented": (
        listed(ITEM, ITEM).replace("\n-", "\n  -").replace("\n  k", "\n    k").replace("\n  m", "\n    m"),
        listed(ITEM, ITEM)
        .replace("\n-", "\n  -")
        .replace("\n  k", "\n    k")
        .replace("\n  m", "\n    m")
        .replace("}\n", "}\n    spec:\n      tolerations:\n        - key: gpu\n"),
    ),
    "comments behind, between and below": (
        listed("# the first\n" + ITEM[:-1] + " # small\n", "# the second\n" + ITEM[:-1] + " # big\n", tail="# the end\n"),
        listed(
            "# the first\n" + ITEM[:-1] + " # small\n" + ADDED,
            "# the second\n" + ITEM[:-1] + " # big\n" + ADDED,
            tail="# the end\n",
        ),
    ),
    "a key below the items": (
        listed(ITEM, ITEM, tail="metadata: {resourceVersion: ''}\n"),
        listed(ITEM + ADDED, ITEM + ADDED, tail="metadata: {resourceVersion: ''}\n"),
    ),
    "no line break at the end": (listed(ITEM, ITEM)[:-1], listed(ITEM + ADDED, ITEM + ADDED)[:-1]),
    "line breaks of Windows": (
        listed(ITEM, ITEM).replace("\n", "\r\n"),
        listed(ITEM + ADDED, ITEM + ADDED).replace("\n", "\r\n"),
    ),
    "dashes on lines of their own": (
        listed(ITEM, ITEM).replace("- ", "-\n  "),
        listed(ITEM + "  spec:\n    tolerations:\n    -_key: gpu\n", ITEM + "  spec:\n    tolerations:\n    -_key: gpu\n")
        .replace("- ", "-\n  ")
        .replace("-_", "- "),
    ),
    "JSON": (
        listed(ITEM_JSON, ITEM_JSON, head='{"apiVersion": "v1", "kind": "List", "items": [', between=", ", tail="]}\n"),
        listed(ADDED_JSON, ADDED_JSON, head='{"apiVersion": "v1", "kind": "List", "items": [', between=", ", tail="]}\n"),
    ),
    "one that is right already": (listed(ITEM, ITEM + ADDED, ITEM), listed(*[ITEM + ADDED] * 3)),
    "two of one name": (
        listed(ITEM, ITEM).replace("p1", "p0"),
        listed(ITEM + ADDED, ITEM + ADDED).replace("p1", "p0"),
    ),
    "an anchor that another item uses": (
        listed(ITEM.replace("{name", "&m {name"), ITEM.replace("{name: NAME}", "*m")),
        listed(ITEM.replace("{name", "&m {name") + ADDED, ITEM.replace("{name: NAME}", "*m") + ADDED),
    ),
    "a list in a list": (
        listed(ITEM, "- apiVersion: v1\n  kind: List\n  items:\n" + ITEM.replace("\n", "\n  ").join(("  ", "")).rstrip(" ")),
        listed(
            ITEM + ADDED,
            "- apiVersion: v1\n  kind: List\n  items:\n"
            + (ITEM + ADDED).replace("\n", "\n  ").join(("  ", "")).rstrip(" "),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "after"), LISTS.values(), ids=LISTS)
def test_each_object_of_a_list_is_fixed(text: str, after: str, fixed: Callable[..., list[FixedFile]]) -> None:
    (file,) = fixed(text, policies="tolerating")

    assert (file.after, file.left) == (after, [])


def test_many_objects_are_as_much_work_as_each_by_itself(
    fixed: Callable[..., list[FixedFile]], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Manifest] = []
    lengths: list[int] = []

    whole = Evaluation.of

    def counted(evaluation: Evaluation, manifest: Manifest) -> Verdict:
        judged.append(manifest)
        return whole(evaluation, manifest)

    def counted_change(document: Document, *given: Any) -> str:
        lengths.append(len(document.text))
        return changed(document, *given)

    monkeypatch.setattr(Evaluation, "of", counted)
    monkeypatch.setattr(changing, "changed", counted_change)

    (file,) = fixed(listed(*[ITEM] * 120), policies="tolerating")

    assert (file.after, file.policies) == (listed(*[ITEM + ADDED] * 120), ["pods/tolerating"] * 120)
    assert (len(judged), len(lengths)) == (2 * 120, 120)
    assert max(lengths) < 2 * len(LIST + ITEM)


def test_what_has_no_end_is_given_up_and_said(fixed: Callable[..., list[FixedFile]]) -> None:
    (file,) = fixed(POOL_YAML, policies="never_enough")

    assert file.after == POOL_YAML + "  list:\n" + "    - 1\n" * 50
    assert [line.partition(": ")[2] for line in file.left] == [
        "fixes are incomplete after 50 changes of one object, each of which caused another finding; run again"
    ]


def test_what_is_exempt_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(TOLERATED)
    exemption = Exemption(policies=("*",), reason="agreed", owner="us", expires=dt.date(2030, 1, 1))
    ruleset = bind([Policy("pods/named", "A policy.", (_named,))], PolicyConfig(exemptions=(exemption,)))

    (found,) = apply_fixes([Input(str(file), explicit=True)], (), ruleset, Options(DAY), unsafe=True)

    assert found.after == TOLERATED
