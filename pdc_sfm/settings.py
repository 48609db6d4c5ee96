"""Settings: frozen dataclasses, filled from YAML files and `key=value` words.

A setting is a field of a frozen dataclass; nested dataclasses are reached by dots (`tracks.max_error=2`). Unknown keys and
values of the wrong type are errors that name the key. Ranges are checked by the dataclass itself in `__post_init__`,
with `require`.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import logging
import re
import types
import typing
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pdc_sfm.errors import SettingsError, UnknownSettingError
from pdc_sfm.paths import read_text

if typing.TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
logger = logging.getLogger(__name__)
SPEED_ONLY = ("device", "memory", "readers", "batch", "coarse_batch", "engine", "ray", "threads")  # wherever they stand
LARGEST_CONFIG = 1 << 20  # characters
RENAMED = {  # wherever they stand; the old words work until the version after the one that renamed them
    "anchors=snap": "keypoints=flow",
    "anchors": "keypoints",
    "confidence=p_r": "confidence=probability",
    "judge_channels": "confidence_channels",
    "low_batch": "coarse_batch",
    "normalise_local": "normalize_local",
    "sharpen": "refine_keypoints",
    "weak_pairs": "min_support_ratio",
}


def require(condition: bool, message: str) -> None:
    """Refuse a value: to be called from `__post_init__` with a text that names the setting and its range."""
    if not condition:
        raise SettingsError(message)


def require_file_name(name: str, setting: str) -> None:
    """Refuse what cannot be a part of a file's name, or leads to another folder."""
    plain = name.isprintable() and "/" not in name and name not in ("", ".", "..") and len(name) <= 100
    require(plain, f"{setting}={ascii(name)[1:-1]} must be a plain name without slashes: it names files")


def load_settings(
    cls: type[T], config: Path | str | None = None, overrides: Iterable[str] = (), default: T | None = None
) -> T:
    """Build `cls` from its defaults or others, then a YAML file, then `key=value` words, each overriding the one before."""
    values: dict[str, Any] = {}
    if config is not None:
        _merge(values, _read_yaml(Path(config)))
    for word in overrides:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise SettingsError(f"'{word}' is not a setting: write key=value, for example {_example(cls)}")
        _merge(values, _nest(key.split("."), _Word(text)))
    for old in _old_words(values):
        logger.warning("setting %s is now called %s: the old word goes with the next version", old, RENAMED[old])
    return from_dict(cls, values, default=default)


def from_dict(cls: type[T], values: Mapping[str, Any], where: str = "", default: T | None = None) -> T:
    """Build the dataclass `cls` from nested dictionaries, checking every key and type. What they leave out is as in `default`."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where or cls.__name__} takes a group of settings, not {values!r}")
    values = _new_words(values)
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    names = list(fields)
    arguments = {}
    for key, value in values.items():
        name = f"{where}.{key}" if where else str(key)
        if key not in names:
            close = difflib.get_close_matches(str(key), names, n=1)
            hint = f"did you mean {close[0]}?" if close else "known: " + ", ".join(names)
            raise UnknownSettingError(name, hint)
        if dataclasses.is_dataclass(hints[key]):  # a group may have other defaults here than elsewhere
            arguments[key] = _group(value, hints[key], name, _default(fields[key], default))
        else:
            arguments[key] = _convert(value, hints[key], name)
    return cls(**arguments) if default is None else dataclasses.replace(default, **arguments)


def to_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain nested dictionaries (tuples become lists), as written to YAML, JSON and h5 attributes."""
    return json.loads(json.dumps(dataclasses.asdict(settings), default=str))


def result_settings(settings: Any) -> dict[str, Any]:
    """Those of `to_dict` that change what comes out, and so say whether a result may be taken or must be made again."""

    def chosen(values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {key: chosen(value) for key, value in values.items() if key not in SPEED_ONLY}

    return chosen(to_dict(settings))


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any], where: str = "") -> list[str]:
    """The settings that changed, as `key: stored -> wanted`, for a refusal to mix results."""
    changes, stored = [], _new_words(stored)
    if stored.get("method") != "search":
        stored.pop("view_search", None)  # of version 0.1: it changed nothing else
    for key in sorted({*stored, *wanted}, key=str):
        name = f"{where}.{key}" if where else str(key)
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changes += differences(old, new, name)
        elif old != new:
            changes.append(f"{name}: {old} -> {new}")
    return changes


def _old_words(values: Mapping[str, Any]) -> list[str]:
    """The renamed settings among these, nested ones too."""
    found = []
    for key, value in values.items():
        found += [word for word in (f"{key}={value}", key) if word in RENAMED][:1]
        found += _old_words(value) if isinstance(value, Mapping) else []
    return found


def _new_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """One group of settings with the words of today."""
    today = {}
    for key, value in values.items():
        word, equals, text = RENAMED.get(f"{key}={value}", RENAMED.get(key, str(key))).partition("=")
        today[word] = text if equals else value
    return today


def _read_yaml(path: Path) -> Mapping[str, Any]:
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


class _Word(str):
    """The text of a `key=value` word: what it means depends on the setting, and 007 may be a name."""

    def parsed(self) -> Any:
        import yaml

        try:
            value = _load_yaml(self)
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError):  # ValueError: the 31st of February
            return str(self)
        return value if isinstance(value, bool | int | float | str | list | None) else str(self)


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    return {keys[0]: _nest(keys[1:], value) if len(keys) > 1 else value}


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = dict(value) if isinstance(value, Mapping) else value


def _group(value: Any, cls: type, name: str, default: Any) -> Any:
    if isinstance(value, _Word):
        value = value.parsed()
    return value if isinstance(value, cls) else from_dict(cls, {} if value is None else value, name, default)


def _default(field: dataclasses.Field[Any], owner: Any) -> Any:
    """What a field has in its owner, or where there is none in a fresh one; None if it must be given."""
    if owner is not None:
        return getattr(owner, field.name)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _convert(value: Any, hint: Any, name: str) -> Any:
    """One value to the type of its field, or an error that says what the field takes."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if hint is str and isinstance(value, _Word):
        return str(_unquoted(value))
    if isinstance(value, _Word) and origin not in (typing.Union, types.UnionType):
        value = value.parsed()
    if origin in (typing.Union, types.UnionType):
        if type(None) in options and (value.parsed() if isinstance(value, _Word) else value) is None:
            return None
        inner = [option for option in options if option is not type(None)]
        for option in inner[:-1]:
            try:
                return _convert(value, option, name)
            except SettingsError:
                continue
        return _convert(value, inner[-1], name)
    if origin is typing.Literal:
        if value in options:
            return value
        raise SettingsError(f"{name}={value} is not possible: choose from {', '.join(map(str, options))}")
    if origin is tuple:
        items = _items(value)
        if options and options[-1] is not Ellipsis and len(items) != len(options):
            raise SettingsError(f"{name} takes {len(options)} values, not {len(items)}: {value}")
        kinds = [options[0]] * len(items) if options[-1] is Ellipsis else options
        return tuple(_convert(item, kind, name) for item, kind in zip(items, kinds))
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if hint is float and not isinstance(value, bool):
        try:  # YAML reads 1e-4 as a word
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if number == number:
            return number
    if hint is str and isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    if hint is str and isinstance(value, float):  # 1.10 would become 1.1
        raise SettingsError(f"{name}={value} is not possible: it takes text, write it in quotes")
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    raise SettingsError(f"{name}={value} is not possible: it takes {getattr(hint, '__name__', hint)}")


def _items(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and "," in value:
        return [_Word(part) for part in value.split(",")]
    return [value]


def _unquoted(word: _Word) -> str:
    """A word may stand in quotes, as in YAML."""
    quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    return word.parsed() if quoted and isinstance(word.parsed(), str) else word


def _example(cls: type) -> str:
    for field in dataclasses.fields(cls):
        if isinstance(field.default, int | float | str):
            return f"{field.name}={field.default}"
    return "name=value"
