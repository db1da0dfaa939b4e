from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from gpugate.webhook.manifests.yaml_reader import read

# What stands behind `value: `, and what kubectl v1.32.4 makes of it.
SCALARS: list[tuple[str, Any]] = [
    *[(text, True) for text in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")],
    *[(text, False) for text in ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")],
    *[(text, None) for text in ("~", "null", "Null", "NULL", "")],
    *[(text, text) for text in ("yEs", "tRUE", "oFF", "nULL", "=", "a", "1e", "0x", "+", "_1", "0b12", "0o8", "1e3.4")],
    *[(text, text) for text in ("2024-01-01", "2024-13-45", "2001-12-14t21:59:43.10-05:00", "12:30:45", "190:20:30")],
    ("0644", 420),
    ("0o644", 420),
    ("0o14", 12),
    ("014", 12),
    ("08", 8),
    ("0x1F", 31),
    ("0x_1f", 31),
    ("-0x1F", -31),
    ("0b11", 3),
    ("+0b1", 1),
    ("1_000", 1000),
    ("+1", 1),
    ("-0", 0),
    ("1e3", 1000),
    ("1E+3", 1000),
    ("0.1e1", 1),
    ("1.0", 1),
    ("1.", 1),
    (".5", 0.5),
    ("+.5", 0.5),
    ("1_0.5", 10.5),
    (".5_0e1_0", 5000000000),
    ("._5", "._5"),
    ("-.5_", -0.5),
    ("1e-7", 1e-7),
    ("1e21", 1e21),
    ("9223372036854775807", 9223372036854775807),
    ("9223372036854775808", 9223372036854775808.0),
    ("-9223372036854775809", -9223372036854775808.0),
    ("123456789012345678901234567890", 1.2345678901234568e29),
    ("1e9999", "1e9999"),
    ('"8"', "8"),
    ("'yes'", "yes"),
    ("! 5", "5"),
    ("!!str 5", "5"),
    ('!!int "5"', 5),
    ("!!float 5", 5),
    ('!!bool "yes"', True),
    ('!!null ""', None),
    ("4.205948710432355e+16", 42059487104323550),
    ("!!binary aGk=", "hi"),
    ("!!binary 4oLi", "\ufffd\ufffd\ufffd"),
    ("!!timestamp 2024-01-01", "2024-01-01"),
    ("!unknown bar", "bar"),
    ("!!python/object/apply:os.system [x]", ["x"]),
    ("!!set {a, b}", {"a": None, "b": None}),
    ("0 9 * * 1-5", "0 9 * * 1-5"),
]
# What stands as a mapping, and the keys that kubectl makes of it.
KEYS: list[tuple[str, Any]] = [
    ("{on: 1, no: 2}", {"true": 1, "false": 2}),
    ("{y: 1, n: 2}", {"true": 1, "false": 2}),
    ("{10: a, 0x10: b, 010: c}", {"10": "a", "16": "b", "8": "c"}),
    ("{1.0: a, 1.5: b, 1.23456789: c}", {"1": "a", "1.5": "b", "1.2345679": "c"}),
    ("{1e30: a, 1234567.5: b, 0.00001: c}", {"1e+30": "a", "1.2345675e+06": "b", "1e-05": "c"}),
    ("{1e6: a, !!float 7: b, -0.0: c, 1e-60: d}", {"1e+06": "a", "7": "b", "-0": "c", "0": "d"}),
    ("{.inf: a, -1e300: b, .nan: c}", {".inf": "a", "-.inf": "b", ".nan": "c"}),
    ("{? &a 1e6 : *a}", {"1e+06": 1000000}),
    ('{"on": a}', {"on": "a"}),
    ('{"<<": {a: 1}}', {"<<": {"a": 1}}),
    ("{<<: {a: 1}, b: 2}", {"a": 1, "b": 2}),
    ("{!!merge <<: {a: 1}, b: 2}", {"a": 1, "b": 2}),
    ("{a: 1, <<: {a: 2, c: 3}}", {"a": 2, "c": 3}),
    ("{<<: [{a: 1}, {a: 2, b: 3}], c: 4}", {"a": 1, "b": 3, "c": 4}),
    ("{<<: {a: 1}, a: 2}", {"a": 2}),
]
CASES = [*SCALARS, *KEYS]

values = pytest.mark.parametrize(("text", "meaning"), CASES, ids=[text or "(nothing)" for text, _ in CASES])


@values
def test_a_value_means_what_kubectl_makes_of_it(text: str, meaning: Any) -> None:
    value = read(f"value: {text}\n").value

    assert isinstance(value, dict)
    assert (value["value"], type(value["value"])) == (meaning, type(meaning))


def test_of_keys_that_json_makes_one_the_last_is_kept() -> None:
    # kubectl keeps any: it goes through a Go map, whose order is random.
    assert read('{"1": a, 1: b}').value == {"1": "b"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which is the judge here, is not installed")
def test_kubectl_agrees_with_the_tables() -> None:
    spec = "".join(f"    c{index}: {text}\n" for index, (text, _) in enumerate(CASES))
    manifest = f"apiVersion: example.org/v1\nkind: Example\nmetadata:\n  name: a\nspec:\n{spec}"
    command = ["kubectl", "label", "--local", "-f", "-", "a=b", "-o", "json"]
    printed = subprocess.run(command, input=manifest, capture_output=True, text=True, check=True).stdout  # noqa: S603 -- fixed words

    meanings = {f"c{index}": meaning for index, (_, meaning) in enumerate(CASES)}
    assert json.loads(printed, parse_int=_as_the_api_server)["spec"] == meanings


def _as_the_api_server(digits: str) -> int | float:
    return int(digits) if -(2**63) <= int(digits) < 2**63 else float(digits)


REFUSED = {
    "not a number": (".nan", ".nan is not a number in JSON"),
    "infinite": ("-.inf", "-.inf is not a number in JSON"),
    "beyond all range": ("9" * 5000, "a number of 5000 digits is out of range"),
    "not an integer": ("!!int foo", "is tagged !!int and is none"),
    "a fraction": ("!!int 1.0", "is tagged !!int and is none"),
    "not base64": ("!!binary a", "is tagged !!binary and is not base64"),
    "not even ASCII": ('!!binary "é"', "is tagged !!binary and is not base64"),
    "a key beyond 63 bits": ("{9223372036854775808: 1}", "a key is the number 9223372036854775808"),
    "null key": ("{~: 1}", "a key is null"),
    "list as a key": ("{[a]: 1}", "a key is an object or a list"),
    "merge of a number": ("{<<: 3}", "`<<` merges objects only"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_json_cannot_say_is_refused(text: str, message: str, read_error: Any) -> None:
    assert read_error(f"value: {text}\n").message == message
