"""Signatures by gpugate and by cosign v3.1.3, whose files in `cosign` are of the bundle with only an empty policy file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from gpugate.webhook.bundle.reference import Reference, digest_of, parse_reference
from gpugate.webhook.bundle.registry import Registry, RegistryError
from gpugate.webhook.bundle.signatures import PrivateKey, PublicKey, SignatureError, sign, verify

if TYPE_CHECKING:
    from conftest import FakeRegistry

COSIGN = Path(__file__).parent / "cosign"
SIGNED_BY_COSIGN = "sha256:099fabc4e5e4c0d2af5fbfc17c3a3c7abcad41432a0303e9a1c5ac6b3f694188"
SIGNATURE_BY_COSIGN = "MEUCIEjr8iHWjEJfBGvlYF5QHizTKmnWFJ5puQQar7oSkDhzAiEAst4zFKx5vv3oh/j3ixnYb8as6DYkmF9707uHE4jM/Zo="
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGSTORE = "application/vnd.dev.sigstore.bundle.v0.3+json"
DIGEST = digest_of(b"a manifest")
OTHER = digest_of(b"another manifest")


class Pair:
    """A new key."""

    def __init__(self, name: str = "own.pub") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self.private = PrivateKey(private_pem(self.key), None, "own.pem")
        self.public = PublicKey(self.key.public_key().public_bytes(serialization.Encoding.PEM, form), name)


def private_pem(key: Any, password: bytes | None = None) -> bytes:
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))


def opened(registry: FakeRegistry) -> tuple[Registry, Reference]:
    reference = parse_reference(f"{registry.host}/a:1")
    return Registry(reference, None, 60), reference


def put_simple(registry: FakeRegistry, digest: str, payload: bytes, signature: str) -> None:
    layer = {
        "mediaType": SIMPLE,
        "digest": registry.put_blob(payload),
        "size": len(payload),
        "annotations": {"dev.cosignproject.cosign/signature": signature},
    }
    registry.put("a", f"{digest.replace(':', '-')}.sig", {"schemaVersion": 2, "layers": [layer]})


def put_sigstore(registry: FakeRegistry, digest: str, bundle: bytes) -> None:
    layer = {"mediaType": SIGSTORE, "digest": registry.put_blob(bundle), "size": len(bundle)}
    manifest = registry.put("a", "signature", {"schemaVersion": 2, "artifactType": SIGSTORE, "layers": [layer]})
    entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": SIGSTORE}
    index = {"schemaVersion": 2, "manifests": [{**entry, "digest": manifest, "size": 1}]}
    registry.put("a", digest.replace(":", "-"), index, "application/vnd.oci.image.index.v1+json")


def test_a_signature_is_verified(registry: FakeRegistry) -> None:
    pair = Pair()
    sign(*opened(registry), DIGEST, pair.private)
    verify(*opened(registry), DIGEST, pair.public)


def test_several_keys_sign_beside_each_other(registry: FakeRegistry) -> None:
    first, second = Pair(), Pair()
    sign(*opened(registry), DIGEST, first.private)
    sign(*opened(registry), DIGEST, second.private)
    verify(*opened(registry), DIGEST, first.public)
    verify(*opened(registry), DIGEST, second.public)


def test_a_key_signs_once(registry: FakeRegistry) -> None:
    pair = Pair()
    for _ in range(3):
        sign(*opened(registry), DIGEST, pair.private)
    _, data = registry.manifests["a", f"{DIGEST.replace(':', '-')}.sig"]
    assert len(json.loads(data)["layers"]) == 1


def test_simple_signing_by_cosign_is_verified(registry: FakeRegistry) -> None:
    put_simple(registry, SIGNED_BY_COSIGN, (COSIGN / "simple-signing.json").read_bytes(), SIGNATURE_BY_COSIGN)
    verify(*opened(registry), SIGNED_BY_COSIGN, PublicKey((COSIGN / "cosign.pub").read_bytes(), "cosign.pub"))


def test_a_sigstore_bundle_by_cosign_is_verified(registry: FakeRegistry) -> None:
    put_sigstore(registry, SIGNED_BY_COSIGN, (COSIGN / "sigstore-bundle.json").read_bytes())
    verify(*opened(registry), SIGNED_BY_COSIGN, PublicKey((COSIGN / "cosign.pub").read_bytes(), "cosign.pub"))


def payload(digest: str, kind: str = "cosign container image signature") -> bytes:
    return json.dumps({"critical": {"image": {"docker-manifest-digest": digest}, "type": kind}}).encode()


def statement(digest: str, predicate: str = "https://sigstore.dev/cosign/sign/v1", count: int = 1) -> bytes:
    subjects = [{"digest": {"sha256": digest.removeprefix("sha256:")}}] * count
    document = {"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "subject": subjects}
    return json.dumps(document).encode()


def envelope(pair: Pair, content: bytes, kind: str = "application/vnd.in-toto+json", signed_kind: str = "") -> bytes:
    named = signed_kind or kind
    signature = pair.private.sign(f"DSSEv1 {len(named)} {named} {len(content)} ".encode() + content)
    return json.dumps(
        {
            "dsseEnvelope": {
                "payload": base64.b64encode(content).decode(),
                "payloadType": kind,
                "signatures": [{"sig": signature}],
            }
        }
    ).encode()


def test_a_bundle_without_signature_is_refused(registry: FakeRegistry) -> None:
    with pytest.raises(SignatureError, match=f"{DIGEST}: not signed"):
        verify(*opened(registry), DIGEST, Pair().public)


def test_a_signature_by_another_key_is_refused(registry: FakeRegistry) -> None:
    sign(*opened(registry), DIGEST, Pair().private)
    with pytest.raises(SignatureError, match=r"no valid signature by own.pub \(1 by other keys, or damaged\)"):
        verify(*opened(registry), DIGEST, Pair().public)


def test_a_signature_of_another_digest_is_refused(registry: FakeRegistry) -> None:
    pair = Pair()
    put_simple(registry, DIGEST, payload(OTHER), pair.private.sign(payload(OTHER)))
    with pytest.raises(SignatureError, match=f"the signature by own.pub is of another digest, {OTHER}"):
        verify(*opened(registry), DIGEST, pair.public)


def test_a_payload_that_was_changed_in_the_registry_is_refused(registry: FakeRegistry) -> None:
    pair = Pair()
    put_simple(registry, DIGEST, payload(OTHER), pair.private.sign(payload(OTHER)))
    registry.blobs[digest_of(payload(OTHER))] = payload(DIGEST)
    with pytest.raises(RegistryError, match="another digest"):
        verify(*opened(registry), DIGEST, pair.public)


@pytest.mark.parametrize(
    ("content", "signed"),
    [
        (payload(DIGEST), payload(OTHER)),
        (payload(DIGEST, "something else"), None),
        (b'{"critical": {}}', None),
        (b"no json", None),
    ],
)
def test_a_damaged_simple_signature_is_refused(registry: FakeRegistry, content: bytes, signed: bytes | None) -> None:
    pair = Pair()
    put_simple(registry, DIGEST, content, pair.private.sign(signed or content))
    with pytest.raises(SignatureError, match="no valid signature"):
        verify(*opened(registry), DIGEST, pair.public)


@pytest.mark.parametrize(
    ("content", "kind", "signed_kind", "reason"),
    [
        (statement(OTHER), "application/vnd.in-toto+json", "", "is of another digest"),
        (statement(DIGEST, "https://slsa.dev/provenance/v1"), "application/vnd.in-toto+json", "", "no valid signature"),
        (statement(DIGEST, count=2), "application/vnd.in-toto+json", "", "no valid signature"),
        (statement(DIGEST), "text/plain", "", "no valid signature"),
        (statement(DIGEST), "application/vnd.in-toto+json", "text/plain", "no valid signature"),
        (b"{}", "application/vnd.in-toto+json", "", "no valid signature"),
    ],
)
def test_a_sigstore_bundle_of_something_else_is_refused(
    registry: FakeRegistry, content: bytes, kind: str, signed_kind: str, reason: str
) -> None:
    pair = Pair()
    put_sigstore(registry, DIGEST, envelope(pair, content, kind, signed_kind))
    with pytest.raises(SignatureError, match=reason):
        verify(*opened(registry), DIGEST, pair.public)


@pytest.mark.parametrize("signature", ["", "!", "QUJD", base64.b64encode(bytes(72)).decode()])
def test_what_is_no_signature_is_refused(registry: FakeRegistry, signature: str) -> None:
    put_simple(registry, DIGEST, payload(DIGEST), signature)
    with pytest.raises(SignatureError, match="no valid signature"):
        verify(*opened(registry), DIGEST, Pair().public)


@pytest.mark.parametrize(
    ("pem", "password", "reason"),
    [
        (b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----", None, "encrypted by cosign"),
        (b"no PEM", None, "not a private key in PEM"),
        (private_pem(ed25519.Ed25519PrivateKey.generate()), None, "unsupported kind of key"),
        (private_pem(ec.generate_private_key(ec.SECP384R1())), None, "unsupported kind of key"),
        (private_pem(Pair().key, b"right"), b"wrong", "the password is wrong"),
        (private_pem(Pair().key, b"right"), None, "the key has a password"),
        (private_pem(Pair().key), b"right", "the key has no password"),
    ],
)
def test_an_invalid_private_key_is_named(pem: bytes, password: bytes | None, reason: str) -> None:
    with pytest.raises(SignatureError, match=reason):
        PrivateKey(pem, password, "key.pem")


def test_a_private_key_with_its_password_is_read() -> None:
    assert PrivateKey(private_pem(Pair().key, b"right"), b"right", "key.pem").sign(b"x")


@pytest.mark.parametrize(
    ("pem", "reason"),
    [
        (private_pem(Pair().key), "a private key"),
        (b"no PEM", "not a public key in PEM"),
        (b"", "not a public key in PEM"),
    ],
)
def test_an_invalid_public_key_is_named(pem: bytes, reason: str) -> None:
    with pytest.raises(SignatureError, match=reason):
        PublicKey(pem, "key.pub")
