"""Settings: frozen dataclasses, filled from YAML files and `key=value` words.

A setting is a field of a frozen dataclass; nested dataclasses are reached by dots (`tracks.max_error=2`). Unknown keys and
values of the wrong type are errors that name the key. Ranges are checked by the dataclass itself in `__post_init__`,
with `require`.
"""

from pdc_sfm.settings.checks import require, require_file_name
from pdc_sfm.settings.load import from_dict, load_settings
from pdc_sfm.settings.presets import preset_path
from pdc_sfm.settings.record import differences, result_settings, to_dict

__all__ = [
    "differences",
    "from_dict",
    "load_settings",
    "preset_path",
    "require",
    "require_file_name",
    "result_settings",
    "to_dict",
]
