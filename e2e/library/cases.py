"""The examples, and the policy file that each is judged by."""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from library_examples import Example, read_example

import gpugate.policies
from gpugate.policies.engine.config import KIND
from gpugate.webhook.manifests.documents import Document, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.objects import Request

Json = dict[str, Any]
ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("*/examples/*/*.yaml"))
# Makes what an example says that exists. The policy file lets it off everything, so that it is stored as it is written.
BYSTANDER = "e2e-bystander"
_OF_CLASSES = "dangling-node-class"
_LET_OFF = {
    "policies": ["*"],
    "users": [BYSTANDER],
    "reason": "what exists beside an example is not evaluated",
    "owner": "e2e",
    "expires": "9999-12-31",
}


@dataclass(frozen=True)
class Case:
    """An example and its policy file.

    Attributes:
        name: the path of its file below the policies.
        example: what is in it.
        policy_file: its configuration as text, which lets the bystander off.
    """

    name: str
    example: Example
    policy_file: str

    @property
    def expected(self) -> frozenset[str]:
        """The policies that its header says find or change something."""
        return frozenset(each.policy for each in self.example.expected)

    @property
    def policy(self) -> str:
        """The policy whose example it is."""
        family, _, folder, _ = self.name.split("/")
        return f"{family}/{folder.replace('_', '-')}"

    @property
    def judged(self) -> Json:
        """The object that is judged, with its namespace."""
        return placed(self.example.request)


@functools.cache
def case(name: str) -> Case:
    """Read an example by its path below the policies."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return Case(name, read_example(name, text), _policy_file(name, text))


def by_policy_file() -> Iterator[tuple[str, Sequence[Case]]]:
    """Yield each policy file there is, with the examples that it is for."""
    cases = sorted(map(case, FILES), key=lambda case: case.policy_file)
    for policy_file, of_it in itertools.groupby(cases, key=lambda case: case.policy_file):
        yield policy_file, tuple(of_it)


def placed(request: Request) -> Json:
    """Write the namespace of a request into its object, as the API server's answer has it."""
    obj: Json = json.loads(json.dumps(request.object))
    if request.namespace and request.kind.kind != "Namespace":
        obj["metadata"]["namespace"] = request.namespace
    return obj


def _policy_file(name: str, text: str) -> str:
    config: Json = {"apiVersion": "gpugate.dev/v1", "kind": KIND}
    for document in read_text(name, text):
        if isinstance(document, Document) and isinstance(document.value, dict) and document.value.get("kind") == KIND:
            config = json.loads(json.dumps(document.value))
    if f"/{_OF_CLASSES.replace('-', '_')}/" not in name:
        # An API server knows all node classes, and few examples state the class of their NodePool.
        config.setdefault("policies", {}).setdefault(f"nodepools/{_OF_CLASSES}", {"mode": "off"})
    config["exemptions"] = [*config.get("exemptions", ()), _LET_OFF]
    return json.dumps(config, indent=1, sort_keys=True)
