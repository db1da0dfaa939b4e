"""Which of some kustomizations are built: those that no other one builds on, because that is what a cluster gets."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.inputs import Found, Kustomization, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.kustomization_files import KustomizationFile, read_kustomization
from gpugate.webhook.rendering.kustomizations import KustomizationJob, obstacles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.webhook.manifests.inputs import Chart
    from gpugate.webhook.rendering.options import RenderOptions

_PART: Final = "a component that no kustomization here uses"

_Read = KustomizationFile | Problem | None


@dataclass(slots=True)
class Plan:
    """What is built, and the real paths of the files that are not judged by themselves."""

    options: RenderOptions
    read: dict[str, _Read] = field(default_factory=dict)
    builders: dict[str, set[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of(self, found: Kustomization) -> Iterator[KustomizationJob | Problem | Passed]:
        """Yield the job of a kustomization, what is in its way, or nothing where others are built on it."""
        real = os.path.realpath(found.name)
        file = self.read.get(real)
        if isinstance(file, Problem):
            yield file
        if not isinstance(file, KustomizationFile):
            return
        closure, problems = self._closure(real)
        if self._is_part(file, closure):
            return
        if file.is_component:
            yield Passed(found.name, _PART)
            return
        changed = self.options.changed
        if changed is not None and not any(changed & _files(each) for each in closure):
            return
        in_the_way = [*problems, *obstacles(found.name, closure, inflate=self.options.inflate)]
        yield from in_the_way
        if not in_the_way:
            yield KustomizationJob(found.name, file, self.options.inflate)

    def _is_part(self, file: KustomizationFile, closure: Sequence[KustomizationFile]) -> bool:
        """Tell whether one that is built contains this one; of a circle none does, so that kustomize refuses it aloud."""
        seen = {each.directory for each in closure}
        waiting = [file.directory]
        while waiting:
            above = self.builders.get(waiting.pop(), set()) - seen
            if any(isinstance(each := self.read[real], KustomizationFile) and not each.is_component for real in above):
                return True
            seen |= above
            waiting += above
        return False

    def _closure(self, real: str) -> tuple[list[KustomizationFile], list[Problem]]:
        """Return a kustomization and all that it builds on, and what of that cannot be read, also outside of what was named."""
        found: dict[str, KustomizationFile] = {}
        problems: list[Problem] = []
        waiting, seen = [real], {real}
        while waiting:
            real = waiting.pop()
            if self.read.get(real) is None:
                # Also what was passed over as something else: kustomize would read it.
                self.read[real] = read_kustomization(os.path.relpath(real), named=True)
            file = self.read[real]
            if isinstance(file, Problem):
                problems.append(file)
            elif file is not None:
                found[real] = file
                waiting += [each for each in reversed(file.directories) if each not in seen]
                seen.update(file.directories)
        return list(found.values()), problems


def planned(found: Sequence[Found | Chart | Kustomization], options: RenderOptions) -> Plan:
    """Read the kustomizations among what was found, and tell what builds on what."""
    plan = Plan(options)
    for part in found:
        if isinstance(part, Kustomization):
            plan.read[os.path.realpath(part.name)] = read_kustomization(part.name, part.file)
    for file in plan.read.values():
        if isinstance(file, KustomizationFile):
            for directory in file.directories:
                plan.builders.setdefault(directory, set()).add(file.directory)
            plan.used |= _files(file)
    return plan


def _files(file: KustomizationFile) -> set[str]:
    return {*file.files, os.path.join(file.directory, os.path.basename(file.file))}  # noqa: PTH118, PTH119 -- real paths as texts
