"""NodePool, EC2NodeClass, NodeClass of EKS Auto Mode or ScaledObject with a placeholder as a value.

## Why is this bad?
The placeholder is used as it is: Karpenter finds no role, subnet or security group of that name and launches no node,
and a scaler gets no metric from such an address. The CRDs accept any string, so the API server stores the object and
the problem appears later, as Pods that stay Pending.

In a file, a placeholder may be filled in later. `gpugate check` therefore reports notes: one about all files with the
placeholders of a tool (`${NAME}`, `{{ .name }}`), and one about all files where a person must write the value
(`<NAME>`, `REPLACE_ME`). A note shows the placeholders of the first file. Policies that need such a value are not
evaluated.

## Instead
Render the file before you apply it: `envsubst`, `helm template`, `kustomize build`. The example cluster name
`my-cluster` is a warning, because a real cluster can have that name.

Not evaluated: `spec.userData` of a node class, where a shell expands `${NAME}` on the node; annotations; the
`restAPITemplate` of KEDA's ActiveMQ trigger and the metadata of its InfluxDB trigger, where this syntax is intended.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml` (role, selector terms and tags are
any string); Amazon EKS User Guide "Create a Node Class for Amazon EKS" (role and selector terms of a NodeClass);
Karpenter v1.14 "Getting started" (`${CLUSTER_NAME}`, rendered by envsubst); KEDA v2.20.2 `pkg/scalers/activemq_scaler.go`
(restAPITemplate).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import AUTO_MODE_NODE_CLASS, EC2_NODE_CLASS, NODE_POOL, SCALED_OBJECT
from gpugate.policies.sdk.policy import Context, validates
from gpugate.policies.sdk.policy import Params as PolicyParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_PLACEHOLDER: Final = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_.:-]{0,100}\}|\{\{[^{}]{0,200}\}\}|<[A-Z][A-Z0-9_-]{0,100}>|REPLACE_ME"
)
_SIGNS: Final = ("${", "{{", "<", "REPLACE_ME")  # every placeholder contains one of them
_EXAMPLE_NAME: Final = (
    "If your cluster has another name, AWS has no such role, subnet or security group, and no node starts."
)
_TEMPLATES: Final = frozenset({"annotations", "restAPITemplate", "userData"})
_FLUX: Final = frozenset({"metadata"})  # Flux, the language of InfluxDB's queries, interpolates `${name}`


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which other values are reported.

    Attributes:
        manual_names: names from documentation that are reported as warnings.
    """

    manual_names: tuple[str, ...] = ("my-cluster",)


@validates(NODE_POOL, EC2_NODE_CLASS, AUTO_MODE_NODE_CLASS, SCALED_OBJECT, params=Params)
def check(obj: Field, ctx: Context[Params]) -> Iterator[Violation]:
    """Report each key and value that contains a placeholder."""
    for field, text in _texts(obj):
        placeholder = _PLACEHOLDER.search(text) if any(sign in text for sign in _SIGNS) else None
        if placeholder:
            printable = placeholder[0] if len(placeholder[0]) <= 40 else f"{placeholder[0][:37]}..."
            yield Violation(
                field.path,
                f"contains the placeholder {printable}",
                hint="replace the placeholder with a value, or render the file before you apply it",
            )
            continue
        name = next((name for name in ctx.params.manual_names if _names(text, name)), "")
        if name:
            message = f'uses the example cluster name "{name}"'
            yield Violation(field.path, message, Stance.WARN, "write the name of your cluster", why=_EXAMPLE_NAME)


def _texts(obj: Field) -> Iterator[tuple[Field, str]]:
    """Yield every string of the manifest, including keys, with its field."""
    pending = [obj["metadata", "labels"], obj["spec"]]
    while pending:
        field = pending.pop()
        if not field.known:
            continue
        if isinstance(field.value, str):
            yield field, field.text
        skipped = _FLUX if field["type"].text == "influxdb" else _TEMPLATES
        for key, member in field.items():
            yield member, key
            if key not in skipped:
                pending.append(member)
        pending.extend(field)


def _names(text: str, name: str) -> bool:
    """Tell whether a text contains a name as a whole word: `my-cluster` is not in `academy-cluster` or `my-cluster-2`."""
    start = text.find(name)
    if start < 0:
        return False
    before, after = text[start - 1 : start], text[start + len(name) :][:1]
    return not before.isalnum() and not after.isalnum() and after not in {"-", "_"}
