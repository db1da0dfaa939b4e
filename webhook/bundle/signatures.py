"""Sign bundles with a key, and verify their signatures, in the two formats of cosign.

1. Simple signing, which `gpugate bundle push` writes: a payload that names the digest, at the tag `sha256-HEX.sig`. Source: cosign
   v3.1.3 `specs/SIGNATURE_SPEC.md`.
2. A Sigstore bundle that refers to the manifest, which cosign 3 writes: a DSSE envelope around an in-toto statement. Sources:
   `sigstore_bundle.proto` v0.3, DSSE v1.0.2 (pre-authentication encoding), and what cosign v3.1.3 writes.

Keys are ECDSA P-256, as `cosign generate-key-pair` makes them. Transparency logs and certificates are not evaluated.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.bundle.artifact import Descriptor, ImageManifest, decode_manifest
from gpugate.webhook.bundle.reference import digest_of, is_digest
from gpugate.webhook.bundle.registry import MANIFEST, RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.bundle.reference import Reference
    from gpugate.webhook.bundle.registry import Registry

_SIMPLE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIMPLE_KIND: Final = "cosign container image signature"
_SIGNATURE: Final = "dev.cosignproject.cosign/signature"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_SIGSTORE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_IN_TOTO: Final = "application/vnd.in-toto+json"
_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_SIGN: Final = "https://sigstore.dev/cosign/sign/v1"
_MOST_SIGNATURES: Final = 32
_MOST_BLOB: Final = 1 << 17
_T = TypeVar("_T")


class SignatureError(GpugateError):
    """A bundle is not signed by the key, or a key is invalid; the text says which."""


class _Image(msgspec.Struct):
    digest: str = msgspec.field(name="docker-manifest-digest")


class _Critical(msgspec.Struct):
    image: _Image
    type: str


class _Payload(msgspec.Struct):
    critical: _Critical


class _Signed(msgspec.Struct):
    sig: str


class _Envelope(msgspec.Struct, rename="camel"):
    payload: str
    payload_type: str
    signatures: list[_Signed]


class _SigstoreBundle(msgspec.Struct, rename="camel"):
    dsse_envelope: _Envelope


class _Subject(msgspec.Struct):
    digest: dict[str, str]


class _Statement(msgspec.Struct, rename="camel"):
    kind: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")
    subject: list[_Subject]


class _Index(msgspec.Struct):
    manifests: list[Descriptor] = []


class PublicKey:
    """The key that verifies signatures.

    Args:
        pem: the key, as `cosign.pub` has it.
        name: what the key is called in messages.

    Raises:
        SignatureError: it is not an ECDSA P-256 public key in PEM.
    """

    def __init__(self, pem: bytes, name: str) -> None:
        if b"PRIVATE KEY-----" in pem:
            raise SignatureError(f"{name}: a private key, which verifying does not need: name the public key")
        try:
            key = serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            raise SignatureError(f"{name}: not a public key in PEM: name the file `cosign.pub`") from None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise SignatureError(
                f"{name}: unsupported kind of key: use ECDSA P-256, as `cosign generate-key-pair` does"
            )
        self._key = key
        self.name = name

    @property
    def fingerprint(self) -> str:
        """The SHA-256 digest of the key in DER."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return digest_of(self._key.public_bytes(serialization.Encoding.DER, form))

    def has_signed(self, data: bytes, signature: str) -> bool:
        """Tell whether a signature in base64 is that of the key."""
        return _is_signature(self._key, data, signature)


class PrivateKey:
    """The key that signs.

    Args:
        pem: an ECDSA P-256 key in PEM (PKCS#8).
        password: its password; None if it has none.
        name: what the key is called in messages.

    Raises:
        SignatureError: the key is invalid, or the password is wrong.
    """

    def __init__(self, pem: bytes, password: bytes | None, name: str) -> None:
        if b"ENCRYPTED SIGSTORE PRIVATE KEY" in pem or b"ENCRYPTED COSIGN PRIVATE KEY" in pem:
            raise SignatureError(
                f"{name}: encrypted by cosign, which only cosign can read: push without --sign-key, then run "
                f"`cosign sign --key {name} REFERENCE`"
            )
        try:
            key = serialization.load_pem_private_key(pem, password)
        except TypeError:
            has = "the key has a password" if password is None else "the key has no password"
            raise SignatureError(f"{name}: {has}: set or unset GPUGATE_SIGN_PASSWORD") from None
        except (ValueError, UnsupportedAlgorithm):
            raise SignatureError(f"{name}: not a private key in PEM, or the password is wrong") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise SignatureError(f"{name}: unsupported kind of key: use ECDSA P-256")
        self._key = key

    def has_signed(self, data: bytes, signature: str) -> bool:
        """Tell whether a signature in base64 is that of the key."""
        return _is_signature(self._key.public_key(), data, signature)

    def sign(self, data: bytes) -> str:
        """Return the signature in base64."""
        return base64.b64encode(self._key.sign(data, ec.ECDSA(hashes.SHA256()))).decode()


def _is_signature(key: ec.EllipticCurvePublicKey, data: bytes, signature: str) -> bool:
    try:
        key.verify(base64.b64decode(signature, validate=True), data, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def sign(registry: Registry, reference: Reference, digest: str, key: PrivateKey) -> None:
    """Write a signature of a manifest to its registry, beside those that it has, unless the key has signed it.

    Raises:
        RegistryError: the registry refuses it.
    """
    payload = msgspec.json.encode(
        {
            "critical": {
                "identity": {"docker-reference": reference.name},
                "image": {"docker-manifest-digest": digest},
                "type": _SIMPLE_KIND,
            },
            "optional": None,
        }
    )
    tag = _tag(digest)
    earlier: list[Descriptor] = []
    try:
        earlier = decode_manifest(registry.manifest(tag).data, f"{reference.name}:{tag}").layers
    except RegistryError as error:
        if not error.is_missing:
            raise
    of_key = (layer for layer in earlier if layer.digest == digest_of(payload))
    if any(key.has_signed(payload, layer.annotations.get(_SIGNATURE, "")) for layer in of_key):
        return
    blob = registry.push_blob(payload)
    layers = [*earlier, Descriptor(_SIMPLE, blob, len(payload), {_SIGNATURE: key.sign(payload)})]
    rootfs = {"type": "layers", "diff_ids": [layer.digest for layer in layers]}
    config = msgspec.json.encode({"architecture": "", "os": "", "config": {}, "rootfs": rootfs})
    manifest = ImageManifest(
        schema_version=2,
        media_type=MANIFEST,
        config=Descriptor(_CONFIG, registry.push_blob(config), len(config)),
        layers=layers,
    )
    registry.push_manifest(tag, msgspec.json.encode(manifest))


def verify(registry: Registry, reference: Reference, digest: str, key: PublicKey) -> None:
    """Verify that a key has signed a manifest, in one of the two formats.

    Raises:
        RegistryError: the registry has no valid answer.
        SignatureError: there is no signature, or none is by the key and of this digest.
    """
    count = 0
    others: set[str] = set()
    for signed in _signatures(registry, reference, digest, key):
        if signed == digest:
            return
        count += 1
        others |= {signed} if signed else set()
    artifact = reference.with_digest(digest)
    if others:
        raise SignatureError(f"{artifact}: the signature by {key.name} is of another digest, {min(others)}")
    if count:
        raise SignatureError(f"{artifact}: no valid signature by {key.name} ({count} by other keys, or damaged)")
    raise SignatureError(
        f"{artifact}: not signed: sign it with `gpugate bundle push --sign-key` or `cosign sign --key`"
    )


def _signatures(registry: Registry, reference: Reference, digest: str, key: PublicKey) -> Iterator[str]:
    """Yield for each signature the digest that the key has signed; empty if the key has not made it."""
    try:
        tag = _tag(digest)
        manifest = decode_manifest(registry.manifest(tag).data, f"{reference.name}:{tag}")
    except RegistryError as error:
        if not error.is_missing:
            raise
    else:
        for layer in manifest.layers[-_MOST_SIGNATURES:]:
            if layer.media_type == _SIMPLE and is_digest(layer.digest) and layer.size >= 0:
                payload = registry.blob(layer.digest, layer.size, _MOST_BLOB)
                yield _simple(payload, layer.annotations.get(_SIGNATURE, ""), key)
    index = registry.referrers(digest)
    found = _decoded(index, _Index) if index is not None else None
    described = [entry for entry in (found.manifests if found else ()) if entry.artifact_type == _SIGSTORE]
    for entry in described[-_MOST_SIGNATURES:]:
        if not is_digest(entry.digest):
            continue
        manifest = decode_manifest(registry.manifest(entry.digest).data, f"{reference.name}@{entry.digest}")
        for layer in manifest.layers[:1]:
            if layer.media_type == _SIGSTORE and is_digest(layer.digest) and layer.size >= 0:
                yield _sigstore(registry.blob(layer.digest, layer.size, _MOST_BLOB), key)


def _tag(digest: str) -> str:
    return f"{digest.replace(':', '-')}.sig"


def _simple(payload: bytes, signature: str, key: PublicKey) -> str:
    if not key.has_signed(payload, signature):
        return ""
    content = _decoded(payload, _Payload)
    return content.critical.image.digest if content and content.critical.type == _SIMPLE_KIND else ""


def _sigstore(data: bytes, key: PublicKey) -> str:
    bundle = _decoded(data, _SigstoreBundle)
    if bundle is None:
        return ""
    envelope = bundle.dsse_envelope
    try:
        payload = base64.b64decode(envelope.payload, validate=True)
    except (binascii.Error, ValueError):
        return ""
    kind = envelope.payload_type.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    if envelope.payload_type != _IN_TOTO or not any(key.has_signed(signed, one.sig) for one in envelope.signatures[:4]):
        return ""
    statement = _decoded(payload, _Statement)
    # Other statements of the same key, such as on provenance, do not approve the content.
    if statement is None or statement.kind != _STATEMENT or statement.predicate_type != _SIGN:
        return ""
    if len(statement.subject) != 1:
        return ""
    return f"sha256:{statement.subject[0].digest.get('sha256', '')}"


def _decoded(data: bytes, kind: type[_T]) -> _T | None:
    try:
        return read_json(msgspec.json.Decoder(kind).decode, data)
    except (msgspec.DecodeError, UnicodeError):
        return None
