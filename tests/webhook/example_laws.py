"""Makes a law that many cases keep one test for each group of them: `@for_each_example(FILES)`, `@for_each_case(CASES)`.

A test for each case costs more than the law itself for most laws. The test of a group applies the law to all its cases
and raises every failure, each with the name of its case. The groups of the library's examples are the policies.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

File = TypeVar("File", str, Path)


def for_each_example(files: Iterable[File]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a law, whose first argument is an example's file, by the policies of some files.

    The tests are named after the folder of the policy, such as `pods/wildcard_toleration/`.
    """
    return for_each_case({str(file): file for file in files}, of_policy)


def of_policy(file: str) -> str:
    """Return the folder of an example's policy, such as `pods/wildcard_toleration/`."""
    family, _, policy, _ = Path(file).parts[-4:]
    return f"{family}/{policy}/"


def for_each_case(
    cases: Mapping[str, Any], group: Callable[[str], str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a law, whose first argument is a case, by groups of cases.

    Args:
        cases: name -> case.
        group: returns the group of a name, after which the test is named; without it all cases are one test.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, case in cases.items():
        groups.setdefault(group(name) if group else "all", {})[name] = case

    def of_groups(law: Callable[..., None]) -> Callable[..., None]:
        def test(cases: Mapping[str, Any], **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for name, case in cases.items():
                try:
                    law(case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 -- raised below, with all others
                    error.add_note(f"case: {name}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases", failures)

        _, *fixtures = inspect.signature(law).parameters.values()
        argument = inspect.Parameter("cases", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__name__, test.__module__, test.__doc__ = law.__name__, law.__module__, law.__doc__
        test.__signature__ = inspect.Signature([argument, *fixtures])  # type: ignore[attr-defined] # what pytest asks for
        # Marks of the law are marks of the test.
        test.pytestmark = getattr(law, "pytestmark", [])  # type: ignore[attr-defined] # where pytest looks for them
        return pytest.mark.parametrize("cases", groups.values(), ids=groups)(test)

    return of_groups
