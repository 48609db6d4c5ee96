"""Fills settings classes from nested dictionaries, YAML files and `key=value` words, and checks every key and type."""

from __future__ import annotations

import dataclasses
import difflib
import logging
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pdc_sfm.errors import SettingsError, UnknownSettingError
from pdc_sfm.settings.renamed import RENAMED, new_words, old_words
from pdc_sfm.settings.yaml_text import Word, read_yaml, unquoted

if typing.TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
logger = logging.getLogger(__name__)


def load_settings(
    cls: type[T], config: Path | str | None = None, overrides: Iterable[str] = (), default: T | None = None
) -> T:
    """Build `cls` from its defaults or others, then a YAML file, then `key=value` words, each overriding the one before."""
    values: dict[str, Any] = {}
    if config is not None:
        _merge(values, read_yaml(Path(config)))
    for word in overrides:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise SettingsError(f"'{word}' is not a setting: write key=value, for example {_example(cls)}")
        _merge(values, _nest(_whole_name(cls, key.split(".")), Word(text)))
    for old in old_words(values):
        logger.warning("setting %s is now called %s: the old word goes with the next version", old, RENAMED[old])
    return from_dict(cls, values, default=default)


def from_dict(cls: type[T], values: Mapping[str, Any], where: str = "", default: T | None = None) -> T:
    """Build the dataclass `cls` from nested dictionaries, checking every key and type. What they leave out is as in `default`."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where or cls.__name__} takes a group of settings, not {values!r}")
    values = new_words(values)
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


def _whole_name(cls: type, keys: list[str]) -> list[str]:
    """The name of a setting whose outer groups may be left out: in `map` camera.mode is reconstruction.camera.mode."""
    if keys[0] in typing.get_type_hints(cls) or keys[0] in RENAMED:
        return keys
    found = [[*groups, *keys] for groups in _groups_with(cls, keys)]
    if len(found) > 1 or (found and len(keys) == 1):  # one word alone says too little to be taken for another
        raise UnknownSettingError(".".join(keys), "write " + " or ".join(map(".".join, found)))
    return found[0] if found else keys


def _groups_with(cls: type, keys: list[str]) -> list[list[str]]:
    """Names of the groups of a settings class in which a setting of this name stands."""
    hints = {name: hint for name, hint in typing.get_type_hints(cls).items() if dataclasses.is_dataclass(hint)}
    here = [[name] for name, hint in hints.items() if _has(hint, keys)]
    return here + [[name, *more] for name, hint in hints.items() for more in _groups_with(hint, keys)]  # type: ignore[arg-type]


def _has(cls: Any, keys: list[str]) -> bool:
    hint = typing.get_type_hints(cls).get(keys[0])
    return hint is not None and (len(keys) == 1 or (dataclasses.is_dataclass(hint) and _has(hint, keys[1:])))


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    return {keys[0]: _nest(keys[1:], value) if len(keys) > 1 else value}


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = dict(value) if isinstance(value, Mapping) else value


def _group(value: Any, cls: type, name: str, default: Any) -> Any:
    if isinstance(value, Word):
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
    if hint is str and isinstance(value, Word):
        return str(unquoted(value))
    if isinstance(value, Word) and origin not in (typing.Union, types.UnionType):
        value = value.parsed()
    if origin in (typing.Union, types.UnionType):
        if type(None) in options and (value.parsed() if isinstance(value, Word) else value) is None:
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
        return [Word(part) for part in value.split(",")]
    return [value]


def _example(cls: type) -> str:
    for field in dataclasses.fields(cls):
        if isinstance(field.default, int | float | str):
            return f"{field.name}={field.default}"
    return "name=value"
