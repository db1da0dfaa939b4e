"""The building blocks of policies, and the public interface of policies outside the library.

`PUBLIC` lists the names that version `SDK` of the interface promises. Until `SDK` increases, none of them is removed,
and every call that works today keeps working. Other names may change in any release.
"""

from __future__ import annotations

from typing import Final

# A policy file may state the version for which it was written, as `SDK = 1`.
SDK: Final = 1

# Module of this package -> its public names.
PUBLIC: Final[dict[str, tuple[str, ...]]] = {
    "policy": ("validates", "mutates", "Params", "Context", "AnyContext"),
    "findings": ("Violation", "Patch", "Patches", "Replacement", "Skip", "Other", "Stance"),
    "field": ("Field",),
    "objects": (
        "Kind",
        "Operation",
        "Request",
        "Wrapper",
        "POD",
        "NODE_POOL",
        "NODE_CLAIM",
        "EC2_NODE_CLASS",
        "SCALED_OBJECT",
        "RESOURCE_CLAIM",
        "RESOURCE_CLAIM_TEMPLATE",
        "DEVICE_CLASS",
        "POD_DISRUPTION_BUDGET",
        "NAMESPACE",
        "RESOURCE_QUOTA",
        "DEPLOYMENT",
        "STATEFUL_SET",
        "JOB",
    ),
    "facts": ("Need", "Known", "Unavailable", "named", "object_doubt"),
    "concerns": ("Concern", "Key", "Text", "Flag", "Each", "Listed", "EVERY_OBJECT"),
    "gpu_demand": ("gpu_demand", "GpuDemand", "MAY_DEMAND", "CLAIM_NEEDS"),
    "workload_class": (
        "workload_class",
        "Classified",
        "CLASS_NEEDS",
        "owner_kind",
        "namespace_labels",
        "namespace_doubt",
    ),
}
