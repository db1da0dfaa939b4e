"""Whether the API server reaches the webhook, by its own account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.operate.doctor.case import error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.report.diagnosis import Problem


def check(case: Case) -> Iterator[Problem]:
    """Yield why a probe through the API server was not answered."""
    found = case.probed
    if found is None or found.incomplete or not found.silent:
        return
    where = f"the API server, asked in namespace {case.installation.names.namespace}"
    phases = " and ".join(found.silent)
    if found.trouble:
        said = f" ({found.trouble.said})" if found.trouble.said else ""
        yield error(
            "not-reached", f"a probe to {phases} failed: {found.trouble.what}{said}", where, found.trouble.remedy
        )
    else:
        text = f"a probe to {phases} was answered by nobody: no entry sends it, or what answers is not this webhook"
        yield error("not-reached", text, where, "apply again what is generated, and see where its entries lead")
