"""Reads the files that tests name, each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import parts
from gpugate.webhook.manifests.objects import Manifest
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.policy_tests.errors import unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.policy_tests.cases import Case


class ObjectFiles:
    """The objects in files; a file that several tests name is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], tuple[list[Manifest], Problem | None]] = {}

    def objects(self, case: Case, at: Path, path: str, namespace: str) -> Sequence[Manifest]:
        """Return the objects in a file.

        Args:
            case: the test that names it.
            at: where in the test it does.
            path: the file, from the folder of the case file.
            namespace: the namespace of objects that name none.

        Raises:
            CaseFileError: the test may not name the file; that, or a document in it, cannot be read; or it holds no
                object.
        """
        name = case.beside(at, path)
        manifests, problem = self._objects(name, namespace)
        if problem is not None:
            if problem.line:
                raise unreadable(problem)
            raise case.error(at, f"{problem.source}: {problem.message}: {problem.remedy}")
        if not manifests:
            raise case.error(at, f"{name} holds no object: write one, with apiVersion and kind")
        return manifests

    def _objects(self, name: str, namespace: str) -> tuple[list[Manifest], Problem | None]:
        if (name, namespace) not in self._read:
            found: list[Manifest] = []
            problem: Problem | None = None
            for part in parts(Input(name, explicit=True), namespace):
                if isinstance(part, Manifest):
                    found.append(part)
                elif isinstance(part, Problem) and not part.warning:
                    problem = problem or part
            self._read[name, namespace] = (found, problem)
        return self._read[name, namespace]
