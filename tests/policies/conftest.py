"""What tests of policies and of the words they are written in share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.sdk.facts import Fact, Known, NoFacts
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.policies.sdk.platform import Platform, Target
from gpugate.policies.sdk.policy import Context, Params

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.objects import Kind


@dataclass
class Objects:
    """Facts made of a few objects."""

    objects: list[dict[str, Any]]
    complete: bool = False

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        found = [
            Field(obj)
            for obj in self.objects
            if kind.covers(GroupVersionKind.of(obj["apiVersion"], obj["kind"]))
            and namespace in {None, obj["metadata"].get("namespace")}
        ]
        return Known(tuple(found), self.complete)


@dataclass
class Scene:
    """A subject of one object, and everything else a policy may know; by default nothing is known of other objects."""

    obj: str | dict[str, Any]
    facts: str = ""
    complete: bool = False
    namespace: str = "research"
    platform: Platform = field(default_factory=Platform)
    params: Params = field(default_factory=Params)
    target: Target = field(default_factory=Target)
    subject: int = 0

    @property
    def context(self) -> Context[Any]:
        obj = yaml.safe_load(self.obj) if isinstance(self.obj, str) else self.obj
        kind = GroupVersionKind.of(obj.get("apiVersion", "v1"), obj.get("kind", "Pod"))
        request = Request(
            kind, Operation.CREATE, obj, name=obj.get("metadata", {}).get("name", ""), namespace=self.namespace
        )
        judged = request.subjects[self.subject]
        others = [other for other in yaml.safe_load_all(self.facts) if other]
        return Context(
            params=self.params,
            subject=judged.field,
            wrapper=judged.wrapper,
            request=request,
            facts=Objects(others, self.complete) if others or self.complete else NoFacts(),
            platform=self.platform,
            target=self.target,
        )


@pytest.fixture
def context() -> Callable[..., Context[Any]]:
    """Build a context; the arguments are those of `Scene`."""
    return lambda *args, **kwargs: Scene(*args, **kwargs).context
