from __future__ import annotations

from typing import TYPE_CHECKING

import audit_reports
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.audit.formats.presentation import Presentation

if TYPE_CHECKING:
    from gpugate.webhook.audit.model import AuditReport


@pytest.fixture(scope="session")
def audit() -> AuditReport:
    return audit_reports.audit()


@pytest.fixture(scope="session")
def hostile() -> AuditReport:
    return audit_reports.hostile()


@pytest.fixture(scope="session")
def presentation() -> Presentation:
    return Presentation(policies=CATALOG, seconds=3.4)
