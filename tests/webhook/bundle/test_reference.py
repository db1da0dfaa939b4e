from __future__ import annotations

import pytest

from gpugate.webhook.bundle.reference import InvalidReferenceError, parse_reference

DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("ghcr.io/acme/policies:v1", "ghcr.io", "acme/policies", "v1", ""),
        ("oci://ghcr.io/acme/policies:v1", "ghcr.io", "acme/policies", "v1", ""),
        (f"ghcr.io/acme/policies@{DIGEST}", "ghcr.io", "acme/policies", "", DIGEST),
        (f"ghcr.io/acme/policies:v1@{DIGEST}", "ghcr.io", "acme/policies", "v1", DIGEST),
        ("localhost/a:1", "localhost", "a", "1", ""),
        ("registry:5000/a__b/c-d.e:1", "registry:5000", "a__b/c-d.e", "1", ""),
        ("[::1]:5000/a:1", "[::1]:5000", "a", "1", ""),
    ],
)
def test_a_reference_has_parts(text: str, registry: str, repository: str, tag: str, digest: str) -> None:
    assert parse_reference(text) == (registry, repository, tag, digest)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("acme/policies:v1", "the registry is missing"),
        ("ghcr.io", "the registry is missing"),
        ("https://ghcr.io/a:1", "a URL"),
        ("ghcr.io:99999/a:1", "the registry is missing or invalid"),
        ("ghcr.io/Acme:1", "the repository is missing"),
        ("ghcr.io/a/../b:1", "the repository is missing"),
        ("ghcr.io/a:", "the tag is invalid"),
        ("ghcr.io/a:b/c", "the tag is invalid"),
        ("ghcr.io/a", "neither a tag nor a digest"),
        ("ghcr.io/a@sha256:abc", "the digest is not"),
        (f"ghcr.io/a@sha512:{'a' * 128}", "the digest is not"),
        ("user:secret@ghcr.io/a:1", "the registry is missing"),
        (f"ghcr.io/{'a' * 600}:1", "longer than 512"),
        ("ghcr.io/a:1\n", "the tag is invalid"),
    ],
)
def test_an_invalid_reference_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidReferenceError, match=reason):
        parse_reference(text)


@pytest.mark.parametrize(
    ("registry", "is_local"),
    [
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("127.9.9.9", True),
        ("[::1]:5000", True),
        ("localhost.example.com", False),
        ("10.0.0.1:5000", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_only_this_machine_is_local(registry: str, is_local: bool) -> None:  # noqa: FBT001 -- a column
    assert parse_reference(f"{registry}/a:1").is_local is is_local
