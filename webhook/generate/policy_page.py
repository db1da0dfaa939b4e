"""Generate the documentation page of a policy, and the index of the library."""

from __future__ import annotations

import difflib
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gpugate.policies
from gpugate.policies.data.harms_seen import load_harms_seen
from gpugate.webhook.report import policy_text
from gpugate.webhook.report.policy_params import parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.data.harms_seen import SeenHarm
    from gpugate.policies.sdk.policy import Policy

HEADING: Final = "Seen happening"
_ROOT: Final = "../../.."


def seen_happening(policy_id: str, harms: Iterable[SeenHarm]) -> Iterator[str]:
    """Yield the lines of the section, in Markdown; none where no harm of this policy was seen."""
    own = [harm for harm in harms if harm.policy == policy_id]
    if own:
        yield from (f"## {HEADING}", "")
        for harm in own:
            yield from (*_told(harm), "")


def _told(harm: SeenHarm) -> Iterator[str]:
    file, _, name = harm.test.partition("::")
    *first, last = harm.controllers
    controllers = f"{', '.join(first)} and {last}" if first else last
    yield f"**Without gpugate:** {harm.happened} (after {harm.seconds} s).{_cost(harm)}\\"
    yield f"**With gpugate:** {harm.prevented}.\\"
    yield f"Seen on {controllers}, on {harm.date}: [{name}]({_ROOT}/{file})."


def _cost(harm: SeenHarm) -> str:
    if not harm.dollars:
        return ""
    gpus = f"{harm.gpu_hours:,} GPU-hours, " if harm.gpu_hours else ""
    return f" A day of it costs {gpus}${harm.dollars:,.2f}."


_HEAD = """# Policies

Written by `make generate` from the policy files. `gpugate explain ID` prints the whole of one.
Mode is the shipped one; `policy.yaml` changes it.
"""


def policy_index(catalog: Iterable[Policy]) -> str:
    """Return the page, in Markdown: a table for each family, in the order of evaluation."""
    lines = [_HEAD]
    for family, policies in groupby(catalog, key=lambda policy: policy.id.partition("/")[0]):
        lines += [f"## {family}\n", "| policy | what it finds | judges | does | mode |", "|---|---|---|---|---|"]
        lines += [_row(policy) for policy in policies]
        lines.append("")
    return "\n".join(lines)


def _row(policy: Policy) -> str:
    kinds = ", ".join(dict.fromkeys(kind.name for kind in policy.kinds))
    does = " and ".join(dict.fromkeys("mutates" if handler.mutates else "validates" for handler in policy.handlers))
    return (
        f"| [`{policy.id}`](../docs/policies/{policy.id}.md) | {policy.title} | {kinds} | {does} | {policy.mode.word} |"
    )


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
    if policy.conventions:
        keys = " and ".join(f"`{key}`" for key in sorted(policy.conventions))
        yield from (
            f"This policy rests on names that each platform chooses. Until {keys} sets them, its findings about these names are",
            "notes in `check` and at most warnings at admission: see",
            "[Conventions of a platform](../../configuration.md#conventions-of-a-platform).",
            "",
        )
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
