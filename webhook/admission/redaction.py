"""Remove from objects what may be secret and what policies do not decide by, before a record of them leaves the process.

Everything is removed unless one of these rules keeps it:

- Values that the API server or a controller interprets, such as names, labels, images, quantities and paths (`_MAPS`, `_TEXTS`, `_TREES`),
  numbers and booleans. Users in URLs, queries of paths and the known shapes of credentials are removed even there.
- Of other texts the words that policies know (`Vocabulary`), words of kept values of the same object, short numbers and punctuation.
  So a policy still reads the options of a command.
- Of the value of an environment variable what policies read, by the name of the variable.
- The keys of annotations, and the values of those that policies name.

What is removed becomes `redacted`, so that a policy still sees that there is a value. Managed fields are left out.
"""

from __future__ import annotations

import dis
import pkgutil
import re
from functools import lru_cache
from importlib.machinery import FileFinder, SourceFileLoader
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from gpugate import policies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# In lower case, because policies read programs and models by patterns of lower-case words.
REDACTED: Final = "redacted"
Object = dict[str, Any]  # Any: the JSON edge

# Maps of names to names or quantities.
_MAPS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "tags", "allocatable", "capacity", "finalizers"})
# Texts, and lists of texts, that Kubernetes, Karpenter, KEDA, DRA or a job controller interprets.
_TEXTS: Final = frozenset(
    {
        *("apiVersion", "kind", "name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp"),
        *("image", "nodeName", "schedulerName", "mountPath", "runtimeClassName", "priorityClassName", "restartPolicy"),
        *("serviceAccountName", "containerName", "claimName", "sizeLimit", "medium", "hostname", "fieldPath", "resource"),
        *("storageClassName", "volumeName", "provisioner", "accessModes", "driver", "completionMode", "schedule"),
        *("timeZone", "type", "expireAfter", "price", "terminationGracePeriod", "amiFamily", "role", "instanceProfile"),
        *("instanceStorePolicy", "metricType", "query", "expr", "metricName", "deviceClassName", "expression"),
        *("extendedResourceName", "path", "deletionTimestamp"),
    }
)  # fmt: skip
# Objects and lists in which all texts are kept, except those of `_FREE` and of keys that are named like a secret.
_TREES: Final = frozenset(
    {
        *("ownerReferences", "selector", "podSelector", "labelSelector", "matchExpressions", "matchLabelExpressions"),
        *("resources", "tolerations", "affinity", "nodeAffinity", "topologySpreadConstraints", "resourceClaims", "hostPath"),
        *("capabilities", "schedulingGates", "ports", "strategy", "updateStrategy", "allowedTopologies", "requirements"),
        *("taints", "startupTaints", "disruption", "limits", "nodeClassRef", "amiSelectorTerms", "blockDeviceMappings"),
        *("subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms", "metadataOptions"),
        *("kubelet", "scaleTargetRef", "jobTargetRef", "fallback", "advanced", "devices", "pools", "attributes"),
    }
)  # fmt: skip
_FREE: Final = frozenset(
    {"args", "command", "config", "containers", "data", "env", "envVars", "parameters", "template", "userData"}
)
_LEFT_OUT: Final = frozenset({"managedFields"})
_NAMED_KEYS: Final = frozenset({"key", "topologyKey"})
# A text below a key with one of these words is removed as a whole, and so is the value of such an option or variable.
_PRIVATE_WORDS: Final = (
    "apikey|auth|authorization|bearer|connection|cookie|creds?|credentials?|dsn|jwt|key|passphrase|passwd|password|pat|private|pw|pwd"
    "|sas|secret|session|signature|token"
)
_PRIVATE_NAME: Final = re.compile(
    rf"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:{_PRIVATE_WORDS})(?:$|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))"
)
_URL_USER: Final = re.compile(r"://[^/\s\"'@]*@")
# Credentials of AWS, GitHub, GitLab, Slack, Hugging Face, OpenAI and Google, JSON Web Tokens and PEM.
_SHAPES: Final = re.compile(
    r"(?:A[KS]IA[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}|hf_\w{20,}"
    r"|sk-[\w-]{20,}|AIza[\w-]{30,}|eyJ[\w.-]{16,})|-----BEGIN [\s\S]*"
)
# Every match of the two contains one of these.
_SIGNS: Final = re.compile(r"://|A[KS]IA|gh[pousr]_|github_pat_|glpat-|xox|hf_|sk-|AIza|eyJ|-----BEGIN")
_WORD: Final = re.compile(r"[0-9A-Za-z]+|[^\x00-\x7f]+")
# A number, possibly with an exponent or a unit, such as 3600, 5e1, 70B, 30s or 16Gi.
_NUMBER: Final = re.compile(r"[0-9]{1,6}(?:[A-Za-z]i?)?|[0-9]{1,2}e[0-9]{1,2}")
# The number at the end of a word, such as in python3.
_VERSION: Final = re.compile(r"[0-9]{1,3}$")
# Words that policies read by a pattern or as the beginning of a word, which their code contains only in parts.
_FORMS: Final = frozenset(
    {
        *("finetune", "finetuning", "tune", "tuning", "pretrain", "pretraining", "pretrainer", "retrain", "retraining", "retrainer"),
        *("train", "training", "trainer", "qlora", "bench", "benchmark", "benchmarks", "benchmarking", "infer", "inference"),
        *("serve", "server", "serving", "generate", "generation", "eval", "evaluate", "evaluation", "predict", "prediction"),
        *("python", "http", "https", "nccl", "rccl", "test", "tests", "vectoradd", "hpl", "xhpl", "hpcg", "xhpcg"),
        *("write", "read", "send", "bw", "lat", "dcgmproftester"),
    }
)  # fmt: skip
# The beginnings of annotations that policies read; the rest names a plugin.
_ANNOTATIONS: Final = ("cdi.k8s.io/",)
# It contains the whole object. Policies name it to leave it out.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# What separates an option or a variable from its value, in texts such as commands, URLs and JSON.
_PARTS: Final = re.compile(r"([\s,;&|?(){}]+)")
_ASSIGNED: Final = re.compile(r"""[=:]""")
# What stands between the name of a header and its value.
_HEADER_SCHEMES: Final = frozenset({"basic", "bearer", "token"})
_LONGEST_NAME: Final = 64
_ENVIRONMENT: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_URL_SCHEME: Final = re.compile(r"[a-z][a-z0-9+]{0,15}://")
_REFERENCE: Final = re.compile(r"\$(?:\(\w{1,64}\)|\{\w{1,64}\}|\w{1,64})")


class Vocabulary:
    """The words that policies know, in lower case, and the names of the annotations and variables that they read.

    Some are in the code of the library, others in `texts`: policy files, and policies outside the library.
    """

    def __init__(self, library: frozenset[str], texts: Iterable[str] = ()) -> None:
        """Create a vocabulary of the texts of the library (`library_texts`) and further ones."""
        names = {*library, *(name.strip("\"'`,:[]{}()") for text in texts for name in text.split())}
        self._library = library
        self._annotations = frozenset(name for name in names if "/" in name) - {_LAST_APPLIED}
        self.variables = frozenset(
            name for name in names if _ENVIRONMENT.fullmatch(name) and not _PRIVATE_NAME.search(name)
        )
        self._words = _FORMS | {word.lower() for text in (*library, *texts) for word in _WORD.findall(text)}

    def extended(self, texts: Iterable[str]) -> Vocabulary:
        """Return the words of the library and of other texts."""
        return Vocabulary(self._library, tuple(texts))

    def knows(self, word: str) -> bool:
        """Tell whether policies know a word, without the number at its end."""
        word = word.lower()
        return word in self._words or _VERSION.sub("", word) in self._words

    def reads(self, annotation: str) -> bool:
        """Tell whether policies name an annotation."""
        return annotation in self._annotations or annotation.startswith(_ANNOTATIONS)


_IMPORT_NAME: Final = dis.opmap["IMPORT_NAME"]


def library_texts() -> frozenset[str]:
    """Return the texts without white space in the code of the library, which leaves out messages; takes 0.1 s.

    Modules are read but not imported, so that the texts do not depend on what a command has imported.
    """
    specs = (
        module.module_finder.find_spec(module.name)
        for module in pkgutil.walk_packages(policies.__path__, f"{policies.__name__}.")
        if isinstance(module.module_finder, FileFinder)
    )
    codes = (spec.loader.get_code(spec.name) for spec in specs if spec and isinstance(spec.loader, SourceFileLoader))
    return frozenset(text for code in codes if code for text in _constants(code))


def _constants(code: CodeType) -> Iterator[str]:
    imported = tuple(_imported(code))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant)
        elif not any(constant is names for names in imported):
            yield from (text for text in _texts_in(constant) if not any(map(str.isspace, text)))


def _imported(code: CodeType) -> Iterator[object]:
    """Yield the constants that hold the names of `from ... import`."""
    if _IMPORT_NAME in code.co_code[::2]:
        before: object = None
        for instruction in dis.get_instructions(code):
            if instruction.opcode == _IMPORT_NAME:
                yield before
            before = instruction.argval


def _texts_in(constant: object) -> Iterator[str]:
    if isinstance(constant, str):
        yield constant
    elif isinstance(constant, tuple | frozenset):
        for member in constant:
            yield from _texts_in(member)


def redacted(obj: Mapping[str, Any], vocabulary: Vocabulary) -> Object:
    """Return an object without what may be secret; the argument is unchanged. Linear in the size of the object."""
    own: set[str] = set()
    _add_kept_words(obj, own)
    redaction = _Redaction(vocabulary, own)
    return {key: redaction.member(key, value) for key, value in obj.items()}


def _add_kept_words(value: Any, words: set[str], *, verbatim: bool = False) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            below = key in _MAPS or key in _TREES or (verbatim and key not in _FREE)
            if isinstance(member, (dict, list)):
                _add_kept_words(member, words, verbatim=below)
            elif isinstance(member, str) and (below or key in _TEXTS) and not _is_private(key):
                words.update(_WORD.findall(_kept_part(key, member)))
    elif isinstance(value, list):
        for element in value:
            if isinstance(element, (dict, list)):
                _add_kept_words(element, words, verbatim=verbatim)


class _Redaction:
    """Redacts the members of one object; `own` are the words of its kept values."""

    def __init__(self, vocabulary: Vocabulary, own: set[str]) -> None:
        self._vocabulary = vocabulary
        self._own = own

    def member(self, key: str, value: Any, *, verbatim: bool = False) -> Any:
        """Redact the value of a key; `verbatim` tells whether texts around it are kept."""
        if value is None or isinstance(value, (int, float)):
            return value
        if key in _MAPS:
            return _without_credentials(value)
        if isinstance(value, dict) and key.lower().endswith("annotations"):
            reads = self._vocabulary.reads
            return {name: _without_credentials(text) if reads(name) else _hidden(text) for name, text in value.items()}
        verbatim = key in _TREES or (verbatim and key not in _FREE)
        if _is_private(key) and not (verbatim and key in _NAMED_KEYS):
            return _hidden(value)
        if key in _TEXTS and (isinstance(value, str) or _are_texts(value)):
            return _kept_part(key, value) if isinstance(value, str) else _without_credentials(value)
        return self._value(value, verbatim=verbatim)

    def _value(self, value: Any, *, verbatim: bool) -> Any:
        if isinstance(value, dict):
            name = value.get("name")
            result = {
                key: self.member(key, member, verbatim=verbatim)
                for key, member in value.items()
                if key not in _LEFT_OUT
            }
            if isinstance(name, str) and isinstance(value.get("value"), str):
                result["value"] = self._variable(name, value["value"])
            return result
        if isinstance(value, list):
            if _are_texts(value):
                # The words of a command: the value of an option follows it.
                return _without_credentials(value) if verbatim else self._texts(value)
            return [self._value(element, verbatim=verbatim) for element in value]
        if isinstance(value, str):
            return _without_credentials_of(value) if verbatim else self._texts([value])[0]
        return value

    def _variable(self, name: str, value: str) -> str:
        """Redact the value of an environment variable or a parameter."""
        if not value or name in self._vocabulary.variables:
            return _without_credentials_of(value)
        knows = self._vocabulary.knows
        references = (
            reference
            for reference in _REFERENCE.findall(value)
            if all(knows(word) for word in reference.strip("$(){}").split("_"))
        )
        schemes = (scheme for scheme in _URL_SCHEME.findall(value) if knows(scheme[:-3]))
        return " ".join(dict.fromkeys((REDACTED, *schemes, *references)))

    def _texts(self, texts: list[str]) -> list[str]:
        """Redact consecutive texts, of which one may be the value of the option before it."""
        results: list[str] = []
        # What is still to remove: nothing (None), the next word (empty), or everything up to a quote.
        pending: str | None = None
        for text in texts:
            parts: list[str] = []
            for part in _PARTS.split(_without_credentials_of(text)):
                if not part or _PARTS.fullmatch(part):
                    parts.append(part)
                elif pending is None:
                    redacted_part, pending = self._part(part)
                    parts.append(redacted_part)
                else:
                    parts.append(REDACTED)
                    pending = _pending(part) if not pending else None if part.endswith(pending) else pending
            results.append("".join(parts))
            # A quote ends with its text at the latest.
            pending = "" if pending == "" else None
        return results

    def _part(self, part: str) -> tuple[str, str | None]:
        """Redact a word of a text; return it, and what is to remove after it as in `_texts`."""
        assigned = _ASSIGNED.search(part)
        name = part[: assigned.start()] if assigned else part
        if not _PRIVATE_NAME.search(name[-_LONGEST_NAME:]):
            return self._words(part), None
        value = part[assigned.end() :] if assigned else ""
        if value and assigned:
            return f"{self._words(name)}{assigned[0]}{REDACTED}", _pending(value)
        return self._words(part), "" if assigned or part.startswith("-") else None

    def _words(self, text: str) -> str:
        return _WORD.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        if word in self._own or self._vocabulary.knows(word) or _NUMBER.fullmatch(word):
            return word
        return REDACTED


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def _pending(value: str) -> str | None:
    """Return what is to remove after a part of a removed value, as in `_Redaction._texts`."""
    if value.strip("\"'").lower() in _HEADER_SCHEMES:
        return ""
    quote = value[0]
    return quote if quote in "\"'" and not (len(value) > 1 and value.endswith(quote)) else None


@lru_cache(4096)
def _is_private_end(name: str) -> bool:
    return _PRIVATE_NAME.search(name) is not None


def _is_private(key: str) -> bool:
    """Tell whether a key is named like a secret; its end decides, so that the memory of keys is bounded."""
    return _is_private_end(key[-_LONGEST_NAME:])


def _kept_part(key: str, text: str) -> str:
    """Return what stays of a kept text: of the path of a probe not its query, which may contain a token."""
    path, mark, query = text.partition("?") if key == "path" else (text, "", "")
    return _without_credentials_of(path) + (f"{mark}{REDACTED}" if query else mark)


def _without_credentials(value: Any) -> Any:
    if isinstance(value, str):
        return _without_credentials_of(value)
    if isinstance(value, dict):
        return {key: _without_credentials(member) for key, member in value.items()}
    return [_without_credentials(element) for element in value] if isinstance(value, list) else value


def _without_credentials_of(text: str) -> str:
    if _SIGNS.search(text) is None:
        return text
    return _SHAPES.sub(REDACTED, _URL_USER.sub(f"://{REDACTED}@", text))


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return REDACTED if value else value
    if isinstance(value, dict):
        return {key: _hidden(member) for key, member in value.items()}
    return [_hidden(element) for element in value] if isinstance(value, list) else value
