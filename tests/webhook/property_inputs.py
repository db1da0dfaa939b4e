"""The inputs that Hypothesis makes for properties: the same in each run, unless a run asks for others.

A change is then accepted or rejected for what it does. `pytest --hypothesis-profile=explore` takes other inputs each time.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import is_local_module_file

PROFILE: Final = "any-machine"
EXPLORE: Final = "explore"


def load_profile(name: str = PROFILE, *, max_examples: int = 100, same: bool = True) -> None:
    """Register and load a profile for any machine, and register the profile `explore`.

    Args:
        name: the name of the profile.
        max_examples: the number of inputs of a property that states none.
        same: whether the inputs are the same in each run.
    """
    # A machine with much to do takes its time over any example.
    patient = settings(max_examples=max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(EXPLORE, patient, derandomize=False)
    settings.register_profile(name, patient, derandomize=same)
    settings.load_profile(name)
    # `derandomize` seeds the inputs with the source of the property. One number or string in twenty is nevertheless a
    # constant of any imported module of the project (Hypothesis 6.170). Which modules are imported depends on the tests
    # that ran before in this process, and their constants on each change of any module.
    assert hasattr(providers, "is_local_module_file"), "Hypothesis collects constants in another way"
    providers.is_local_module_file = _is_read_for_constants


def _is_read_for_constants(path: str) -> bool:
    return not settings.default.derandomize and is_local_module_file(path)
