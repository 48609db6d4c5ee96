"""Parses YAML files and the text of `key=value` words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdc_sfm.errors import SettingsError
from pdc_sfm.paths import read_text

LARGEST_CONFIG = 1 << 20  # characters


def read_yaml(path: Path) -> Mapping[str, Any]:
    """The settings of a file, or an error that says what is wrong with it."""
    import yaml

    try:
        content = _load_yaml(read_text(path, LARGEST_CONFIG))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read settings {path}: {error}") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content or {}, Mapping):
        raise SettingsError(f"{path} must hold `key: value` lines")
    return content or {}


def _load_yaml(text: str) -> Any:
    """YAML in which only decimal numbers are numbers: 007, 0x10, 12:30 and 2026-01-01 are text, not 7, 16, 750 and a date."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):  # ten lines of them can stand for more than fits in memory
                raise yaml.YAMLError("write out what `*` stands for: settings know no aliases")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            names = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            for name, count in names.items():
                if count > 1:  # YAML would silently take the last
                    raise yaml.YAMLError(f"`{name}` stands there twice")
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith((":int", ":timestamp"))]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?(0|[1-9][0-9]*)$"), list("-0123456789"))
    return yaml.load(text, Loader)


class Word(str):
    """The text of a `key=value` word: what it means depends on the setting, and 007 may be a name."""

    def parsed(self) -> Any:
        import yaml

        try:
            value = _load_yaml(self)
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError):  # ValueError: the 31st of February
            return str(self)
        return value if isinstance(value, bool | int | float | str | list | None) else str(self)


def unquoted(word: Word) -> str:
    """A word may stand in quotes, as in YAML."""
    quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    return word.parsed() if quoted and isinstance(word.parsed(), str) else word
