"""The laws that every example of the library keeps."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from example_laws import for_each_example
from library_examples import Example, library_example, ruleset_of

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.redaction import Vocabulary, library_texts, redacted
from gpugate.webhook.manifests.documents import Document, Positions, read_text
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.testing.expect_comments import Expected, role_of
from gpugate.webhook.testing.pairs import fixed_objects

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json

ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
TODAY = dt.date(2026, 11, 21)

examples = for_each_example(FILES)


def judge(example: Example, request: Request | None = None) -> Verdict:
    judged = with_defaults(request or example.request)
    facts = RunFacts((*example.context, judged), complete=example.complete)
    return evaluate(ruleset_of(example.config), judged, facts, today=TODAY, phase=Phase.BOTH)


@cache
def as_written(file: Path) -> Verdict:
    """Evaluate an example as it is written, once for all laws; nothing may change the verdict."""
    return judge(library_example(file))


def found(verdict: Verdict, example: Example) -> frozenset[Expected]:
    """Everything that policies found or changed, by the line of the file."""
    paths = [(finding.policy, finding.path) for finding in verdict.findings]
    paths += [(policy, patch.path) for policy, patch in verdict.patches]
    paths += [(policy, made.patch.path) for policy, made in verdict.template_patches]
    positions = Positions(example.manifest.document)
    return frozenset(Expected(positions.find(example.manifest.prefix + path).line, policy) for policy, path in paths)


def policies_in(expected: frozenset[Expected]) -> set[str]:
    return {each.policy for each in expected}


@examples
def test_policies_find_what_is_expected_where_it_is_expected_and_nothing_else(file: Path) -> None:
    example = library_example(file)
    assert found(as_written(file), example) == example.expected


@examples
def test_nothing_breaks_or_is_malformed(file: Path) -> None:
    verdict = as_written(file)
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []
    assert verdict.malformed == ()


@examples
def test_nothing_breaks_where_the_object_is_of_another_version_than_was_sent(file: Path) -> None:
    example = library_example(file)
    # Every policy is called for the version that was sent, and reads an object of an unknown one.
    sent = example.request.kind
    unknown = GroupVersionKind(sent.group, "unknown", sent.kind)
    verdict = judge(example, replace(example.request, kind=unknown, requested_kind=sent))
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []


@examples
def test_an_object_of_another_group_than_was_sent_is_not_evaluated_as_what_was_sent(file: Path) -> None:
    example = library_example(file)
    sent = example.request.kind
    unknown = GroupVersionKind("unknown", sent.version, sent.kind)
    verdict = judge(example, replace(example.request, kind=unknown, requested_kind=sent))
    assert [outcome.policy for outcome in verdict.outcomes if outcome.findings or outcome.error] == []


@examples
def test_it_says_in_its_first_line_what_it_shows(file: Path) -> None:
    assert library_example(file).title


@for_each_example(file for file in FILES if file.name.startswith("bad-"))
def test_a_bad_example_expects_its_own_policy(file: Path) -> None:
    own = f"{file.parts[-4]}/{file.parent.name.replace('_', '-')}"
    assert own in policies_in(library_example(file).expected)


@for_each_example(file for file in FILES if not file.name.startswith("bad-"))
def test_a_good_example_expects_nothing(file: Path) -> None:
    assert file.name.startswith(("good-", "fixed-"))
    if file.name.startswith("good-"):
        assert library_example(file).expected == frozenset()


def defaulted(obj: Json) -> Json:
    assert isinstance(obj, dict)
    kind = GroupVersionKind.of(str(obj["apiVersion"]), str(obj["kind"]))
    return with_defaults(Request(kind, Operation.CREATE, obj)).object


@for_each_example(file for file in FILES if file.name.startswith("fixed-"))
def test_a_bad_example_becomes_the_fixed_one(file: Path) -> None:
    own = f"{file.parts[-4]}/{file.parent.name.replace('_', '-')}"
    bad = file.with_name(file.name.replace("fixed-", "bad-", 1))
    documents = [d for d in read_text(file.name, file.read_text()) if isinstance(d, Document)]
    wanted = [d.value for d in documents if not role_of(d) and not is_config(d)]
    assert [defaulted(obj) for obj in fixed_objects(as_written(bad), {own})] == [defaulted(obj) for obj in wanted]


def is_config(document: Document) -> bool:
    return isinstance(document.value, dict) and document.value.get("kind") == "PolicyConfig"


def as_integers(value: Json) -> Json:
    """The same with every quantity of a whole number as an integer, as many people write them."""
    if isinstance(value, dict):
        return {
            key: {k: int(v) if isinstance(v, str) and v.isdigit() else v for k, v in member.items()}
            if key in {"limits", "requests"} and isinstance(member, dict)
            else as_integers(member)
            for key, member in value.items()
        }
    return [as_integers(member) for member in value] if isinstance(value, list) else value


def with_generated_name(request: Request) -> Request:
    obj = dict(request.object or {})
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    obj["metadata"] = {key: value for key, value in metadata.items() if key != "name"} | {"generateName": request.name}
    return replace(request, object=obj, name="", generate_name=request.name)


VARIANTS = {
    "with integers for quantities": lambda r: replace(r, object=as_integers(r.object)),
    "with generateName": with_generated_name,
    "as a dry run": lambda r: replace(r, dry_run=True),
}


@pytest.mark.parametrize("variant", VARIANTS)
@examples
def test_the_same_is_found(file: Path, variant: str) -> None:
    example = library_example(file)
    varied = judge(example, VARIANTS[variant](example.request))
    assert policies_in(found(varied, example)) == policies_in(example.expected)


@examples
def test_as_an_unchanged_update_it_finds_the_same_and_holds_nothing_up(file: Path) -> None:
    example = library_example(file)
    obj = with_defaults(example.request).object
    unchanged = replace(example.request, operation=Operation.UPDATE, object=obj, old_object=obj)
    verdict = judge(example, unchanged)
    assert policies_in(found(verdict, example)) == policies_in(example.expected)
    assert max((finding.stance for finding in verdict.findings), default=Stance.OFF) <= Stance.WARN
    assert verdict.operations == ()
    assert verdict.allowed


def decisions(verdict: Verdict) -> list[tuple[object, ...]]:
    """What each policy decides, without messages and paths."""
    return [
        (
            outcome.policy,
            sorted(finding.stance for finding in outcome.findings),
            bool(outcome.patches),
            bool(outcome.skipped),
        )
        for outcome in verdict.outcomes
    ]


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(library_texts())


def recorded(request: Request) -> Request:
    """The request as a record of reviews contains it."""
    obj, old = (value and redacted(value, vocabulary()) for value in (request.object, request.old_object))
    return replace(request, object=obj, old_object=old)


@examples
def test_from_a_record_of_it_and_of_the_cluster_it_is_decided_alike(file: Path) -> None:
    example = library_example(file)
    of_record = replace(example, context=tuple(map(recorded, example.context)))
    assert decisions(judge(of_record, recorded(example.request))) == decisions(as_written(file))


@examples
def test_as_a_delete_it_is_let_through_without_a_word(file: Path) -> None:
    example = library_example(file)
    delete = replace(
        example.request, operation=Operation.DELETE, object=None, old_object=with_defaults(example.request).object
    )
    verdict = judge(example, delete)
    assert (verdict.allowed, verdict.operations, list(verdict.findings)) == (True, (), [])


@examples
def test_mutated_again_it_stays_as_it_is(file: Path) -> None:
    example = library_example(file)
    mutated = as_written(file).object
    again = judge(example, replace(example.request, object=mutated))
    assert again.operations == ()


def test_the_catalogue_holds_every_policy_file() -> None:
    files = {
        f"{file.parent.name}/{file.stem.replace('_', '-')}"
        for file in ROOT.glob("*/*.py")
        if not file.stem.startswith("_") and file.parent.name not in {"cel", "data", "engine", "sdk"}
    }
    assert {policy.id for policy in CATALOG} == files


@pytest.mark.parametrize("policy", [policy.id for policy in CATALOG])
def test_every_policy_has_a_bad_and_a_good_example(policy: str) -> None:
    family, name = policy.split("/")
    names = [file.name for file in (ROOT / family / "examples" / name.replace("-", "_")).glob("*.yaml")]
    assert any(name.startswith("bad-") for name in names)
    assert any(name.startswith("good-") for name in names)


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_every_policy_says_why_what_instead_and_from_where(policy: object) -> None:
    doc = getattr(policy, "doc", "")
    assert all(f"\n## {heading}\n" in doc for heading in ("Why is this bad?", "Instead", "Sources"))
