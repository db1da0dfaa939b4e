from __future__ import annotations

import pytest
from load_generator import length_of


@pytest.mark.parametrize(
    ("answer", "length"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 40, id="whole"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n", 46, id="body-still-to-come"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-len", 0, id="half-a-head"),
        pytest.param(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n", -1, id="not-200"),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", -1, id="no-length"),
        pytest.param(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n", 43, id="created"),
        pytest.param(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 0, id="chunks-to-come"),
        pytest.param(
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 64, id="all-chunks"
        ),
    ],
)
def test_the_length_of_an_answer(answer: bytes, length: int) -> None:
    assert length_of(answer) == length
