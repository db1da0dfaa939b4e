"""Values for the chart that are hard to write as YAML or to keep in their place, and names that are hard to shorten."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

# What YAML, Go templates, JSON, CEL or a shell would take for something else.
_HARD = (
    "on",
    "1e3",
    "0x1f",
    "012",
    "1_000",
    "null",
    "~",
    "",
    " ",
    "2024-01-01",
    "<<",
    "=",
    "a: b",
    "- x",
    "x #y",
    "{{ .Values }}",
    "{{`",
    "}}",
    "%",
    "!!binary x",
    "'",
    '"',
    "\\",
    "$(VAR)",
    "a\nb",
    "a\n",
    "\n",
    "\t",
    "<&>",
    "\u2028",
    "caf\u00e9",
    "\U0001f600",
    "---",
    "|-",
    "a')||true||('",
)
# Characters that YAML cannot hold as they are stop a file before anybody reads its values.
_CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co"), exclude_characters="\ufeff")
TEXTS = st.sampled_from(_HARD) | st.text(_CHARACTERS, max_size=12)
_OBJECTS = st.dictionaries(st.sampled_from(["name", "key", "value", "on"]), TEXTS | st.booleans(), max_size=3)
_LABELS = st.dictionaries(st.sampled_from(["a.b/c", "on", "y", "1", "app.kubernetes.io/name"]), TEXTS, max_size=3)
_MEMORY = st.one_of(
    st.integers(1, 10**10),
    st.builds(
        "{}{}".format,
        st.integers(0, 10**4),
        st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G", "Gi", "Ti", "e6", "x"]),
    ),
    st.sampled_from(["0.1Gi", "0.5Gi", "1.5e8", "1e9", "Mi", "", "1E", "-1Gi", "176Mi", "175.9Mi"]),
)


def _section(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=members)


_POLICY = _section(
    mode=st.sampled_from(["audit", "off", False, True, None, "Audit"]),
    excluded_namespaces=st.lists(
        st.sampled_from(["kube-system", "karpenter", "gpu-*", "x\n", "kube-system"]), max_size=3
    ),
    platform=_section(
        taints=st.dictionaries(
            st.sampled_from(["a.b/*", "*"]), st.lists(st.fixed_dictionaries({"key": TEXTS}), max_size=2), max_size=2
        ),
        accelerators=_section(
            resources=st.lists(st.sampled_from(["a.b/npu", "a.b/slice-*", "*"]) | TEXTS, max_size=2),
            device_classes=st.lists(st.sampled_from(["npu.a.b"]) | TEXTS, max_size=2),
        ),
    ),
)
_WEBHOOKS = _section(
    annotations=_LABELS,
    url=st.sampled_from(["", "https://h:1", "https://h'\"<{{", "http://h", "https://h/\n"]),
    onlyNamespaces=st.lists(st.sampled_from(["a", "kube-system", "a\n", "on"]), max_size=2),
    karpenterUsers=st.lists(
        st.sampled_from(["system:serviceaccount:a:b", "system:serviceaccount:a:b\n", "x'] || true || ['"]), max_size=2
    ),
    pods=_section(failurePolicy=st.sampled_from(["Ignore", "Fail"])),
    failOnInstall=st.booleans(),
)
_NAMED = st.fixed_dictionaries({"name": st.sampled_from(["a", "tmp", "on"])}, optional={"value": TEXTS})
VALUES = _section(
    image=_section(tag=st.sampled_from(["1e3", "on", "", "v1\n"]), digest=st.sampled_from(["", "sha256:0"])),
    imagePullSecrets=st.lists(_OBJECTS, max_size=2),
    nameOverride=st.sampled_from(["", "on", "gate", "a.b"]),
    commonLabels=_LABELS,
    commonAnnotations=_LABELS,
    policy=_POLICY,
    webhooks=_WEBHOOKS,
    record=_section(
        volume=st.sampled_from([{}, {"emptyDir": {}}]),
        fraction=st.sampled_from([1, 0.001, 0, 2]),
        maxSize=st.sampled_from(["256Mi", "1Gi", "0Mi", "on"]),
    ),
    extraArgs=st.lists(TEXTS, max_size=3),
    extraEnv=st.lists(_OBJECTS | _NAMED, max_size=2),
    extraVolumes=st.lists(_OBJECTS | _NAMED, max_size=2),
    extraVolumeMounts=st.lists(
        st.fixed_dictionaries({"name": st.just("a"), "mountPath": st.sampled_from(["/a", "/", "/etc/gpugate/a", ""])}),
        max_size=2,
    ),
    podAnnotations=_LABELS,
    podLabels=_LABELS,
    nodeSelector=_LABELS | st.none(),
    affinity=_OBJECTS | st.none(),
    tolerations=st.lists(_OBJECTS, max_size=2),
    topologySpreadConstraints=st.lists(_OBJECTS, max_size=2),
    resources=_section(
        limits=_section(memory=_MEMORY) | st.none(), requests=_section(cpu=st.sampled_from([1, 0.5, "1"]))
    ),
    podSecurityContext=_section(
        runAsUser=st.sampled_from([None, 0, 1000, "1000"]), runAsNonRoot=st.sampled_from([True, False, None])
    ),
    securityContext=_section(
        readOnlyRootFilesystem=st.sampled_from([True, False, None]),
        capabilities=st.sampled_from([None, {"drop": None}, {"add": ["SYS_ADMIN"]}, {"drop": ["ALL"]}]),
    ),
    serviceAccount=_section(create=st.booleans(), name=st.sampled_from(["", "on", "a\n"]), annotations=_LABELS),
    clientAuthentication=_section(
        caBundle=st.sampled_from(["", "x", "-----BEGIN CERTIFICATE-----\n\u00e9"]),
        configMapName=st.sampled_from(["", "ca"]),
        names=st.lists(TEXTS, max_size=2),
    ),
    networkPolicy=_section(
        enabled=st.booleans(),
        apiServerCidrs=st.lists(st.sampled_from(["10.0.0.0/8", "::/0"]), max_size=2),
        metricsFrom=st.lists(_OBJECTS, max_size=2),
        restrictEgress=st.booleans(),
        apiServerPorts=st.lists(st.sampled_from([443, 6443]), max_size=2),
        egress=st.lists(_OBJECTS, max_size=2),
    ),
    certificates=st.sampled_from(
        [{}, {"mode": "certManager"}, {"mode": "provided"}]
        + [
            {"mode": "provided", "secretName": "s", "caBundle": f"{pem}\n\u00e9"}
            for pem in ("x", "-----BEGIN CERTIFICATE-----")
        ]
    ),
    podDisruptionBudget=_section(minAvailable=st.integers(-1, 3), maxUnavailable=st.integers(0, 3)),
    replicaCount=st.integers(0, 3) | st.sampled_from([None, "2", 2.5]),
    metrics=_section(serviceMonitor=st.fixed_dictionaries({"enabled": st.booleans(), "labels": _LABELS})),
    migNamespaces=st.dictionaries(
        st.sampled_from(["a", "on", "b\n"]),
        st.lists(st.sampled_from(["1g.10gb", "1g.10gb+me", "1g.10gb+", "x'"]), max_size=3),
    ),
    cluster=_section(
        name=st.sampled_from(["", "on", "1e3", "a b", "gpu-1.eu"]),
        region=st.sampled_from(["", "eu", "0x1f", "a\n"]),
        labels=st.dictionaries(
            st.sampled_from(["env", "a.b/c", "on", "=", "x="]), TEXTS | st.sampled_from(["prod"]), max_size=2
        ),
    ),
    audit=_section(
        tables=_section(
            format=st.sampled_from(["ndjson", "parquet", "csv"]),
            volume=_OBJECTS,
            url=st.sampled_from(["", "s3://a/b", "abfs://a@b/c", "s3://a:b@c", "/a", 's3://a"']),
            secretName=st.sampled_from(["", "on", "a\n"]),
        ),
        image=st.sampled_from(["", "registry.example.com/a:1", "on"]),
        serviceAccountAnnotations=_LABELS,
        schedule=st.sampled_from(["@daily", "0 * * * *", "0\u00a0* * * *", "* * * *"]),
        asMode=st.sampled_from(["warn", None, "x"]),
        metricsVolume=_OBJECTS,
        historyVolume=_OBJECTS,
        prometheus=_section(url=st.sampled_from(["http://a:9090", "https://a/b c", 'http://a"', ""]), tenant=TEXTS),
        extraArgs=st.lists(TEXTS, max_size=2),
    ),
)
# As Helm takes them (v4 pkg/chart/common/util: rules of RFC 1123, dots between them, 53 characters).
RELEASES = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,24}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,23}[a-z0-9])?)?\Z")
