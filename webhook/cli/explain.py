"""`gpugate explain`: explain a policy from its documentation and its examples."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate import policies
from gpugate.policies.engine.config import near_misses
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.report import policy_text, yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.policy import Params, Policy
    from gpugate.webhook.own_policies.catalog import Catalog
    from gpugate.webhook.own_policies.sources import OwnPolicy, PolicySource


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "explain", arguments)
    _, catalog = options.bound(args.policy_file, project.own)
    known = {policy.id: policy for policy in catalog.policies}
    for index, policy_id in enumerate(args.id):
        if policy_id not in known:
            near = near_misses(policy_id, known)
            raise UsageError(f"unknown policy {policy_id}; {_did_you_mean(near)}")
        print("\n\n" * bool(index) + "\n".join(_page(known[policy_id], catalog)))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate explain",
        description="Explain policies: why, examples, parameters.",
        epilog="examples:\n  gpugate explain nodepools/single-instance-type",
    )
    command.add_argument("id", metavar="ID", nargs="+", help="id of a policy; `gpugate policies` lists them")
    options.add_policy_file(command, options.OF_THE_PROJECT)
    project_flags.add_own_policies(command)
    project_flags.add(command)
    return command


def _did_you_mean(near: list[str]) -> str:
    return f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"


def _page(policy: Policy, catalog: Catalog) -> Iterator[str]:
    own = catalog.origins.get(policy.id)
    does = [effect for mutating, effect in ((True, "mutates"), (False, "validates")) if _has(policy, mutating=mutating)]
    yield policy.id
    yield policy.title
    yield ""
    yield f"Mode    {policy.mode.word} (default)"
    if policy.conventions:
        keys = " and ".join(sorted(policy.conventions))
        yield f"        Findings about names that the platform chooses are notes until {keys} sets them."
    yield f"Kinds   {', '.join(kind.name for kind in policy.kinds)}"
    yield f"Does    {' and '.join(does)}"
    if own:
        yield f"Origin  {own.origin}"
    for heading in (policy_text.WHY, policy_text.INSTEAD):
        text = policy_text.section(policy.doc, heading)
        yield from ("", heading, *_indented(_without_fences(text))) if text else ()
    yield from _parameters(policy.params)
    yield from _examples(policy, own)
    yield from _documented(policy, [source for source in catalog.sources if own and source.file == own.origin])
    sources = policy_text.section(policy.doc, policy_text.SOURCES)
    yield from ("", policy_text.SOURCES, *_indented(sources)) if sources else ()


def _has(policy: Policy, *, mutating: bool) -> bool:
    return any(handler.mutates is mutating for handler in policy.handlers)


_WIDTH: Final = 110


def _parameters(params: type[Params]) -> Iterator[str]:
    parameters = policy_text.parameters(params)
    yield from ("", "Parameters") if parameters else ()
    for parameter in parameters:
        yield (
            f"  {parameter.name} (default: {parameter.default})"
            if parameter.default
            else f"  {parameter.name} (required)"
        )
        yield from (
            f"      {line}"
            for line in textwrap.wrap(parameter.meaning, _WIDTH, break_long_words=False, break_on_hyphens=False)
        )


def _examples(policy: Policy, own: OwnPolicy | None) -> Iterator[str]:
    family, _, name = policy.id.partition("/")
    folder = own.examples if own else Path(policies.__path__[0], family, "examples", name.replace("-", "_"))
    for index, file in enumerate(_pair(sorted(folder.glob("*.yaml")))):
        after = policy_text.changed(policy) if file.name.startswith("fixed-") else "Allowed"
        lines = (line.partition("  # expect:")[0] for line in _example_text(file).splitlines())
        yield from ("", after if index else policy_text.outcome(policy), *_indented("\n".join(lines)))


def _documented(policy: Policy, sources: Sequence[PolicySource]) -> Iterator[str]:
    """Return the first denied and the first allowed example in the document of a policy."""
    for source in sources:
        if source.is_python:
            continue
        from gpugate.webhook.manifests.policy_documents import read_examples  # noqa: PLC0415 -- few policies have one

        examples = [
            read.example for read in read_examples(source.file, source.data) if read.example.policy == policy.id
        ]
        for is_allowed in (False, True):
            example = next((example for example in examples if example.allowed is is_allowed), None)
            if example is not None:
                heading = "Allowed" if is_allowed else policy_text.outcome(policy)
                yield from ("", heading, *_indented("---\n".join(map(yaml_text.block, example.objects))))


def _example_text(file: Path) -> str:
    try:
        return read_regular(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None


def _pair(files: Sequence[Path]) -> tuple[Path, ...]:
    """Return a denied example and its fixed form; else the first denied and the first allowed one."""
    bad, good = ([file for file in files if file.name.startswith(prefix)] for prefix in ("bad-", "good-"))
    pairs = ((file, file.with_name(file.name.replace("bad-", "fixed-", 1))) for file in bad)
    return next((pair for pair in pairs if pair[1] in files), (*bad[:1], *good[:1]))


def _without_fences(text: str) -> str:
    """Indent the code blocks of a Markdown text in place of their fences."""
    prose, *sections = text.split("```")
    # Between fences, code and prose take turns; the first line of a code block is its language.
    parts = [
        textwrap.indent(part.partition("\n")[2], "  ") if index % 2 == 0 else part
        for index, part in enumerate(sections)
    ]
    return re.sub(r"\n{3,}", "\n\n", "".join((prose, *parts)))


def _indented(text: str) -> Iterator[str]:
    yield from (f"  {line}".rstrip() for line in text.strip("\n").splitlines())
