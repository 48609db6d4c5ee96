"""Errors a user can cause. The command line prints their text as one line and exits with code 2."""

from __future__ import annotations

from pathlib import Path


class UserError(Exception):
    """Something the user can put right. The text says what was wrong, where, and what to do next."""


class ImageError(UserError):
    """An image that cannot be read or used."""


class CheckpointError(UserError):
    """A weights file that is not what it should be."""


class SettingsError(UserError):
    """An unknown setting, or a value out of range."""


class UnknownSettingError(SettingsError):
    """A setting that does not exist; `name` is what it was called."""

    def __init__(self, name: str, hint: str):
        super().__init__(f"unknown setting {name}: {hint}")
        self.name = name


class OtherSettingsError(SettingsError):
    """Results made with other settings, which are not mixed with new ones. `path` is what would have to go for these."""

    def __init__(self, message: str, path: Path | str | None = None):
        super().__init__(message)
        self.path = None if path is None else Path(path)


class FormatError(UserError):
    """A list, h5 or dataset file that does not follow its format."""


class BusyError(UserError):
    """Another process is working on the same output."""


class StorageError(UserError):
    """A disk that is full or refuses to be written."""


class OutputError(UserError):
    """An output that cannot be written where it should be, or is an input."""


class ClusterError(UserError):
    """Workers that cannot be had, or that die."""
