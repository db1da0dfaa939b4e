"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def pytest_configure() -> None:
    # A machine with much to do takes its time over any example.
    settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any-machine")
