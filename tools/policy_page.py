"""Generate the documentation page of a policy, and the index of the library."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from itertools import groupby, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gpugate.policies
from gpugate.policies.data.harms_seen import load_harms_seen
from gpugate.webhook.report import policy_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.data.harms_seen import SeenHarm
    from gpugate.policies.sdk.policy import Policy

HEADING: Final = "Observed"
_ROOT: Final = "../../.."


def seen_happening(policy_id: str, harms: Iterable[SeenHarm]) -> Iterator[str]:
    """Yield the lines of the section, in Markdown; none where no harm of this policy was seen."""
    own = [harm for harm in harms if harm.policy == policy_id]
    if own:
        yield from (f"## {HEADING}", "")
        for harm in own:
            yield from (*_paragraphs(harm), "")


def _paragraphs(harm: SeenHarm) -> Iterator[str]:
    file, _, name = harm.test.partition("::")
    *first, last = harm.controllers
    controllers = f"{', '.join(first)} and {last}" if first else last
    yield f"**Without gpugate:** {harm.happened}.{_cost(harm)}\\"
    yield f"**With gpugate:** {harm.prevented}.\\"
    yield f"Observed with {controllers}, on {harm.date}, {harm.seconds} s into the test [{name}]({_ROOT}/{file})."


def _cost(harm: SeenHarm) -> str:
    if not harm.dollars:
        return ""
    dollars = f"${harm.dollars:,.2f}"
    return f" This costs {f'{harm.gpu_hours:,} GPU-hours ({dollars})' if harm.gpu_hours else dollars} a day."


_HEAD = """# Policies

Written by `make generate` from the policy files. `gpugate explain ID` prints the documentation of one policy.
The mode is the default; `policy.yaml` changes it. [Terms](../docs/terms.md) defines words such as *found* and *unknown*.
"""


def policy_index(catalog: Iterable[Policy]) -> str:
    """Return the page, in Markdown: a table for each family, in the order of evaluation."""
    lines = [_HEAD]
    for family, policies in groupby(catalog, key=lambda policy: policy.id.partition("/")[0]):
        lines += [f"## {family}\n", "| policy | what it finds | kinds | does | mode |", "|---|---|---|---|---|"]
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


# Words that mean whether gpugate has read an object.
_KNOWLEDGE: Final = re.compile(r"\b(?:gpugate (?:finds?|does not find|has read)|(?:un)?known|not evaluated)\b")


def _page(policy: Policy) -> Iterator[str]:
    does = " and ".join(dict.fromkeys("mutates" if handler.mutates else "validates" for handler in policy.handlers))
    kinds = ", ".join(dict.fromkeys(kind.name for kind in policy.kinds))
    source = f"../../../policies/{policy.id.replace('-', '_')}.py"
    denied, allowed = _examples(policy, "bad-"), _examples(policy, "good-")
    first, good = _named(policy.id, denied, allowed) or _shown_first(denied, allowed)
    yield from (_NOTE, "", f"# {policy.id}", "", policy.title + ".", "")
    yield from ("| kinds | does | default mode | file |", "|---|---|---|---|")
    yield from (f"| {kinds} | {does} | {policy.mode.word} | [{Path(source).name}]({source}) |", "")
    outcome, changed = policy_text.outcome(policy), policy_text.changed(policy)
    yield from (f"## {outcome}", "", first.title, "", *_body(first, changed))
    yield from ("## Allowed", "", good.title, "", *_body(good, changed))
    for heading in (policy_text.WHY, policy_text.INSTEAD):
        yield from (f"## {heading}", "", policy_text.section(policy.doc, heading), "")
    if _KNOWLEDGE.search(policy.doc):
        yield from ("[Terms](../../terms.md) explains the words *find*, *known* and *not evaluated*.", "")
    yield from _parameters(policy)
    if policy.conventions:
        keys = " and ".join(f"`{key}`" for key in sorted(policy.conventions))
        yield from (
            f"This policy uses names that each platform chooses. Until {keys} sets them, its findings about these names are",
            "notes in `check` and at most warnings at admission: see",
            "[Conventions of a platform](../../configuration.md#conventions-of-a-platform).",
            "",
        )
    yield from seen_happening(policy.id, load_harms_seen())
    yield from _folded("More examples with findings", [example for example in denied if example is not first], changed)
    yield from _folded(
        "More examples without findings", [example for example in allowed if example is not good], changed
    )
    yield from (f"## {policy_text.SOURCES}", "", policy_text.section(policy.doc, policy_text.SOURCES), "")


def _parameters(policy: Policy) -> Iterator[str]:
    rows = policy_text.parameters(policy.params)
    if rows:
        yield from ("## Parameters", "", "| parameter | default | meaning |", "|---|---|---|")
        for parameter in rows:
            default = f"`{parameter.default}`" if parameter.default else "required"
            yield f"| `{parameter.name}` | {default} | {_cell(parameter.meaning)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


@dataclass(frozen=True, slots=True)
class _Example:
    """An example of a policy.

    Attributes:
        file: the file it is read from.
        title: its first line, as a sentence.
        lines: the other lines.
    """

    file: Path
    title: str
    lines: tuple[str, ...]

    @property
    def plain(self) -> list[str]:
        """The lines without the comments on what is expected."""
        return [line.partition("  # expect:")[0] for line in self.lines]


def _examples(policy: Policy, prefix: str) -> list[_Example]:
    folder = Path(gpugate.policies.__file__).resolve().parent.joinpath(*_folder(policy))
    return [_read(file) for file in sorted(folder.glob(f"{prefix}*.yaml"))]


def _folder(policy: Policy) -> tuple[str, str, str]:
    family, _, name = policy.id.partition("/")
    return family, "examples", name.replace("-", "_")


def _read(file: Path) -> _Example:
    title, *lines = file.read_text(encoding="utf-8").splitlines()
    return _Example(file, title.lstrip("# "), tuple(lines))


# Policies whose typical examples are not those that differ least.
_TYPICAL: Final = {
    "claims/admin-access": ("bad-claim", "good-access-turned-off"),
    "claims/invalid-device-class": ("bad-an-extended-resource", "good-class-that-exists"),
    "disruption/blocking-pdb": ("bad-all-available", "good-two-of-three"),
    "disruption/missing-inference-pdb": ("bad-a-deployment", "good-budget"),
    "nodeclasses/exposed-metadata": ("bad-two-hops", "good-defaults"),
    "nodeclasses/missing-cost-tags": ("bad-no-tags", "good-all-tags"),
    "nodeclasses/unencrypted-volume": ("bad-not-said", "good-encrypted"),
    "nodeclasses/unpinned-ami": ("bad-latest", "good-version"),
    "nodepools/budget-blocks-empty": ("bad-zero-without-reasons", "good-nodes-in-use-only"),
    "nodepools/consolidation-disabled": ("bad-never", "good-minutes"),
    "nodepools/forceful-expiry": ("bad-thirty-days", "good-never"),
    "nodepools/incomplete-node-class-ref": ("bad-only-a-name", "good-gpu-class"),
    "nodepools/legacy-api": ("bad-node-pool-v1beta1", "good-v1-with-old-annotation"),
    "nodepools/legacy-field": ("bad-expire-after", "good-v1"),
    "nodepools/missing-gpu-taint": ("bad-no-taint", "good-no-execute"),
    "nodepools/narrow-spot": ("bad-one-family", "good-several-families-and-zones"),
    "nodepools/oversized-static-scale": ("bad-too-many-replicas", "good-within-maximum"),
    "nodepools/single-instance-type": ("bad-one-type", "good-two-types"),
    "nodepools/training-on-spot": ("bad-allows-spot", "good-reserved-first"),
    "nodepools/unknown-requirement-value": ("bad-upper-case", "good-retired-types-excluded"),
    "pods/bare-gpu-pod": ("bad-no-controller", "good-job"),
    "pods/gpu-node-squatter": ("bad-debug-pod", "good-gpu-by-claim"),
    "pods/hidden-gpu-access": ("bad-visible-devices", "good-no-devices"),
    "pods/impatient-probe": ("bad-defaults", "good-startup-probe"),
    "pods/invalid-do-not-disrupt": ("bad-capital", "good-protected-and-not"),
    "pods/invalid-gpu-quantity": ("bad-request-without-limit", "good-spellings"),
    "pods/late-node-label": ("bad-product", "good-label-of-karpenter"),
    "pods/mig-without-claim": ("bad-wanted-by-annotation", "good-asks-by-claim"),
    "pods/missing-checkpoint": ("bad-nowhere", "good-claim"),
    "pods/missing-cost-labels": ("bad-no-labels", "good-labelled"),
    "pods/missing-fabric": ("bad-selected-type", "good-requested"),
    "pods/missing-gpu-toleration": ("bad-a-whole-gpu", "good-tolerated"),
    "pods/missing-requests": ("bad-only-a-gpu", "good-requests"),
    "pods/missing-shared-memory": ("bad-vllm", "good-volume"),
    "pods/mixed-gpu-resources": ("bad-gpu-and-slice", "good-one-kind-in-all-containers"),
    "pods/oversized-requests": ("bad-most-of-the-cpu", "good-share"),
    "pods/parallelism-mismatch": ("bad-one-of-eight", "good-as-many"),
    "pods/partial-gang": ("bad-pytorch-job", "good-queue"),
    "pods/pinned-node-name": ("bad-pod", "good-selected"),
    "pods/repeated-download": ("bad-hub-name", "good-claim"),
    "pods/server-without-gpu": ("bad-no-gpu", "good-gpu"),
    "pods/time-sliced-models": ("bad-shared-gpu", "good-own-gpu"),
    "pods/training-on-spot": ("bad-selects-spot", "good-on-demand"),
    "pods/unentitled-namespace": ("bad-deployment", "good-labelled"),
    "pods/unindexed-distributed-job": ("bad-annotation", "good-indexed"),
    "pods/unprotected-training": ("bad-a-parallel-job", "good-protected-job"),
    "pods/unprovisionable": ("bad-too-many-gpus", "good-enough-gpus"),
    "pods/zonal-volume": ("bad-claim", "good-zone-of-the-pool"),
    "queues/missing-queue": ("bad-job", "good-job"),
    "quotas/ineffective-gpu-quota": ("bad-without-prefix", "good-requests"),
    "quotas/unquotaed-namespace": ("bad-no-quota", "good-quota"),
    "scaling/empty-result-is-zero": ("bad-by-default", "good-is-an-error"),
    "scaling/hpa-conflict": ("bad-autoscaler-beside-scaled-object", "good-taken-over"),
    "scaling/missing-fallback": ("bad-without", "good-within-bounds"),
    "scaling/missing-target": ("bad-misspelt-name", "good-existing"),
    "scaling/multiple-series": ("bad-waiting-requests", "good-total"),
    "scaling/paused-above-ceiling": ("bad-above-the-maximum", "good-within-the-maximum"),
    "scaling/pinned-replicas": ("bad-beside-a-scaled-object", "good-left-out"),
    "scaling/saturating-signal": ("bad-value-of-all-replicas", "good-waiting-requests"),
    "scaling/scale-from-zero-deadlock": ("bad-requests-in-the-server", "good-one-replica"),
    "scaling/thrashing": ("bad-no-window", "good-one-minute"),
    "scaling/unbounded-replicas": ("bad-a-scaled-object-without-maximum", "good-bounded"),
    "scaling/wrong-metric": ("bad-underscore-and-rate", "good-rate-of-a-counter"),
    "scaling/zero-floor-in-production": ("bad-to-zero", "good-two"),
}


def _named(policy_id: str, denied: Sequence[_Example], allowed: Sequence[_Example]) -> tuple[_Example, _Example] | None:
    """Return the typical examples of a policy; None where none are named."""
    if policy_id not in _TYPICAL:
        return None
    by_name = {example.file.stem: example for example in (*denied, *allowed)}
    bad, good = _TYPICAL[policy_id]
    return by_name[bad], by_name[good]


def _shown_first(denied: Sequence[_Example], allowed: Sequence[_Example]) -> tuple[_Example, _Example]:
    """Return the two examples that a page opens with: those that differ least, without configuration where possible.

    The difference between the two is then what the policy is about. Each further object counts as four lines.
    """

    def cost(pair: tuple[_Example, _Example]) -> tuple[int | str, ...]:
        first, second = (example.plain for example in pair)
        changes = sum(
            line[0] in "+-" for line in islice(difflib.unified_diff(first, second, n=0, lineterm=""), 2, None)
        )
        documents = [lines.count("---") for lines in (first, second)]
        configurations = sum("kind: PolicyConfig" in lines for lines in (first, second))
        further = abs(documents[0] - documents[1])
        names = [example.file.name for example in pair]
        return configurations, further, changes + 4 * sum(documents), len(first) + len(second), *names

    return min(product(denied, allowed), key=cost)


def _folded(heading: str, examples: Sequence[_Example], changed: str) -> Iterator[str]:
    if examples:
        yield from (f"## {heading}", "")
    for example in examples:
        yield from (
            "<details>",
            f"<summary>{_html(example.title)}</summary>",
            "",
            *_body(example, changed),
            "</details>",
            "",
        )


def _body(example: _Example, changed: str) -> Iterator[str]:
    yield from ("```yaml", *example.lines, "```", "")
    fixed = example.file.with_name(example.file.name.replace("bad-", "fixed-", 1))
    if fixed != example.file and fixed.exists():
        after = _without_context(_read(fixed).lines)
        # A fixed example may leave out the configuration, which comes first.
        before = _without_context(example.plain)[-len(after) :]
        # The first two lines of the difference name the files.
        difference = islice(difflib.unified_diff(_lines(before), _lines(after), lineterm=""), 2, None)
        yield from (f"{changed}:", "", "```diff", *difference, "```", "")


_CONTEXT: Final = ("# context", "# complete context", "# old")


def _without_context(lines: Sequence[str]) -> list[str]:
    """Return the documents of an example that are not context."""
    return [document for document in "\n".join(lines).split("\n---\n") if not document.startswith(_CONTEXT)]


def _lines(documents: Sequence[str]) -> list[str]:
    return "\n---\n".join(documents).split("\n")


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
