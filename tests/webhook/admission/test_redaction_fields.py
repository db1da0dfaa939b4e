"""Of which fields a record keeps the texts, and of which it keeps none: a path each, as manifests have them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from gpugate.webhook.admission.redaction import REDACTED, Vocabulary, library_texts, redacted

# No policy knows this word.
UNKNOWN = "zqunknownqz"


def words(text: str) -> list[str]:
    return text.split()


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(library_texts())


def at(path: str, value: Any) -> dict[str, Any]:
    """Return an object with a value at a path, such as `spec.taints[].key`."""
    head, _, rest = path.partition(".")
    inner = at(rest, value) if rest else value
    return {head.removesuffix("[]"): [inner] if head.endswith("[]") else inner}


KEPT = words("""
    apiVersion kind metadata.name metadata.generateName metadata.namespace metadata.uid metadata.resourceVersion
    metadata.creationTimestamp metadata.deletionTimestamp metadata.labels.any metadata.finalizers[]
    metadata.ownerReferences[].controllerName metadata.ownerReferences[].any[]

    spec.nodeSelector.any spec.nodeName spec.schedulerName spec.runtimeClassName spec.priorityClassName spec.restartPolicy
    spec.serviceAccountName spec.hostname spec.matchLabels.any spec.selector.any spec.selector.any.any spec.podSelector.any
    spec.labelSelector.any spec.matchExpressions[].values[] spec.matchLabelExpressions[].values[]
    spec.tolerations[].value spec.tolerations[].key spec.affinity.any.any spec.nodeAffinity.any
    spec.topologySpreadConstraints[].topologyKey spec.topologySpreadConstraints[].whenUnsatisfiable
    spec.resourceClaims[].resourceClaimTemplateName spec.schedulingGates[].any spec.strategy.any spec.updateStrategy.any
    spec.containers[].image spec.containers[].resources.limits.any spec.containers[].volumeMounts[].mountPath
    spec.containers[].ports[].protocol spec.containers[].securityContext.capabilities.add[]
    spec.containers[].env[].valueFrom.fieldRef.fieldPath spec.containers[].env[].valueFrom.resourceFieldRef.resource
    spec.containers[].env[].valueFrom.resourceFieldRef.containerName spec.volumes[].hostPath.server
    spec.volumes[].persistentVolumeClaim.claimName spec.volumes[].emptyDir.sizeLimit spec.volumes[].emptyDir.medium
    spec.volumes[].path spec.resources.requests.any spec.storageClassName spec.volumeName spec.accessModes[]
    spec.completionMode spec.schedule spec.timeZone provisioner driver allowedTopologies[].any

    spec.template.spec.requirements[].values[] spec.template.spec.taints[].value spec.template.spec.startupTaints[].value
    spec.template.spec.expireAfter spec.template.spec.terminationGracePeriod spec.template.spec.nodeClassRef.any
    spec.disruption.budgets[].reasons[] spec.limits.any spec.price spec.capacity.any status.allocatable.any
    spec.amiFamily spec.role spec.instanceProfile spec.instanceStorePolicy spec.tags.any spec.amiSelectorTerms[].alias
    spec.blockDeviceMappings[].deviceName spec.subnetSelectorTerms[].any spec.securityGroupSelectorTerms[].any
    spec.capacityReservationSelectorTerms[].any spec.metadataOptions.httpTokens spec.kubelet.any

    spec.scaleTargetRef.any spec.jobTargetRef.any spec.fallback.any spec.advanced.any spec.triggers[].type
    spec.triggers[].metricType spec.triggers[].metadata.query spec.triggers[].metadata.metricName spec.groups[].rules[].expr
    spec.devices.requests[].deviceClassName spec.selectors[].cel.expression spec.extendedResourceName
    spec.pools[].any spec.attributes.any spec.deviceClassName
""")


@pytest.mark.parametrize("path", KEPT)
class TestKept:
    def test_the_text_stays(self, path: str) -> None:
        obj = at(path, UNKNOWN)
        assert redacted(obj, vocabulary()) == obj

    def test_credentials_in_it_do_not_stay(self, path: str) -> None:
        stays = redacted(at(path, f"https://user:{UNKNOWN}@host.zq/hf_{'x' * 20}"), vocabulary())
        assert stays == at(path, f"https://{REDACTED}@host.zq/{REDACTED}")


@pytest.mark.parametrize("path", [path for path in KEPT if not path.endswith(("[]", "key", "topologyKey"))])
def test_the_words_of_a_kept_text_stay_in_commands(path: str) -> None:
    """A command may contain a path or a name of the object."""
    obj = {**at(path, f"a-{UNKNOWN}"), "command": [f"/{UNKNOWN}/{UNKNOWN}2zq"]}
    assert redacted(obj, vocabulary())["command"] == [f"/{UNKNOWN}/{REDACTED}"]


HIDDEN = words("""
    spec.any spec.any[] spec.any[].any spec.containers[].args[] spec.containers[].command[] spec.containers[].any
    data.any data.any.any spec.userData spec.config.any spec.template.any spec.parameters[].any spec.envVars.any
    spec.triggers[].metadata.any spec.resourceClaims[].config[].opaque spec.devices.config[].opaque.parameters.any
    spec.pools[].config spec.kubelet.data.any spec.advanced.env[].any spec.fallback.args[] spec.pools[].command[]
    spec.pools[].containers[].any spec.pools[].envVars.any spec.pools[].parameters.any spec.pools[].template.any
    spec.kubelet.userData
    spec.key spec.tolerations[].authToken spec.ports[].session spec.labelsOfOthers.any
""")


@pytest.mark.parametrize("path", HIDDEN)
class TestHidden:
    def test_the_text_does_not_stay(self, path: str) -> None:
        assert redacted(at(path, UNKNOWN), vocabulary()) == at(path, REDACTED)

    def test_its_words_do_not_stay_in_commands(self, path: str) -> None:
        obj = {**at(path, UNKNOWN), "command": [UNKNOWN]}
        assert redacted(obj, vocabulary())["command"] == [REDACTED]


PRIVATE = words(
    "apikey auth authorization bearer connection cookie cred creds credential credentials dsn jwt key passphrase passwd "
    "password pat private pw pwd sas secret session signature token"
)
# How a name may contain such a word; the library knows `gpu`.
NAMES = ["{}", "{}-file", "my-{}", "my_{}_x", "my{}", "{}File"]


@pytest.mark.parametrize("word", PRIVATE)
class TestPrivate:
    @pytest.mark.parametrize("form", NAMES)
    def test_a_key_hides_all_texts_below_it(self, word: str, form: str) -> None:
        key = form.format(word.capitalize() if form == "my{}" else word)
        below = {"gpu": "gpu", "list": ["gpu", 1, None], "flag": True}
        hidden = {"gpu": REDACTED, "list": [REDACTED, 1, None], "flag": True}
        assert redacted({"spec": {key: below}}, vocabulary()) == {"spec": {key: hidden}}

    def test_an_option_hides_its_value(self, word: str) -> None:
        args = [f"--{word}", "gpu", f"--{word}=gpu", f"{word}: gpu", f"{word.upper()}=gpu", "gpu"]
        values = redacted({"args": args}, vocabulary())["args"]
        assert ("gpu" in "".join(values[:-1]), values[-1]) == (False, "gpu")


@pytest.mark.parametrize("key", ["tokenizer", "keys", "author", "monkey", "path1", "spat", "Private1x", "topologyKeys"])
def test_a_similar_name_hides_nothing(key: str) -> None:
    kept = {"spec": {key: "gpu"}}
    assert (redacted(kept, vocabulary()) == kept) is (key != "Private1x")


def test_the_end_of_a_long_name_decides() -> None:
    keys = {"token" + "-" * 59: REDACTED, "token" + "-" * 60: "gpu", "-" * 100 + "token": REDACTED}
    assert redacted({"spec": dict.fromkeys(keys, "gpu")}, vocabulary()) == {"spec": keys}
    args = redacted({"args": [f"{key}=gpu" for key in keys]}, vocabulary())["args"]
    assert args == [f"{key}={value}" for key, value in keys.items()]


def test_managed_fields_are_left_out() -> None:
    obj = {"metadata": {"name": "n", "managedFields": [{"manager": "kubectl"}]}}
    assert redacted(obj, vocabulary()) == {"metadata": {"name": "n"}}


ANNOTATIONS = [
    # Policies read these.
    ("karpenter.sh/do-not-disrupt", UNKNOWN, UNKNOWN),
    ("cdi.k8s.io/vendor", UNKNOWN, UNKNOWN),
    ("karpenter.sh/do-not-disrupt", f"https://u:{UNKNOWN}@x", f"https://{REDACTED}@x"),
    # And no others.
    ("example.org/other", "gpu", REDACTED),
    ("example.org/other", "", ""),
    ("kubectl.kubernetes.io/last-applied-configuration", "gpu", REDACTED),
    ("gpu", "gpu", REDACTED),
]


@pytest.mark.parametrize(("name", "value", "stays"), ANNOTATIONS)
@pytest.mark.parametrize("key", ["annotations", "podAnnotations", "serviceAnnotations"])
def test_annotations(key: str, name: str, value: str, stays: str) -> None:
    assert redacted({"metadata": {key: {name: value}}}, vocabulary()) == {"metadata": {key: {name: stays}}}


@pytest.mark.parametrize("value", [None, True, False, 0, 1, -1, 10**9, 0.5])
@pytest.mark.parametrize(
    "path", ["spec.any", "spec.any[]", "spec.token", "spec.token[]", "metadata.labels.a", "data.a"]
)
def test_numbers_and_booleans_stay(path: str, value: object) -> None:
    obj = at(path, value)
    assert redacted(obj, vocabulary()) == obj


TRIGGER = {"type": "prometheus", "metadata": {"query": f"sum({UNKNOWN})", "serverAddress": f"http://{UNKNOWN}:9090"}}
SHAPES: list[tuple[Any, Any]] = [
    # Values that are no texts where texts are expected.
    ({"image": {"any": UNKNOWN}}, {"image": {"any": REDACTED}}),
    ({"image": ["gpu", 1]}, {"image": ["gpu", 1]}),
    ({"image": [UNKNOWN, {"any": UNKNOWN}]}, {"image": [REDACTED, {"any": REDACTED}]}),
    ({"labels": [UNKNOWN, {"a": [f"x://{UNKNOWN}@y"]}]}, {"labels": [UNKNOWN, {"a": [f"x://{REDACTED}@y"]}]}),
    ({"annotations": [UNKNOWN]}, {"annotations": [REDACTED]}),
    ({"any": [[UNKNOWN]]}, {"any": [[REDACTED]]}),
    ({"taints": [[{"value": UNKNOWN}], UNKNOWN]}, {"taints": [[{"value": UNKNOWN}], UNKNOWN]}),
    # Words of kept values are known in other texts of the object.
    ({"spec": TRIGGER}, {"spec": {**TRIGGER, "metadata": {**TRIGGER["metadata"], "serverAddress": f"http://{UNKNOWN}:9090"}}}),  # type: ignore[dict-item] -- a dict
    ({"other": UNKNOWN, "any": [{"name": UNKNOWN}]}, {"other": UNKNOWN, "any": [{"name": UNKNOWN}]}),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "stays"), SHAPES)
def test_values_of_any_shape(spec: Any, stays: Any) -> None:
    assert redacted({"spec": spec}, vocabulary()) == {"spec": stays}


CREDENTIALS = [
    ("AKIA" + "A" * 16, True),
    ("ASIA" + "0" * 16, True),
    ("AKIA" + "A" * 15, False),
    *((f"gh{letter}_" + "x" * 20, True) for letter in "pousr"),
    ("ghp_" + "x" * 19, False),
    ("github_pat_" + "x" * 20, True),
    ("glpat-" + "x-" * 10, True),
    *((f"xox{letter}-" + "x" * 10, True) for letter in "abprs"),
    ("hf_" + "x" * 20, True),
    ("sk-" + "x-" * 10, True),
    ("AIza" + "x" * 30, True),
    ("eyJ" + "x." * 8, True),
    ("eyJ" + "x" * 15, False),
    ("-----BEGIN PRIVATE KEY-----\nabc\ndef", True),
    ("https://user:password@", False),
]


@pytest.mark.parametrize(("text", "hidden"), CREDENTIALS)
def test_a_credential_does_not_stay_even_in_a_kept_text(text: str, hidden: bool) -> None:  # noqa: FBT001 -- a table's column
    stays = redacted({"image": f"a/{text}"}, vocabulary())["image"]
    expected = f"a/{REDACTED}" if hidden else f"a/{text}".replace("user:password", REDACTED)
    assert stays == expected


TEXTS: list[tuple[list[str], list[str]]] = [
    # What separates words stays, and so do the numbers, units and words that policies know.
    (["gpu,node;pool&gpu|gpu?(gpu){gpu}"], ["gpu,node;pool&gpu|gpu?(gpu){gpu}"]),
    (["  gpu \t node  "], ["  gpu \t node  "]),
    (["gpu3", "gpu123", "gpu1234", "3gpu"], ["gpu3", "gpu123", REDACTED, REDACTED]),
    (["123456", "1234567", "5e10", "5e100", "30s", "16Gi", "16Gib"], ["123456", REDACTED, "5e10", REDACTED, "30s", "16Gi", REDACTED]),
    (["GPU", "Gpu"], ["GPU", "Gpu"]),
    # The value of a secret option ends with the next word, or with its quote.
    (["--token", "gpu", "gpu"], ["--token", REDACTED, "gpu"]),
    (["--token gpu gpu"], [f"--token {REDACTED} gpu"]),
    (["--token=gpu gpu"], [f"--token={REDACTED} gpu"]),
    (["--token= gpu gpu"], [f"--token= {REDACTED} gpu"]),
    (["--token='gpu gpu' gpu"], [f"--token={REDACTED} {REDACTED} gpu"]),
    (['--token="gpu gpu gpu" gpu'], [f"--token={REDACTED} {REDACTED} {REDACTED} gpu"]),
    (["--token='gpu' gpu"], [f"--token={REDACTED} gpu"]),
    (["--token=' gpu' gpu"], [f"--token={REDACTED} {REDACTED} gpu"]),
    (["--token 'gpu gpu' gpu"], [f"--token {REDACTED} {REDACTED} gpu"]),
    (["--token='gpu gpu", "gpu"], [f"--token={REDACTED} {REDACTED}", "gpu"]),
    (["token: Bearer gpu gpu"], [f"token: {REDACTED} {REDACTED} gpu"]),
    (["token:'Basic' gpu gpu"], [f"token:{REDACTED} {REDACTED} gpu"]),
    (["token=token gpu gpu"], [f"token={REDACTED} {REDACTED} gpu"]),
    # A name without a value or a dash is a word.
    (["token", "gpu"], ["token", "gpu"]),
    (["-token", "gpu"], ["-token", REDACTED]),
    (["token:", "gpu", "gpu"], ["token:", REDACTED, "gpu"]),
    (["gpu=gpu", "--gpu", "gpu"], ["gpu=gpu", "--gpu", "gpu"]),
    (["--token", "", "gpu"], ["--token", "", REDACTED]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "stays"), TEXTS)
def test_the_words_of_texts(texts: list[str], stays: list[str]) -> None:
    assert redacted({"args": texts}, vocabulary())["args"] == stays


VARIABLES = [
    ("NVIDIA_VISIBLE_DEVICES", UNKNOWN, UNKNOWN),
    ("NVIDIA_VISIBLE_DEVICES", f"x://u:{UNKNOWN}@y", f"x://{REDACTED}@y"),
    ("ANY", "", ""),
    ("ANY", "gpu", REDACTED),
    ("ANY", "a s3://b http://c zqz://d s3://e", f"{REDACTED} s3:// http://"),
    ("ANY", "$(JOB_COMPLETION_INDEX)${JOB_COMPLETION_INDEX}$JOB_COMPLETION_INDEX", f"{REDACTED} $(JOB_COMPLETION_INDEX) ${{JOB_COMPLETION_INDEX}} $JOB_COMPLETION_INDEX"),
    ("ANY", f"$(JOB_{UNKNOWN})", REDACTED),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "stays"), VARIABLES)
@pytest.mark.parametrize("key", ["env", "parameters"])
def test_the_value_of_a_variable(key: str, name: str, value: str, stays: str) -> None:
    assert redacted({key: [{"name": name, "value": value}]}, vocabulary()) == {key: [{"name": name, "value": stays}]}


@pytest.mark.parametrize("variable", [{"name": 1, "value": "gpu"}, {"value": "gpu"}, {"name": "ANY", "value": 1}])
def test_what_only_resembles_a_variable_is_read_as_any_object(variable: dict[str, Any]) -> None:
    assert redacted({"env": [variable]}, vocabulary()) == {"env": [variable]}


class TestVocabulary:
    def test_the_texts_of_policy_files_are_split_into_names_and_words(self) -> None:
        extended = Vocabulary(
            frozenset(), ['a: "example.org/first", [ZQ_VARIABLE]', "{example.org/second} (Word) `OTHER_NAME`:"]
        )
        assert all(map(extended.reads, ("example.org/first", "example.org/second")))
        assert extended.variables == {"ZQ_VARIABLE", "OTHER_NAME"}
        assert all(map(extended.knows, ("example", "first", "zq", "word", "WORD1", "name999")))
        assert not any(map(extended.knows, ("wor", "word1234", "zq_variable")))
        assert not any(map(extended.reads, ("Word", "example.org", "example.org/firs")))

    @pytest.mark.parametrize("name", ["ONE", "A_TOKEN", "lower_case", "_A_B", "A__B", "A_B_"])
    def test_what_is_no_name_of_a_variable_that_may_be_read(self, name: str) -> None:
        assert Vocabulary(frozenset({name})).variables == frozenset()

    def test_more_texts_extend_those_of_the_library_and_not_the_earlier_ones(self) -> None:
        library = Vocabulary(frozenset({"library"}))
        first, second = library.extended(["first"]), library.extended(["first"]).extended(["second"])
        assert [first.knows(word) for word in ("library", "first")] == [True, True]
        assert [second.knows(word) for word in ("library", "first", "second")] == [True, False, True]


FORMS = words(
    "finetune finetuning tune tuning pretrain pretraining pretrainer retrain retraining retrainer train training trainer qlora "
    "bench benchmark benchmarks benchmarking infer inference serve server serving generate generation eval evaluate evaluation "
    "predict prediction python python3 http https nccl rccl test tests vectoradd hpl xhpl hpcg xhpcg write read send bw lat "
    "dcgmproftester dcgmproftester12"
)


@pytest.mark.parametrize("word", FORMS)
def test_words_of_programs_stay_without_any_text_of_the_library(word: str) -> None:
    assert Vocabulary(frozenset()).knows(word)
