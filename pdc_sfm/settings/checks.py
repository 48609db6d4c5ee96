"""Range checks for settings classes, called from their `__post_init__`."""

from __future__ import annotations

from pdc_sfm.errors import SettingsError


def require(condition: bool, message: str) -> None:
    """Refuse a value: to be called from `__post_init__` with a text that names the setting and its range."""
    if not condition:
        raise SettingsError(message)


def require_file_name(name: str, setting: str) -> None:
    """Refuse what cannot be a part of a file's name, or leads to another folder."""
    plain = name.isprintable() and "/" not in name and name not in ("", ".", "..") and len(name) <= 100
    require(plain, f"{setting}={ascii(name)[1:-1]} must be a plain name without slashes: it names files")
