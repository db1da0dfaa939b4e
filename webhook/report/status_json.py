"""A status as JSON, for programs; `schema` changes when a field's meaning does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.webhook.report.plain import plain_json

if TYPE_CHECKING:
    from gpugate.webhook.report.status import Status

SCHEMA: Final = "gpugate.dev/status/v1"


def write(status: Status) -> str:
    """Write a status."""
    document = {
        "schema": SCHEMA,
        "entries": [
            {
                "configuration": entry.configuration,
                "webhook": entry.webhook,
                "failure_policy": entry.failure_policy,
                "timeout_seconds": entry.timeout,
                "ca_expires": entry.ca_expires,
                "sent": list(entry.sent),
                "off": entry.off,
                "counters": entry.counters
                and {
                    "calls": entry.counters.calls,
                    "refused": entry.counters.refused,
                    "failed": entry.counters.failed,
                    "p99_seconds": entry.counters.p99,
                },
            }
            for entry in status.entries
        ],
        "missing": list(status.missing),
        "off": status.off,
        "deployments": [{"name": name, "ready": ready, "wanted": wanted} for name, ready, wanted in status.deployments],
        "leader": status.leader,
        "authorities": [{"role": each.role, "expires": each.expires} for each in status.authorities],
        "mode": status.mode,
        "not_looked_at": list(status.unread),
        "exit_code": status.exit_code,
    }
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"
