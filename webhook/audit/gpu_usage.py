"""Measure the use of GPUs: send the queries, and report what they could not measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.webhook.audit.cost.gpu_metrics import Signal, readings, requests
from gpugate.webhook.audit.cost.gpu_use import Measured, by_owner, summed
from gpugate.webhook.audit.cost.working_hours import WorkingTime
from gpugate.webhook.audit.model import AuditReport, NotEvaluated, OwnerUse, Usage, Use
from gpugate.webhook.audit.prometheus import Budget, QueryError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Sequence

    from gpugate.policies.sdk.platform import WorkingHours
    from gpugate.webhook.audit.cost.gpu_metrics import Window
    from gpugate.webhook.audit.cost.gpu_use import PodUse
    from gpugate.webhook.audit.prometheus import Prometheus, Series

# Without one of these, a verdict could be wrong; the others only add evidence.
_REQUIRED: Final = (
    Signal.ENGINE_MAX,
    Signal.ENGINE_MEAN,
    Signal.UTILIZATION_MAX,
    Signal.POWER,
    Signal.SAMPLES,
    Signal.MEMORY_MAX,
    Signal.MEMORY_FREE,
)
_TIMES: Final = 6
"""All queries together may take as long as this number of single ones."""
GAP: Final = "use of GPUs"
_NO_SERIES: Final = (
    "this Prometheus has no series of GPUs in the window: check that the exporter is scraped, the tenant, and the names of "
    "the metrics"
)


def measure(
    server: Prometheus, window: Window, nodes: Collection[str], end: dt.datetime, hours: Sequence[WorkingHours] = ()
) -> tuple[Measured, Usage]:
    """Send the queries, at most one for each signal unless the server refuses them for their size.

    If a required query fails, the use of all GPUs is unknown.

    Args:
        server: the server.
        window: the window, which ends now.
        nodes: the names of the nodes.
        end: the time of the audit.
        hours: the working hours of namespaces, whose time zones are known.
    """
    working = WorkingTime(hours, end, window.seconds)
    budget = Budget(server, server.timeout * _TIMES)
    answers: dict[Signal, Sequence[Series]] = {}
    problems: list[str] = []
    failed = False
    for signal in Signal:
        if failed:
            break
        try:
            answers[signal] = budget.ask(lambda part, signal=signal: window.query(signal, part), "UUID")  # type: ignore[misc]  # mypy infers no type for a lambda with a default
        except QueryError as error:
            failed = signal in _REQUIRED
            problems.append(f"query of {signal.value}: {error}")
    measured = () if failed else readings(answers, nodes)
    if not measured and not problems:
        problems.append(_NO_SERIES)
    problems += (f"warning of the server: {warning}" for warning in server.warnings)
    usage = Usage(server.url, window.seconds, budget.sent, 0.0, tuple(problems))
    return Measured(window, end, measured, requests(answers.get(Signal.REQUESTS_MAX, ())), working.of), usage


def with_usage(report: AuditReport, usage: Usage, uses: Iterable[PodUse], window: Window) -> AuditReport:
    """Return a report with the use of GPUs, its coverage, and what is missing."""
    owners = by_owner(uses)
    audited = []
    for owner in report.audited:
        pod_uses = owners.get(owner.object, [])
        if not pod_uses:
            audited.append(owner)
            continue
        devices = sorted(
            (device for use in pod_uses for device in use.devices),
            key=lambda d: (-(d.usd_per_hour or 0), d.pod, d.device),
        )
        query = window.evidence([device.device.partition("/")[0] for device in devices[:_MOST_DEVICES]])
        audited.append(replace(owner, gpu_use=OwnerUse(summed(use.used for use in pod_uses), tuple(devices), query)))
    used = summed(use.used for pod_uses in owners.values() for use in pod_uses)
    whole = sum(entry.gpus for entry in used)
    unknown = sum(entry.gpus for entry in used if entry.use is Use.UNKNOWN)
    gaps = [NotEvaluated(GAP, problem) for problem in usage.problems]
    # A remark and no gap, because some Pods are always too young.
    remark = f"the use of {unknown:g} of {whole:g} allocated GPUs is unknown; -o json has the reasons"
    return replace(
        report,
        audited=tuple(audited),
        usage=replace(usage, coverage=1 - unknown / whole if whole else 1.0),
        not_evaluated=(*report.not_evaluated, *gaps),
        remarks=(*report.remarks, *([remark] if unknown else ())),
    )


_MOST_DEVICES: Final = 20
