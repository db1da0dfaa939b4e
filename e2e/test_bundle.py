"""`gpugate bundle` with a real registry, which serves TLS with a certificate of its own authority and asks for credentials."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from bundled_policies import H100, MANY, on_h100, with_gpus
from bundles import Publisher, write_keys

from gpugate.certs.pki import certificate_authority
from gpugate.webhook.bundle.artifact import EMPTY
from gpugate.webhook.bundle.reference import digest_of
from gpugate.webhook.bundle.registry import INDEX, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.registry import Registry

COSIGN = Path(__file__).parents[1] / "tests" / "webhook" / "bundle" / "cosign"
SIGSTORE = "application/vnd.dev.sigstore.bundle.v0.3+json"
TRUST = ("--ca", "ca.crt")
SIGNED = (*TRUST, "--key", "cosign.pub")
WITHOUT_GPUS = {"apiVersion": "example.com/v1", "kind": "Training", "metadata": {"name": "a"}, "spec": {"gpus": 0}}


@pytest.fixture
def publisher(registry: Registry, tmp_path: Path, request: pytest.FixtureRequest) -> Publisher:
    """One with a repository for each test."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")
    return Publisher(tmp_path, registry, f"acme/{name}")


@pytest.fixture(scope="module")
def published(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Publisher:
    """One whose signed bundle has the tag `v1` and is in the folder `bundle`; `unsigned` is another one."""
    made = Publisher(tmp_path_factory.mktemp("published"), registry, "acme/gpu-policies")
    reference = f"{made.name}@{made.push_signed('v1')}"
    (made.folder / "reference").write_text(reference, encoding="ascii")
    made.ran("bundle", "pull", reference, "bundle", *SIGNED)
    (made.policies / "limits.yaml").unlink()
    made.push("unsigned")
    write_keys(made.folder / "other.pem", made.folder / "other.pub")
    other = certificate_authority("another", now=dt.datetime.now(dt.UTC), lifetime=dt.timedelta(days=1))
    (made.folder / "other-ca.crt").write_bytes(other.certificate)
    return made


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }


def layer_of(registry: Registry, digest: str) -> str:
    """Return the digest of the layer of a bundle."""
    (layer,) = json.loads(registry.blob(digest).read_bytes())["layers"]
    return str(layer["digest"])


def test_a_signed_bundle_is_verified_pulled_and_used(publisher: Publisher) -> None:
    digest = publisher.push_signed("v1")
    reference = f"{publisher.name}@{digest}"
    verified = publisher.ran("bundle", "verify", reference, *SIGNED).splitlines()
    publisher.ran("bundle", "pull", reference, "bundle", *SIGNED)

    assert verified[:2] == [f"reference: {reference}", f"digest: {digest}"]
    assert verified[2].startswith("signer: cosign.pub (sha256:")
    assert verified[-1] == "policy file: valid (own policies: 2, schemas: 1)"
    pulled = files_of(publisher.folder / "bundle")
    assert json.loads(pulled.pop("bundle.json")) == {"reference": reference, "digest": digest}
    pushed = files_of(publisher.folder)
    assert pulled == {
        name: pushed[name] for name in pushed if name.startswith(("policy.yaml", "policies/", "schemas/"))
    }

    manifests = (on_h100("training"), with_gpus("training", 8), WITHOUT_GPUS)
    (publisher.folder / "manifests.yaml").write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    use = ("--policy-file", "bundle/policy.yaml", "--schemas", "bundle/schemas")
    checked = publisher.run("check", *use, "--output", "concise", "manifests.yaml")
    assert checked.returncode == 1
    for told in (H100.strip("[]"), MANY.strip("[]"), "0 is too small: at least 1 is needed"):
        assert told in checked.stdout


def test_a_signature_by_cosign_is_verified(publisher: Publisher) -> None:
    """Cosign wrote it for the bundle of a policy file without settings; its digest is the same in each registry."""
    registry, repository = publisher.registry, publisher.name.partition("/")[2]
    plain = publisher.folder / "plain"
    plain.mkdir()
    (plain / "policy.yaml").write_text("apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n", encoding="utf-8")
    pushed = publisher.ran("bundle", "push", f"{publisher.name}:v1", "-p", "plain/policy.yaml", *TRUST).strip()
    digest = pushed.partition("@")[2]
    subject = {"mediaType": MANIFEST, "digest": digest, "size": registry.blob(digest).stat().st_size}
    layer = {"mediaType": SIGSTORE, **registry.put_blob(repository, (COSIGN / "sigstore-bundle.json").read_bytes())}
    config = {"mediaType": EMPTY, **registry.put_blob(repository, b"{}")}
    described = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SIGSTORE}
    signature = registry.put_manifest(
        repository, "signature", MANIFEST, {**described, "config": config, "layers": [layer], "subject": subject}
    )
    # The registry has no API for what refers to a manifest; clients keep an index of it at a tag.
    entry = {"mediaType": MANIFEST, "artifactType": SIGSTORE, "digest": digest_of(signature), "size": len(signature)}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}
    registry.put_manifest(repository, digest.replace(":", "-"), INDEX, index)

    verify = ("bundle", "verify", f"{publisher.name}@{digest}", *TRUST, "--key")
    assert "policy file: valid" in publisher.ran(*verify, str(COSIGN / "cosign.pub"))
    assert "no valid signature by cosign.pub" in publisher.run(*verify, "cosign.pub").stderr


def test_the_same_files_are_the_same_bundle(publisher: Publisher) -> None:
    (digest,) = {publisher.push_signed("v1"), publisher.push("v2")}

    # It is signed, whoever pushed it last.
    assert f"digest: {digest}" in publisher.ran("bundle", "verify", f"{publisher.name}:v2", *SIGNED)


def test_a_moved_tag_leaves_what_its_digest_names(publisher: Publisher) -> None:
    first = publisher.push_signed("stable")
    (publisher.policies / "limits.yaml").unlink()
    second = publisher.push_signed("stable")

    printed = [
        publisher.ran("bundle", "verify", f"{publisher.name}{selector}", *SIGNED)
        for selector in (":stable", f"@{second}", f"@{first}")
    ]
    assert [f"digest: {first}" in each for each in printed] == [False, False, True]
    assert ["own policies: 2" in each for each in printed] == [False, False, True]


# A reference, flags, and what the error says.
REFUSED = {
    "another key": (":v1", (*TRUST, "--key", "other.pub"), "no valid signature by other.pub"),
    "no signature": (":unsigned", SIGNED, "not signed: sign it with"),
    "another authority": (":v1", ("--ca", "other-ca.crt"), "untrusted certificate"),
    "no authority": (":v1", (), "asked without TLS: if it expects TLS, name its certificate authorities with --ca"),
    "an unknown tag": (":v9", SIGNED, "404: the registry does not have it"),
    "an unknown digest": (f"@sha256:{'0' * 64}", SIGNED, "404: the registry does not have it"),
}


@pytest.mark.parametrize(("selector", "flags", "error"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_verified_is_refused(
    published: Publisher, selector: str, flags: tuple[str, ...], error: str
) -> None:
    ran = published.run("bundle", "pull", f"{published.name}{selector}", "refused", *flags)

    assert (ran.returncode, ran.stdout, error in ran.stderr) == (2, "", True), ran.stderr
    assert not (published.folder / "refused").exists()


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_registry_that_refuses_the_credentials_is_reported(
    published: Publisher, registry: Registry, password: str
) -> None:
    published.log_in(registry.login(password) if password else {})

    ran = published.run("bundle", "verify", f"{published.name}:v1", *SIGNED)
    pushed = published.run("bundle", "push", f"{published.name}:v2", "-p", "policy.yaml", *TRUST)

    published.log_in(registry.login())
    for each in (ran, pushed):
        assert each.returncode == 2
        assert "401: the credentials are missing or not accepted: log in with `docker login`" in each.stderr
        assert "wrong" not in each.stderr


# What is changed in the storage of the registry: whose content, by the digest of the bundle; how; and what the error says.
CHANGED: dict[str, tuple[Callable[[Registry, str], str], Callable[[bytes], bytes], str]] = {
    "a byte of the layer": (layer_of, lambda data: data[:-1] + b"x", "has another digest or size"),
    "the end of the layer": (layer_of, lambda data: data[:-9], "has another digest or size"),
    "a value in the manifest": (
        lambda _, digest: digest,
        lambda data: data.replace(b"gzip", b"zstd"),
        "has the digest",
    ),
}


@pytest.mark.parametrize(("blob", "change", "error"), CHANGED.values(), ids=CHANGED)
def test_content_that_was_changed_in_the_registry_is_refused(
    published: Publisher, blob: Callable[[Registry, str], str], change: Callable[[bytes], bytes], error: str
) -> None:
    reference = (published.folder / "reference").read_text(encoding="ascii")
    before = files_of(published.folder / "bundle")
    stored = published.registry.blob(blob(published.registry, reference.partition("@")[2]))
    content = stored.read_bytes()
    stored.write_bytes(change(content))
    try:
        ran = published.run("bundle", "pull", reference, "bundle", *SIGNED)
    finally:
        stored.write_bytes(content)

    assert (ran.returncode, error in ran.stderr) == (2, True), ran.stderr
    assert files_of(published.folder / "bundle") == before


def test_a_registry_that_is_down_leaves_the_earlier_bundle(published: Publisher) -> None:
    before = files_of(published.folder / "bundle")
    published.registry.stop()
    try:
        ran = published.run("bundle", "pull", f"{published.name}:v1", "bundle", *SIGNED)
        pushed = published.run("bundle", "push", f"{published.name}:v2", "-p", "policy.yaml", *TRUST)
    finally:
        published.registry.start()

    for each in (ran, pushed):
        assert each.returncode == 2
        assert "connection refused: check that the registry is running" in each.stderr
    assert files_of(published.folder / "bundle") == before
