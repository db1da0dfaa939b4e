"""Which pages the site has, and in which order."""

from __future__ import annotations

from typing import Final

# Pages outside `docs` that belong to it.
PAGES: Final = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "policies/README.md")

# The four kinds of documentation of Diátaxis (diataxis.fr), and the documents of the project.
SECTIONS: Final = {
    "Tutorials": ("docs/tutorial", "docs/quickstart-cluster"),
    "How-to guides": (
        "docs/integrations",
        "docs/how-to/render",
        "docs/how-to/messy-repository",
        "docs/how-to/exempt",
        "docs/testing",
        "docs/pytest",
        "docs/how-to/write-a-policy",
        "docs/how-to/add-a-library-policy",
        "docs/how-to/measure",
        "docs/how-to/pending-pod",
        "docs/how-to/simulate",
        "docs/how-to/own-instance-types",
        "docs/audit",
        "docs/how-to/idle-gpus",
        "docs/install",
        "docs/how-to/roll-out",
        "docs/how-to/many-clusters",
        "docs/how-to/run-the-webhook",
        "docs/image",
        "docs/client-certificates",
        "docs/operations",
        "docs/doctor",
        "docs/how-to/rotate-certificates",
        "docs/how-to/break-glass",
        "docs/troubleshooting",
    ),
    "Reference": (
        "policies/README",
        "docs/reference/commands",
        "docs/configuration",
        "docs/reference/project-file",
        "docs/reference/policy-file",
        "docs/cel-policies",
        "docs/reference/cel-policy",
        "docs/inputs",
        "docs/schema-checks",
        "docs/reference/policy-sdk",
        "docs/reference/case-files",
        "docs/formats",
        "docs/exit-codes",
        "docs/reference/audit-json",
        "docs/reference/audit-tables",
        "docs/reference/helm-values",
        "docs/reference/server-limits",
        "docs/registration",
        "docs/metrics",
        "docs/alerts",
        "docs/annotations-and-labels",
        "docs/terms",
    ),
    "Explanation": (
        "docs/comparison",
        "docs/harms",
        "docs/explain/positions",
        "docs/explain/cost",
        "docs/explain/server-measurements",
        "docs/explain/smaller-decisions",
        "docs/explain/cel-implementations",
        "docs/benchmarks",
        "docs/server",
        "docs/api-server",
        "SECURITY",
        "ARCHITECTURE",
    ),
    "Project": ("CHANGELOG", "CONTRIBUTING"),
}
