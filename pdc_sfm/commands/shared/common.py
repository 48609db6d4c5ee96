"""The parser of a command. Its help and `--settings` are generated from the dataclasses of its settings."""

from __future__ import annotations

import argparse
import functools
import importlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from pdc_sfm.device import AUTO, check_device
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.settings.help import Described, describe, full_table, short_table, summary

Target = str | Callable[[], Any]  # `module:Class` or `module:function` of default settings, or such a function
WIDEST = 120  # columns of a help text, where the terminal has more


class VerbParser(argparse.ArgumentParser):
    """The settings of a verb are imported when they are asked for: with them come torch and COLMAP."""

    targets: Mapping[str, Target] = {}
    preset: str | None = None  # a preset that is used unless another is given
    group: str | None = None  # of presets

    def defaults(self) -> dict[str, tuple[Any, tuple[Described, ...]]]:
        """Each group of settings: an object of its defaults, and what there is to say."""
        found = {}
        for title, target in self.targets.items():
            default = (_imported(target) if isinstance(target, str) else target)()
            if self.preset:
                default = load_settings(type(default), preset_path(self.preset, self.group), default=default)
            prefix = f"{title}." if title.isidentifier() else ""
            found[title] = default, describe(default, prefix)
        return found

    def format_help(self) -> str:
        """As argparse has it, then the settings."""
        if not self.targets:
            return super().format_help()
        groups, width = self.defaults(), _width()
        count = sum(1 for _, settings in groups.values() for setting in settings for _ in setting.each())
        text = [f"settings (all {count} of them: {self.prog} --settings){self._preset_note()}:"]
        for title, (default, settings) in groups.items():
            if title.isidentifier():  # groups of another verb's settings
                settings = (Described(title, "", "", summary(type(default)), settings),)
            text += [f"{title}:"] if title and not title.isidentifier() else []
            text.append(short_table(settings, width))
        return super().format_help() + "\n" + "\n".join(text) + "\n"

    def format_settings(self) -> str:
        """Every setting: key and default, type, meaning."""
        lines = [f"Defaults{self._preset_note()}"] if self.preset else []
        for title, (_, settings) in self.defaults().items():
            lines += [f"{title}:"] if title and not title.isidentifier() else []
            lines.append(full_table(settings, _width()))
        return "\n".join(lines) + "\n"

    def _preset_note(self) -> str:
        return f", as the preset {self.preset} has them" if self.preset else ""


class _ListSettings(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, VerbParser)
        print(parser.format_settings(), end="")
        parser.exit()


def add_settings(
    parser: argparse.ArgumentParser,
    target: Target | Mapping[str, Target],
    preset: str | None = None,
    group: str | None = None,
) -> None:
    """`--config FILE or preset`, `key=value ...` and `--settings`. `group` is that of the verb's presets, if it has any.

    Several targets: by a prefix of their keys (`match`), or by words that say when they hold (`with --images`).
    """
    assert isinstance(parser, VerbParser)
    parser.targets = target if isinstance(target, Mapping) else {"": target}
    parser.preset, parser.group = preset, group
    also = f" (default: {preset})" if preset else ""
    find = functools.partial(preset_path, group=group)
    or_preset = "" if group is None else f", or a preset's name{also}"
    parser.add_argument("--config", type=find, default=preset, metavar="FILE", help=f"YAML file of settings{or_preset}")
    parser.add_argument(
        "--settings", action=_ListSettings, nargs=0, dest=argparse.SUPPRESS, help="list all settings and exit"
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings, see below")


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device`, refused at once where this machine does not have it."""
    parser.add_argument(
        "--device",
        type=_usable_device,
        default=AUTO,
        help="cpu, cuda, cuda:1 ..., or auto: a GPU if there is one (auto)",
    )


def _usable_device(word: str) -> str:
    check_device(word)
    return word


def _imported(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _width() -> int:
    return min(shutil.get_terminal_size((WIDEST, 0)).columns - 2, WIDEST)
