"""Writes the page of one policy: what its file says, its parameters and its examples."""

from __future__ import annotations

import difflib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gpugate.policies
from gpugate.policies.data.harms_seen import load_harms_seen
from gpugate.webhook.generate.harms import seen_happening
from gpugate.webhook.report import policy_text
from gpugate.webhook.report.policy_params import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.policy import Policy

_NOTE: Final = "<!-- Written by `make generate` from the policy's file and examples. -->"


def policy_page(policy: Policy) -> str:
    """Return the page in Markdown."""
    return "\n".join(_page(policy)).rstrip() + "\n"


def _page(policy: Policy) -> Iterator[str]:
    does = " and ".join(dict.fromkeys("mutates" if handler.mutates else "validates" for handler in policy.handlers))
    kinds = ", ".join(dict.fromkeys(kind.name for kind in policy.kinds))
    source = f"../../../policies/{policy.id.replace('-', '_')}.py"
    yield from (_NOTE, "", f"# {policy.id}", "", policy.title + ".", "")
    yield from ("| judges | does | mode as shipped | file |", "|---|---|---|---|")
    yield from (f"| {kinds} | {does} | {policy.mode.word} | [{Path(source).name}]({source}) |", "")
    for heading in (policy_text.WHY, policy_text.INSTEAD):
        yield from (f"## {heading}", "", policy_text.section(policy.doc, heading), "")
    yield from seen_happening(policy.id, load_harms_seen())
    yield from _parameters(policy)
    yield from _examples(policy)
    yield from (f"## {policy_text.SOURCES}", "", policy_text.section(policy.doc, policy_text.SOURCES), "")


def _parameters(policy: Policy) -> Iterator[str]:
    found = parameters(policy.params)
    if found:
        yield from ("## Parameters", "", "| parameter | default | meaning |", "|---|---|---|")
        for parameter in found:
            default = f"`{parameter.default}`" if parameter.default else "required"
            yield f"| `{parameter.name}` | {default} | {_cell(parameter.meaning)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _examples(policy: Policy) -> Iterator[str]:
    folder = Path(gpugate.policies.__file__).resolve().parent.joinpath(*_folder(policy))
    files = sorted(folder.glob("*.yaml"))
    for heading, prefix in (("Found", "bad-"), ("Not found", "good-")):
        yield from (f"## {heading}", "")
        for file in files:
            if file.name.startswith(prefix):
                yield from _example(file)


def _folder(policy: Policy) -> tuple[str, str, str]:
    family, _, name = policy.id.partition("/")
    return family, "examples", name.replace("-", "_")


def _example(file: Path) -> Iterator[str]:
    title, *lines = file.read_text(encoding="utf-8").splitlines()
    yield from ("<details>", f"<summary>{_html(title.lstrip('# '))}</summary>", "")
    yield from ("```yaml", *lines, "```", "")
    fixed = file.with_name(file.name.replace("bad-", "fixed-", 1))
    if fixed != file and fixed.exists():
        yield from ("It becomes:", "", "```diff", *_changed(lines, fixed), "```", "")
    yield from ("</details>", "")


def _changed(before: Sequence[str], fixed: Path) -> Iterator[str]:
    after = fixed.read_text(encoding="utf-8").splitlines()[1:]
    plain = [line.partition("  # expect:")[0] for line in before]
    # The first two lines name the files.
    yield from islice(difflib.unified_diff(plain, after, lineterm=""), 2, None)


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
