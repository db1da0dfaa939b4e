"""Writes what `gpugate audit` found, in every way that was asked for."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpugate.webhook.audit.anonymize import anonymize, anonymize_comparison, pseudonyms
from gpugate.webhook.audit.compare import compare
from gpugate.webhook.audit.cost.summary import cost_of
from gpugate.webhook.audit.exemptions import exemptions
from gpugate.webhook.audit.scan import worst_first
from gpugate.webhook.cli import options
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.generate.rbac import audit_rbac
from gpugate.webhook.report import audit_formats, plain, yaml_text
from gpugate.webhook.report.audit_presentation import Presentation

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.audit.scan import Scan
    from gpugate.webhook.audit.selection import Selection
    from gpugate.webhook.cli.audit_plan import Plan
    from gpugate.webhook.report.audited import AuditReport
    from gpugate.webhook.report.located import ObjectName


def rights(ruleset: Ruleset, args: argparse.Namespace) -> str:
    """Return the rights that an audit needs, as YAML for kubectl.

    Raises:
        UsageError: the ServiceAccount is not named with its namespace.
    """
    namespace, slash, name = args.service_account.partition("/")
    if not (namespace and slash and name):
        raise UsageError(f"--service-account {args.service_account}: write NAMESPACE/NAME")
    granted = audit_rbac(ruleset, namespace, name, reports=args.write_reports)
    return "---\n".join(yaml_text.block(each) for each in granted)


def costed(found: Scan, plan: Plan, ruleset: Ruleset) -> AuditReport:
    """Return the report with the costs that are known, the worst objects first."""
    report = replace(found.report, remarks=(*found.report.remarks, *plan.remarks))
    if plan.prices is None:
        return report
    config = ruleset.config
    money = cost_of(found.inventory, report.audited, plan.prices, config.platform, config.target)
    if money is None:
        return replace(report, remarks=(*report.remarks, "nothing is known of nodes, so that nothing can be priced"))
    audited = (replace(each, held=money.held.get(each.object, ())) for each in report.audited)
    return replace(report, audited=worst_first(audited), cost=money.cost, remarks=(*report.remarks, *money.remarks))


@dataclass(frozen=True, slots=True)
class Asked:
    """What an audit was made with.

    Attributes:
        ruleset: the rules.
        plan: what was read of files beforehand.
        selection: which objects are reported on.
        outputs: file -> format.
        started: when, by the clock of `time.perf_counter`.
    """

    ruleset: Ruleset
    plan: Plan
    selection: Selection
    outputs: Mapping[str, str]
    started: float


def write(report: AuditReport, asked: Asked, args: argparse.Namespace) -> None:
    """Write every output that was asked for; a file as a whole or not at all.

    Raises:
        UsageError: a file cannot be written.
    """
    policies = [rule.policy for rule in asked.ruleset.rules]
    if args.write_exemptions:
        text = exemptions(report, policies, args.exemption_days, args.exemption_owner)
        options.write(args.write_exemptions, text)
    earlier = asked.plan.earlier
    comparison = compare(earlier, report, _looked_at(asked.ruleset, asked.selection)) if earlier else None
    if args.anonymize:
        names = pseudonyms(report, args.salt, comparison)
        comparison = anonymize_comparison(comparison, names) if comparison else None
        report = anonymize(report, names)
    for file, name in asked.outputs.items():
        paint = plain.wanted(args.color, is_terminal=not file and sys.stdout.isatty(), environment=os.environ)
        presentation = Presentation(
            policies=policies,
            paint=plain.Paint(paint),
            group_by=args.group_by,
            top=args.top,
            include_passed=args.include_passed,
            hours_per_month=args.hours_per_month,
            comparison=comparison,
            anonymized=args.anonymize,
            rbac=rights(asked.ruleset, args),
            seconds=time.perf_counter() - asked.started,
        )
        options.write(file, audit_formats.render(name, report, presentation))


def _looked_at(ruleset: Ruleset, selection: Selection) -> Callable[[ObjectName, str], bool]:
    """Tell what was looked at; of an object's labels at the time of an earlier audit nothing is known."""
    in_force = {rule.policy.id for rule in ruleset.rules}
    return lambda name, policy: policy in in_force and selection.takes(name, {})
