"""The groups of report objects that tools for policies write and read.

Both hold the same results. Sources: `openreports/reports-api` v0.2.1 `config/crd`, which is where the working group went on;
Kyverno v1.19.1 `config/crds/policyreport` for wgpolicyk8s.io, which has neither `source` nor `configuration` at the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from gpugate.policies.sdk.objects import Kind


@dataclass(frozen=True, slots=True)
class ReportKinds:
    """The kinds of a group: one for reports on objects of namespaces, one for those on objects of the cluster.

    `headed` tells whether a report itself, beside its results, has a source and a configuration.
    """

    namespaced: Kind
    cluster: Kind
    headed: bool

    @property
    def api_version(self) -> str:
        """What their objects say."""
        return f"{self.namespaced.group}/{self.namespaced.versions[0]}"

    @property
    def both(self) -> tuple[Kind, Kind]:
        """Both kinds."""
        return self.namespaced, self.cluster

    def of(self, namespace: str) -> Kind:
        """Return the kind of a report on an object in a namespace, or in none."""
        return self.namespaced if namespace else self.cluster

    def collection(self, kind: Kind, namespace: str = "") -> str:
        """Return the path of the reports of a kind, in one namespace or in all."""
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return f"/apis/{self.api_version}{within}/{kind.plural}"


OPEN_REPORTS: Final = ReportKinds(
    Kind("openreports.io", ("v1alpha1",), "Report", "reports"),
    Kind("openreports.io", ("v1alpha1",), "ClusterReport", "clusterreports", namespaced=False),
    headed=True,
)
POLICY_REPORTS: Final = ReportKinds(
    Kind("wgpolicyk8s.io", ("v1alpha2",), "PolicyReport", "policyreports"),
    Kind("wgpolicyk8s.io", ("v1alpha2",), "ClusterPolicyReport", "clusterpolicyreports", namespaced=False),
    headed=False,
)
# The first that a cluster has is written.
REPORT_KINDS: Final = (OPEN_REPORTS, POLICY_REPORTS)
