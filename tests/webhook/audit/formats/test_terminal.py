from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from audit_reports import with_audited
from msgspec.structs import replace

from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.formats import text as audit_text
from gpugate.webhook.audit.formats import wide as audit_wide
from gpugate.webhook.audit.model import Action, NotEvaluated
from gpugate.webhook.audit.tally import grouped
from gpugate.webhook.report.plain import Paint

if TYPE_CHECKING:
    from types import ModuleType

    from gpugate.webhook.audit.formats.presentation import GroupBy, Presentation
    from gpugate.webhook.audit.model import AuditReport


def block(text: str, heading: str) -> list[str]:
    (found,) = (part for part in text.split("\n\n") if part.startswith(heading))
    return found.rstrip("\n").split("\n")


def test_the_first_lines_say_what_was_audited_and_what_would_become_of_it(
    audit: AuditReport, presentation: Presentation
) -> None:
    lines = audit_text.render(audit, presentation).split("\n")

    counts = {action: sum(each.action is action for each in audit.audited) for action in Action}
    assert lines[0].startswith("Audited prod-us-east-1 (v1.36.3) as arn:aws:sts::")
    objects = f"read {sum(audit.counts.values()):,} objects of {len(audit.counts)} kinds"
    assert lines[0].endswith(f" at 2026-08-24 10:17 UTC, 3.4 s: {objects}")
    assert lines[1].startswith(f"IF CREATED NOW  deny {counts[Action.DENY]}   mutate {counts[Action.MUTATE]}   warn ")
    assert lines[1].endswith(f"   of {len(audit.audited)} evaluated objects   exempt findings 1")


def test_wide_counts_the_objects_of_each_kind(audit: AuditReport, presentation: Presentation) -> None:
    lines = audit_wide.render(audit, presentation).split("\n")

    assert lines[1].startswith("  NodePool 6  EC2NodeClass 2  Node 42  Pod 1,412")


def test_namespaces_are_worst_first_with_gpus_and_money(audit: AuditReport, presentation: Presentation) -> None:
    by_namespace = dataclasses.replace(presentation, group_by="namespace")
    header, first, *_ = block(audit_text.render(audit, by_namespace), "BY NAMESPACE")

    worst = grouped(audit, "namespace")[0]
    assert header.split() == ["BY", "NAMESPACE", "DENY", "MUTATE", "WARN", "GPUS", "AT", "RISK", "$/HOUR", "$/MONTH"]
    assert first.split()[:2] == [worst.name, str(worst.objects[Action.DENY])]
    assert f"{worst.usd_per_hour:,.2f}" in first


def test_rows_beyond_the_top_are_counted(audit: AuditReport, presentation: Presentation) -> None:
    rows = block(audit_text.render(audit, dataclasses.replace(presentation, group_by="policy", top=3)), "BY POLICY")

    assert len(rows) == 5
    assert rows[-1] == f"and {len(grouped(audit, 'policy')) - 3} more: --top 0"


@pytest.mark.parametrize(
    ("by", "heading"), [("kind", "BY KIND"), ("owner", "BY OWNER"), ("policy", "BY POLICY"), ("pool", "BY POOL")]
)
def test_a_grouping_adds_its_table(by: GroupBy, heading: str, audit: AuditReport, presentation: Presentation) -> None:
    plain, grouped_by = (
        audit_text.render(audit, dataclasses.replace(presentation, group_by=name)) for name in (None, by)
    )

    assert [line.split("  ")[0] for line in grouped_by.split("\n") if line.startswith("BY ")] == [heading]
    assert "\nBY " not in plain


@pytest.mark.parametrize("form", [audit_text, audit_wide])
def test_pending_pods_are_grouped_by_cause(form: ModuleType, audit: AuditReport, presentation: Presentation) -> None:
    lines = form.render(audit, presentation).splitlines()

    at = lines.index("PENDING  no NodePool can launch a node for 3 Pods with GPUs")
    assert lines[at + 1].startswith(
        "  Job/team-llm/pretrain (2), Pod/research/notebook-1 (1): NodePool gpu-h100: its limit"
    )
    assert lines[at + 2] == "    fix: in NodePool gpu-h100, raise its limit of nvidia.com/gpu"


def test_more_causes_than_the_top_are_counted(audit: AuditReport, presentation: Presentation) -> None:
    several = replace(audit, pending=audit.pending * 3)
    short = dataclasses.replace(presentation, top=1)

    assert "  and 2 more causes: --top 0" in audit_text.render(several, short).splitlines()


def test_money_names_its_prices_and_what_has_none(audit: AuditReport, presentation: Presentation) -> None:
    lines = [line.strip() for line in block(audit_text.render(audit, presentation), "Audited")[2:]]

    assert audit.cost is not None
    parts = f"allocated ${audit.cost.allocated:,.2f}, unallocated $27.52"
    assert lines[0].startswith(f"GPU SPEND  ${audit.cost.spend:,.2f}/h (")
    assert lines[0].endswith(f" per month): {parts}")
    assert lines[1].startswith(f"at risk: ${audit.cost.at_risk:,.2f}/h (")
    assert "unbounded: NodePool/gpu-h100: has no limit for nvidia.com/gpu" in lines
    assert "unbounded: ScaledObject/team-llm/chat: has no maxReplicaCount; at most $688.00/h" in lines
    assert "3 GPUs have no price, and no total includes them" in lines
    assert lines[-1] == f"prices: {audit.cost.prices}"


def test_only_the_first_unbounded_objects_are_listed(audit: AuditReport, presentation: Presentation) -> None:
    assert audit.cost is not None
    many = replace(audit, cost=replace(audit.cost, unbounded=audit.cost.unbounded[:1] * 7))

    assert "  unbounded: 5 more: -o wide\n" in audit_text.render(many, presentation)
    assert audit_text.render(many, dataclasses.replace(presentation, top=0)).count("  unbounded: ") == 7
    assert audit_wide.render(many, presentation).count("  unbounded: ") == 7


def test_long_lists_of_what_was_not_evaluated_are_shortened(audit: AuditReport, presentation: Presentation) -> None:
    names = [f"g{number}.example.com" for number in range(9)]
    gap = NotEvaluated(", ".join(names), "not served")
    many = replace(audit, not_evaluated=(gap,) * 12)

    lines = block(audit_text.render(many, presentation), "NOT EVALUATED")
    assert lines[1] == f"  {', '.join(names[:4])} and 5 more: not served"
    assert lines[11] == "  2 more: -o wide"
    assert f"  {', '.join(names)}: not served\n" in audit_wide.render(many, presentation)


def test_what_was_not_looked_at_is_said_with_the_coverage(audit: AuditReport, presentation: Presentation) -> None:
    lines = block(audit_text.render(audit, presentation), "NOT EVALUATED")

    assert lines[0] == "NOT EVALUATED  coverage 97%"
    assert "  Pod: their owner could not be read (2 objects)" in lines
    assert "  scaling/gpu-ceiling: NodePools could not be listed (1 object)" in lines


def test_a_complete_coverage_is_not_written_beside_what_was_not_evaluated(
    audit: AuditReport, presentation: Presentation
) -> None:
    lines = block(audit_text.render(replace(audit, coverage=1.0), presentation), "NOT EVALUATED")

    assert lines[0] == "NOT EVALUATED"


@pytest.mark.parametrize(("coverage", "said"), [(1.0, ""), (0.9999, "99.9%"), (0.5, "50%"), (0.0, "0%")])
def test_only_all_is_all(coverage: float, said: str, audit: AuditReport, presentation: Presentation) -> None:
    audited = tuple(replace(each, skipped={}) for each in audit.audited)
    text = audit_text.render(replace(audit, coverage=coverage, not_evaluated=(), audited=audited), presentation)

    assert [line for line in text.split("\n") if "coverage" in line] == (
        [f"NOT EVALUATED  coverage {said}"] if said else []
    )


def test_a_comparison_shows_what_is_new_and_what_is_fixed(audit: AuditReport, presentation: Presentation) -> None:
    first = audit.audited[0]
    changed = Changed(first.object, first.findings[0])
    compared = dataclasses.replace(presentation, comparison=Comparison(audit.time, (changed, changed), (changed,), 7))

    lines = block(audit_text.render(audit, compared), "CHANGES")
    assert lines[0] == "CHANGES since 2026-08-24 10:17 UTC: +2 new  -1 fixed  =7 unchanged"
    assert [line[:4] for line in lines[1:]] == ["  + ", "  + ", "  - "]


def test_nothing_found_is_short(audit: AuditReport, presentation: Presentation) -> None:
    clean = tuple(each for each in audit.audited if not each.findings)
    text = audit_text.render(with_audited(replace(audit, cost=None), clean), presentation)

    assert "BY NAMESPACE" not in text
    assert "WORST OBJECTS" not in text
    assert text.endswith("\nMore: -o wide · -o html=audit.html\n")


def test_wide_leaves_no_finding_out(audit: AuditReport, presentation: Presentation) -> None:
    lines = audit_wide.render(audit, presentation).split("\n")

    start = next(index for index, line in enumerate(lines) if line.startswith("ACTION"))
    rows = lines[start + 1 : lines.index("", start)]
    assert len(rows) == sum(len(each.findings) for each in audit.audited)


def test_colours_are_added_where_asked_for(audit: AuditReport, presentation: Presentation) -> None:
    plain = audit_text.render(audit, presentation)
    painted = audit_text.render(audit, dataclasses.replace(presentation, paint=Paint(enabled=True)))

    assert "\x1b[" not in plain
    assert "\x1b[31;1m" in painted
