"""Makes a law that every example of the library keeps one test for each policy: `@for_each_example(FILES)`.

A test for each example costs more than the law itself for most laws. The test of a policy applies the law to all its
examples and raises every failure, each with the path of its example.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

File = TypeVar("File", str, Path)


def for_each_example(files: Iterable[File]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrise a law, whose first argument is an example's file, by the policies of some files.

    The tests are named after the folder of the policy, such as `pods/wildcard_toleration/`.
    """
    by_policy: dict[str, list[File]] = {}
    for file in files:
        family, _, policy, _ = Path(file).parts[-4:]
        by_policy.setdefault(f"{family}/{policy}/", []).append(file)

    def of_policies(law: Callable[..., None]) -> Callable[..., None]:
        def test(examples: list[File], **fixtures: Any) -> None:
            failures: list[Exception] = []
            for file in examples:
                try:
                    law(file, **fixtures)
                except Exception as error:  # noqa: BLE001 -- raised below, with all others
                    error.add_note(f"example: {file}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(examples)} examples", failures)

        _, *fixtures = inspect.signature(law).parameters.values()
        examples = inspect.Parameter("examples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__name__, test.__module__, test.__doc__ = law.__name__, law.__module__, law.__doc__
        test.__signature__ = inspect.Signature([examples, *fixtures])  # type: ignore[attr-defined] # what pytest asks for
        # Marks of the law are marks of the test.
        test.pytestmark = getattr(law, "pytestmark", [])  # type: ignore[attr-defined] # where pytest looks for them
        return pytest.mark.parametrize("examples", by_policy.values(), ids=by_policy)(test)

    return of_policies
