"""`gpugate explain`: explain a policy from its documentation and its examples."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate import policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import near_misses
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.report import policy_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.policy import Params, Policy


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    known = {policy.id: policy for policy in CATALOG}
    for index, policy_id in enumerate(parser().parse_args(arguments).id):
        if policy_id not in known:
            near = near_misses(policy_id, known)
            raise UsageError(f"unknown policy {policy_id}; {_did_you_mean(near)}")
        print("\n\n" * bool(index) + "\n".join(_page(known[policy_id])))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate explain",
        description="Explain policies: why, examples, parameters.",
        epilog="examples:\n  gpugate explain nodepools/single-instance-type",
    )
    command.add_argument("id", metavar="ID", nargs="+", help="id of a policy; `gpugate policies` lists them")
    return command


def _did_you_mean(near: list[str]) -> str:
    return f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"


def _page(policy: Policy) -> Iterator[str]:
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
    for heading in (policy_text.WHY, policy_text.INSTEAD):
        text = policy_text.section(policy.doc, heading)
        yield from ("", heading, *_indented(_without_fences(text))) if text else ()
    yield from _parameters(policy.params)
    yield from _examples(policy)
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


def _examples(policy: Policy) -> Iterator[str]:
    family, _, name = policy.id.partition("/")
    folder = Path(policies.__path__[0], family, "examples", name.replace("-", "_"))
    for index, file in enumerate(_pair(sorted(folder.glob("*.yaml")))):
        after = policy_text.changed(policy) if file.name.startswith("fixed-") else "Allowed"
        lines = (line.partition("  # expect:")[0] for line in file.read_text(encoding="utf-8").splitlines())
        yield from ("", after if index else policy_text.outcome(policy), *_indented("\n".join(lines)))


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
