"""Panoramas as photographs of a run: renders their views and rig before it, and writes one pose per panorama after it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.results import pose_line
from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import remove_folder, write_text
from pdc_sfm.media.panoramas import JOURNAL, panorama_views, view_name, write_views
from pdc_sfm.settings import load_settings

POSES = "panoramas.txt"


def panorama_settings() -> PhotographSettings:
    """Views are drawn by cameras that are known."""
    return load_settings(PhotographSettings, None, ["reconstruction.camera.refine=false"])


def views_of_panoramas(panoramas: Path, folder: Path, settings: PhotographSettings) -> tuple[dict[str, str], Any]:
    """Fill a folder with views of panoramas; of each the one that looks ahead, and what the views are made of."""
    try:
        names = write_views(panoramas, folder, settings.panoramas)
    except OtherSettingsError:
        remove_folder(folder)
        names = write_views(panoramas, folder, settings.panoramas)
    made = sorted(set((folder / JOURNAL).read_text(encoding="utf-8").split("\n")))
    first = panorama_views(settings.panoramas)[0].name
    return {name: f"{first}/{view_name(name)}" for name in names}, made


def write_panorama_poses(path: Path, model: Path, ahead: Mapping[str, str]) -> str:
    """Poses of panoramas, by the view of each that looks ahead; what to say of them.

    `name qw qx qy qz tx ty tz` a line, panorama from world: x to the right, y down, z through its middle.
    """
    loaded = load_model(model)
    poses = {loaded.image(i).name: loaded.image(i).cam_from_world() for i in loaded.reg_image_ids()}
    lines = [pose_line(name, poses[view]) for name, view in ahead.items() if view in poses]
    write_text(path, "".join(lines))
    return f"{len(lines)} of {len(ahead)} panoramas have a pose: {path.name}"
