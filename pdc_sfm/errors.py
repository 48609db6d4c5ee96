"""Errors a user can cause. The command line prints their text as one line and exits with code 2."""


class UserError(Exception):
    """Something the user can put right. The text says what was wrong, where, and what to do next."""


class ImageError(UserError):
    """An image that cannot be read or used."""


class CheckpointError(UserError):
    """A weights file that is not what it should be."""


class SettingsError(UserError):
    """An unknown setting, or a value out of range."""


class FormatError(UserError):
    """A list, h5 or dataset file that does not follow its format."""


class BusyError(UserError):
    """Another process is working on the same output."""


class StorageError(UserError):
    """A disk that is full or refuses to be written."""


class ClusterError(UserError):
    """Workers that cannot be had, or that die."""
