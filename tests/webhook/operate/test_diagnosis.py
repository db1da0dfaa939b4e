from __future__ import annotations

import pytest

from gpugate.webhook.operate.reachability import explain_failure

_POST = 'failed to call webhook: Post "https://gpugate.gpugate.svc:443/validate?timeout=3s": '
# Recorded from kube-apiserver v1.36.3, except those that need a cluster with a Pod network.
MESSAGES = {
    f"{_POST}dial tcp 127.0.0.1:41517: connect: connection refused": "no process listens",
    f"{_POST}tls: failed to verify certificate: x509: certificate signed by unknown authority": "no CA in the caBundle signed",
    f"{_POST}tls: failed to verify certificate: x509: certificate is valid for a, not b": "not valid for the name",
    f"{_POST}tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time": "not valid now",
    f"{_POST}tls: failed to verify certificate: x509: something new": "refuses the certificate",
    "could not get REST client: unable to load root certificates: failed to parse certificate: x509: malformed certificate": (
        "contains no certificates"
    ),
    f"{_POST}remote error: tls: certificate required": "requires a client certificate",
    f"{_POST}http: server gave HTTP response to HTTPS client": "does not use TLS",
    f'{_POST}service "gpugate" not found': "the Service does not exist",
    f'{_POST}no endpoints available for service "gpugate"': "no Pod of the Service is ready",
    f"{_POST}dial tcp: lookup gpugate.invalid: no such host": "does not resolve",
    f"{_POST}dial tcp 10.1.0.7:8443: connect: no route to host": "no network route",
    f"{_POST}context deadline exceeded": "did not answer in time",
    f"{_POST}dial tcp 10.1.0.7:8443: i/o timeout": "did not answer in time",
    f"{_POST}proxy error from 127.0.0.1:9443 while dialing 10.1.0.7:8443, code 502: 502 Bad Gateway": "the tunnel",
    "failed to call webhook: the server could not find the requested resource": "is not gpugate",
    "failed to call webhook: the server does not allow this method on the requested resource": "is not gpugate",
    "failed to call webhook: the server has received too many requests and has asked us to try again later": "overloaded",
    f"{_POST}EOF": "closed without a response",
    f"{_POST}read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer": "closed without a response",
    "failed to call webhook: something new": "could not call the webhook",
}


@pytest.mark.parametrize(("message", "what"), MESSAGES.items(), ids=MESSAGES.values())
def test_messages_of_the_api_server_are_explained(message: str, what: str) -> None:
    found = explain_failure(f'Internal error occurred: failed calling webhook "probe.validate.gpugate.dev": {message}')

    assert what in found.problem
    assert found.remedy
    assert found.message == message.removeprefix("failed to call webhook: ")


@pytest.mark.parametrize(("message", "what"), MESSAGES.items(), ids=MESSAGES.values())
@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:40561/validate", "https://EOF.x509.example:405/not found?timeout=3s"]
)
def test_the_address_of_the_webhook_does_not_choose_the_explanation(url: str, message: str, what: str) -> None:
    found = explain_failure(message.replace(_POST, f'failed to call webhook: Post "{url}": '))

    assert what in found.problem
