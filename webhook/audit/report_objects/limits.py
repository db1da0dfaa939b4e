"""How much is written: a cluster's store is small, and holds what runs the cluster too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpugate.webhook.report.audited import Action

# What makes a finding a result. What is only recorded, such as by an exemption, is none.
WRITTEN: Final = frozenset({Action.BLOCK, Action.MUTATE, Action.WARN})


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is written.

    Attributes:
        results: results in a report, with the one that says how many were cut.
        bytes: of these as JSON; a hundred with texts of full length are 400 KB, and four times as much where nothing in them is
            ASCII. etcd takes 1.5 MB in one request (`--max-request-bytes`, v3.6).
        reports: reports in the cluster.
        text: characters of a message or a fix.
    """

    results: int = 100
    bytes: int = 1_000_000
    reports: int = 5000
    text: int = 1000
