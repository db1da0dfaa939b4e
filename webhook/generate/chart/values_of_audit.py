"""Values about the audit that runs again and again."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from gpugate.webhook.generate.chart.value_types import Count, Object, Resources, Section

Schedule: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(@[a-z]+|[!-~]+( [!-~]+){4})\Z")]


class Audit(Section, frozen=True):
    """A CronJob that looks at what is stored already; it changes nothing but its own report objects.

    Attributes:
        enabled: Whether there is such a CronJob, with a ServiceAccount of its own that may read what it looks at (no
            Secrets).
        schedule: When it runs, as cron has it.
        as_mode: The mode that it judges by, so that reports say what enforcement would do before it is turned on; `as-is`
            for what the policy file says.
        write_reports: Whether it keeps a report object for each object with findings, where the definitions of
            openreports.io or wgpolicyk8s.io are installed.
        metrics_volume: A volume, such as a `hostPath` of the node exporter's textfile collector, in which it keeps
            `gpugate.prom`; its user (65532) must be able to write there. Without one the metrics are in its log.
        deadline_seconds: Seconds after which it is ended.
        arguments: More flags of `gpugate audit`.
        resources: Resources of the container.
    """

    enabled: bool = True
    schedule: Schedule = "17 * * * *"
    as_mode: Literal["enforce", "warn", "audit", "as-is"] = "enforce"
    write_reports: bool = True
    metrics_volume: Object = msgspec.field(default_factory=dict)
    deadline_seconds: Count = 1800
    arguments: list[str] = msgspec.field(default_factory=list)
    resources: Resources = msgspec.field(
        default_factory=lambda: Resources(requests={"cpu": "100m", "memory": "192Mi"}, limits={"memory": "512Mi"})
    )
