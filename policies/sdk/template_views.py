"""Workloads that write their Pods down in another shape, seen as Pod templates.

Sources: KServe v0.19.0 (`pkg/apis/serving/v1beta1/predictor.go`, `transformer.go`, `explainer.go`,
`pkg/controller/v1beta1/inferenceservice/components/predictor.go`), Argo Workflows v3.7.3
(`pkg/apis/workflow/v1alpha1/workflow_types.go`, `workflow/controller/workflowpod.go`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.views import ListView, ObjectView

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Field

# The members of a component that are a container beside those of its Pod spec: one for each model server.
_MODEL_SERVERS: Final = (
    *("model", "huggingface", "triton", "pytorch", "tensorflow", "onnx"),
    *("sklearn", "xgboost", "lightgbm", "paddle", "pmml", "art"),
)


def kserve_component(component: Field, root: Field) -> Field:
    """See a component of an InferenceService, which is a Pod spec with labels and a model server, as a Pod template.

    What the serving runtime adds is not known here. Its Pods have the labels and annotations of the InferenceService
    too, and those of the predictor are its workers'.
    """
    owner = root["spec", "predictor"] if component.path[-1:] == ("workerSpec",) else component
    servers = [component[name] for name in _MODEL_SERVERS if component[name].mapping]
    spec = ObjectView(component, {"containers": _joined(component["containers"], servers)})
    metadata = ObjectView(
        owner,
        {block: _merged(owner[block], root["metadata", block]) for block in ("labels", "annotations")},
    )
    return ObjectView(component, {"metadata": metadata, "spec": spec})


def argo_template(template: Field, workflow: Field) -> Field | None:
    """See a template of an Argo workflow, which is parts of a Pod, as a Pod template; `workflow` is the workflow's spec.

    Selectors, affinity and tolerations are the template's, or else those of `templateDefaults` or the workflow. None for
    a template that runs no container of the user's, such as a DAG.
    """
    own = [template[kind] for kind in ("container", "script") if template[kind].mapping]
    own += template["containerSet", "containers"]
    if not own:
        return None
    defaults = workflow["templateDefaults"]
    layers = (template, defaults, workflow)
    spec = ObjectView(
        template,
        {
            "containers": _joined(template["container"], [*own, *template["sidecars"]]),
            "volumes": _joined(template["volumes"], [*defaults["volumes"], *workflow["volumes"]]),
            **{name: _first(layers, name) for name in ("nodeSelector", "affinity", "tolerations")},
        },
    )
    metadata = ObjectView(
        template["metadata"],
        {
            block: _merged(template["metadata", block], defaults["metadata", block], workflow["podMetadata", block])
            for block in ("labels", "annotations")
        },
    )
    return ObjectView(template, {"metadata": metadata, "spec": spec})


def _joined(home: Field, more: list[Field]) -> Field:
    """Return a list with more elements; one that is no list stays as it is, so that it is refused."""
    if not more or (home and not isinstance(home.value, list | dict)):
        return home
    return ListView(home, [*home, *more])


def _merged(home: Field, *others: Field) -> Field:
    """Return labels or annotations with those of others that it does not have itself."""
    members = {key: field for other in reversed(others) for key, field in other.items()}
    return ObjectView(home, {**members, **dict(home.items())}) if members else home


def _first(layers: tuple[Field, ...], name: str) -> Field:
    return next((layer[name] for layer in layers if layer[name].value), layers[0][name])
