"""Presets: the YAML files of `configs/` by name, included in an installed package."""

from __future__ import annotations

from pathlib import Path

from pdc_sfm.errors import SettingsError

# `pdc_sfm/configs` is a link to the top-level folder; where links cannot be made, a checkout has the folder itself
_FOLDERS = [folder / "configs" for folder in Path(__file__).resolve().parents[1:3]]


def preset_path(name: Path | str, group: str | None = "") -> Path:
    """A YAML file as it is, or the file of a preset: of matching, of a group such as `train`, of none."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return path
    if group is None:
        raise SettingsError(f"no preset {name}: this command has none, give a YAML file")
    folder = next((folder / group for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0] / group)
    preset = folder / f"{name}.yaml"
    if not preset.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml"))) or "none found"
        raise SettingsError(f"no preset {name}: give a YAML file or one of {known}")
    return preset
