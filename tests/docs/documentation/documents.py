"""Holds YAML blocks against what would read them: the policy file's reader, admission, the chart, the test runner."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import yaml

from documentation.ci_files import hooks, pipeline, steps, workflow
from documentation.helm_values import delivered_values, values_mistake
from gpugate.policies.catalog import CATALOG
from gpugate.policies.cel.documents import examples_of, load_documents
from gpugate.policies.engine.config import API_VERSION, KIND, GpugateError, PolicyConfig, parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.project.read import parse_project
from gpugate.webhook.testing.cases import CaseFileError, InlineCase, read_case_file
from gpugate.webhook.testing.run import run_inline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from documentation.blocks import Block

_TODAY: Final = dt.date(2026, 11, 21)
_EXPECT: Final = "# expect:"
_KEYS: Final = {"jobs": "workflow", "repos": "hooks", "tests": "cases"}
_PROJECT_FILES: Final = {".gpugate.yaml", ".gpugate.yml"}


def yaml_mistakes(block: Block) -> list[str]:
    """Return what is wrong with a block of YAML."""
    try:
        found = [each for each in yaml.load_all(block.text, Loader=yaml.CSafeLoader) if each is not None]
    except yaml.YAMLError as error:
        return [f"is no YAML: {error}"]
    if block.generated:
        # Its examples are judged where they are kept; here only their writing is looked at.
        return []
    way = next((word for word in block.words if "=" not in word), "") or _kind(block, found)
    if way not in _WAYS:
        return [f"nothing says how to check this: write one of {', '.join(sorted(_WAYS))} behind `yaml`"]
    return list(_WAYS[way](block, found))


def _kind(block: Block, found: list[Any]) -> str:  # Any: what YAML holds
    """Tell what a block is by what is in it; empty when that does not tell."""
    if block.file in _PROJECT_FILES:
        return "project"
    if _EXPECT in block.text:
        return "judged"
    if all(_is_object(each) for each in found):
        return "objects"
    return _kind_of_part(found[0]) if len(found) == 1 else ""


def _kind_of_part(value: Any) -> str:  # Any: what YAML holds
    if isinstance(value, list):
        return "steps" if all(isinstance(each, dict) and {"run", "uses"} & each.keys() for each in value) else ""
    keys = value if isinstance(value, dict) else ()
    return next((way for key, way in _KEYS.items() if key in keys), "")


def _is_object(value: Any) -> bool:  # Any: what YAML holds
    return isinstance(value, dict) and {"apiVersion", "kind"} <= value.keys()


def _objects(block: Block, found: list[Any]) -> Iterator[str]:
    """Objects as a cluster takes them, and configurations: read, and judged without anything that breaks."""
    config = [each for each in found if each["kind"] == KIND]
    delivered = [values for each in found if (values := delivered_values(each)) is not None]
    refused = [*_policy_files(config), *_values(block, delivered)]
    if refused:
        yield from refused
        return
    manifests = []
    for document in read_text(str(block), block.text):
        if not isinstance(document, Document):
            yield document.message
            continue
        if isinstance(document.value, dict) and document.value.get("kind") == KIND:
            continue
        manifests += [each for each in objects(document) if isinstance(each, Manifest)]
    if len(manifests) + len(config) < len(found):
        yield "holds something that is no object"
    ruleset = bind(CATALOG, parse_config(config[0]) if config else PolicyConfig())
    facts = RunFacts(tuple(each.request for each in manifests), complete=False)
    for each in manifests:
        verdict = evaluate(ruleset, with_defaults(each.request), facts, today=_TODAY, phase=Phase.BOTH)
        yield from (f"{outcome.policy}: {outcome.error}" for outcome in verdict.outcomes if outcome.error)


def _cel(block: Block, found: list[Any]) -> Iterator[str]:
    """Policies in CEL: loaded, and each example has a finding or none, as it says."""
    try:
        policies = load_documents(found, str(block))
    except GpugateError as error:
        yield str(error)
        return
    ruleset = bind(policies, PolicyConfig())
    for example in (example for document in found for example in examples_of(document)):
        documents = [Document(str(block), "", 1, value) for value in example.objects]
        manifests = [m for document in documents for m in objects(document) if isinstance(m, Manifest)]
        facts = RunFacts(tuple(manifest.request for manifest in manifests), complete=False)
        verdict = evaluate(ruleset, with_defaults(manifests[-1].request), facts, today=_TODAY, phase=Phase.BOTH)
        for outcome in verdict.outcomes:
            wrong = bool(outcome.findings) is example.allowed or outcome.error or outcome.skipped
            if outcome.policy == example.policy and wrong:
                yield f"{'an allowed' if example.allowed else 'a denied'} example of {example.policy}: {outcome}"


def _judged(block: Block, _: list[Any]) -> Iterator[str]:
    """Objects with `# expect: ID` on the lines where policies find something: exactly those."""
    try:
        result = run_inline(InlineCase(str(block), str(block), block.text))
    except CaseFileError as error:
        yield str(error)
        return
    yield from (str(failure) for failure in result.failures)


def _policy_files(found: list[Any]) -> Iterator[str]:
    for each in found:
        try:
            bind(CATALOG, parse_config(each))
        except GpugateError as error:
            yield str(error)


_EMPTY: Final = {"apiVersion": API_VERSION, "kind": KIND}


def _policy(_: Block, found: list[Any]) -> Iterator[str]:
    """A part of a policy file."""
    yield from _policy_files([{**_EMPTY, **each} for each in found])


def project_mistakes(value: Any) -> Iterator[str]:  # Any: what YAML or TOML holds
    """Yield why gpugate refuses a project file."""
    try:
        parse_project(value)
    except GpugateError as error:
        yield str(error)


def _project(_: Block, found: list[Any]) -> Iterator[str]:
    yield from (wrong for each in found for wrong in project_mistakes(each))


def _values(_: Block, found: list[Any]) -> Iterator[str]:
    yield from (wrong for each in found for wrong in [values_mistake(each)] if wrong)


def _cases(block: Block, _: list[Any]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        path = Path(folder, block.file or "page.gpugate-test.yaml")
        path.write_text(block.text)
        try:
            cases = read_case_file(path).cases
        except CaseFileError as error:
            yield str(error)
            return
        yield from (str(each.definition) for each in cases if isinstance(each.definition, CaseFileError))


def _shape(_: Block, __: list[Any]) -> Iterator[str]:
    """A part of a file of somebody else, of which nothing more is known than that it is YAML."""
    yield from ()


_WAYS: Final[dict[str, Callable[[Block, list[Any]], Iterator[str]]]] = {
    "cel": _cel,
    "cases": _cases,
    "hooks": hooks,
    "judged": _judged,
    "objects": _objects,
    "pipeline": pipeline,
    "policy": _policy,
    "project": _project,
    "shape": _shape,
    "steps": steps,
    "values": _values,
    "workflow": workflow,
}
