"""What the tests of a run share: the configuration where a test names none, and everything that is made only once."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, ConfigError, PolicyConfig, parse_config
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.manifests.policy_file import PolicyFileError, load_policy_file
from gpugate.webhook.policy_tests.object_files import ObjectFiles

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.manifests.case_format import Definition
    from gpugate.webhook.policy_tests.cases import Case


class Setup:
    """The surroundings of tests.

    Attributes:
        config: the configuration of a test that names none; shipped modes by default.
        today: the day, for exemptions, where a test names none; the real one (UTC) by default.
        files: the files that tests name.
    """

    def __init__(self, config: PolicyConfig | None = None, today: dt.date | None = None) -> None:
        self.config = config or PolicyConfig()
        self.today = today or dt.datetime.now(dt.UTC).date()
        self.files = ObjectFiles()
        self._policy_files: dict[str, PolicyConfig] = {}
        self._bound: dict[bytes, tuple[Ruleset, Needs]] = {}

    def bound(self, config: PolicyConfig) -> tuple[Ruleset, Needs]:
        """Return the rules of a configuration, and what they look up.

        Raises:
            ConfigError: the configuration is refused.
        """
        key = msgspec.json.encode(config)
        if key not in self._bound:
            ruleset = bind(CATALOG, config)
            self._bound[key] = (ruleset, Needs(ruleset.rules))
        return self._bound[key]

    def of(self, case: Case, definition: Definition) -> tuple[Ruleset, Needs]:
        """Return the rules by which a test is judged, and what they look up.

        Raises:
            CaseFileError: the configuration that the test names is refused or cannot be read.
        """
        config = self._config(case, definition)
        target = definition.target
        if target is not None:
            given = {name: value for name, value in msgspec.structs.asdict(target).items() if value is not None}
            versions = msgspec.structs.replace(config.target, **given)
            config = msgspec.structs.replace(config, target=versions)
        try:
            return self.bound(config)
        except ConfigError as error:
            raise case.error(("config", *error.path), str(error)) from None

    def _config(self, case: Case, definition: Definition) -> PolicyConfig:
        if definition.config is not None and definition.policy_file is not None:
            raise case.error(("config",), "the test has both `config` and `policy_file`: leave one of them")
        if definition.config is not None:
            try:
                return parse_config({"apiVersion": API_VERSION, "kind": KIND, **definition.config})
            except ConfigError as error:
                raise case.error(("config", *error.path), str(error)) from None
        if definition.policy_file is None:
            return self.config
        name = case.beside(("policy_file",), definition.policy_file)
        try:
            if name not in self._policy_files:
                self._policy_files[name] = load_policy_file(Path(name), self._checked)
            return self._policy_files[name]
        except PolicyFileError as error:
            raise case.error(("policy_file",), str(error)) from None

    def _checked(self, config: PolicyConfig) -> PolicyConfig:
        """Refuse a configuration that cannot be bound while its place in the file is at hand."""
        self.bound(config)
        return config
