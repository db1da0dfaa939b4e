"""Which pages the site has, and in which order."""

from __future__ import annotations

from typing import Final

# Pages outside `docs` that belong to it.
PAGES: Final = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "policies/README.md")

SECTIONS: Final = {
    "Start": ("docs/tutorial", "docs/quickstart-cluster"),
    "How to": (
        "docs/integrations",
        "docs/inputs",
        "docs/how-to/messy-repository",
        "docs/how-to/roll-out",
        "docs/how-to/exempt",
        "docs/how-to/write-a-policy",
        "docs/testing",
        "docs/pytest",
        "docs/how-to/rotate-certificates",
        "docs/how-to/break-glass",
        "docs/troubleshooting",
    ),
    "Operate": (
        "docs/install",
        "docs/client-certificates",
        "docs/operations",
        "docs/doctor",
        "docs/audit",
        "docs/metrics",
        "docs/alerts",
        "docs/image",
    ),
    "Reference": (
        "policies/README",
        "docs/reference/commands",
        "docs/configuration",
        "docs/reference/project-file",
        "docs/reference/policy-file",
        "docs/schema-checks",
        "docs/exit-codes",
        "docs/formats",
        "docs/reference/audit-json",
        "docs/reference/helm-values",
        "docs/annotations-and-labels",
        "docs/registration",
    ),
    "Explain": (
        "ARCHITECTURE",
        "docs/harms",
        "docs/explain/positions",
        "docs/explain/cost",
        "docs/server",
        "docs/api-server",
        "SECURITY",
        "docs/comparison",
    ),
    "Project": ("CHANGELOG", "CONTRIBUTING"),
}
