"""Trigger that KEDA cannot use: a setting is missing, or has the wrong type.

## Why is this bad?
KEDA creates no autoscaler for a ScaledObject with an invalid trigger, so the GPU workload keeps its current size.
KEDA reports a missing setting only when it reads the trigger, after the object was accepted. The API server refuses
numbers without quotes, because all metadata of triggers are strings.

## Instead
Write an address, a query and a threshold above 0 for a Prometheus trigger, with quotes around numbers:

```yaml
triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(gateway_requests_in_flight{service="llm"})
      threshold: "10"
```

For triggers of other types, gpugate checks only the type, and that all metadata are strings.

The ScaledObject is denied if the workload requests GPUs. It gets a warning if gpugate does not find the workload.
Nothing is reported if the workload requests no GPU.

## Sources
KEDA v2.20.2 `pkg/scalers/prometheus_scaler.go` (prometheusMetadata), `pkg/scalers/scalersconfig/typed_config.go` (a
blank value counts as missing; numbers are read as JSON), `pkg/scaling/scalers_builder.go` (one trigger fails all),
`config/crd/bases/keda.sh_scaledobjects.yaml` (type is required, metadata are strings);
`k8s.io/kubernetes/pkg/apis/autoscaling/validation` v1.36 (a target is above 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.scaling._queries import number
from gpugate.policies.scaling._scaled_objects import has_formula, highest_stance
from gpugate.policies.sdk.findings import Patch, Patches, Violation
from gpugate.policies.sdk.objects import SCALED_OBJECT
from gpugate.policies.sdk.policy import validates
from gpugate.policies.sdk.quantity import type_name
from gpugate.policies.sdk.scale_targets import TARGET_NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Stance
    from gpugate.policies.sdk.policy import AnyContext

_REQUIRED: Final = {
    "serverAddress": "the address of Prometheus, such as http://prometheus.monitoring:9090",
    "query": "a PromQL query that gives one number",
    "threshold": 'a number in quotes, such as "10"',
}
_NUMBERS: Final = ("threshold", "activationThreshold")


@validates(SCALED_OBJECT, needs=TARGET_NEEDS)
def check(scaled_object: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report the missing settings of each trigger, and those of the wrong type."""
    at_most = ctx.derived(highest_stance)
    if not at_most:
        return
    for trigger in scaled_object["spec", "triggers"]:
        kind = trigger["type"]
        if not kind.text:
            yield Violation(kind.path, "missing type of the trigger", at_most, "add a type, such as prometheus")
        for key, value in trigger["metadata"].items():
            if value and not isinstance(value.value, str):
                yield _unquoted(key, value, at_most)
        if kind.text == "prometheus":
            yield from _missing(trigger["metadata"], at_most)
            yield from _no_numbers(trigger["metadata"], at_most, formula=has_formula(scaled_object))


def _unquoted(key: str, value: Field, at_most: Stance) -> Violation:
    fix = None
    if isinstance(value.value, int):
        text = str(value.value).lower() if isinstance(value.value, bool) else str(value.value)
        fix = Patches((Patch("set", value.path, text, "puts the value in quotes"),), safe=True)
    message = f"{key} is {type_name(value.value)}, but metadata of triggers are strings"
    why = "The API server refuses the object, because metadata of triggers are strings."
    return Violation(value.path, message, at_most, "put the value in quotes", fix, why=why)


def _missing(metadata: Field, at_most: Stance) -> Iterator[Violation]:
    for key, addition in _REQUIRED.items():
        value = metadata[key]
        if not value or (isinstance(value.value, str) and not value.text.strip()):
            yield Violation(value.path, f"missing {key} of a prometheus trigger", at_most, f"add {addition}")


def _no_numbers(metadata: Field, at_most: Stance, *, formula: bool) -> Iterator[Violation]:
    for key in _NUMBERS:
        value = metadata[key]
        if not value.text.strip():
            continue
        amount = number(value.text)
        if amount is None:
            yield Violation(
                value.path, f"{key} is not a number that KEDA reads", at_most, 'write a number such as "10" or "0.5"'
            )
        elif key == "threshold" and amount <= 0 and not formula:
            yield Violation(
                value.path,
                f"threshold is {value.text.strip()}; it must be above 0",
                at_most,
                "write a threshold above 0",
            )
