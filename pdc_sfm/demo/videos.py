"""Videos as photographs of a run: one folder of frames per video."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import remove_folder
from pdc_sfm.media.video import RECORD, extract_frames
from pdc_sfm.settings import load_settings

log = logging.getLogger(__name__)


def video_settings() -> PhotographSettings:
    """Frames of one video are of one camera."""
    return load_settings(PhotographSettings, None, ["reconstruction.camera.mode=per_folder"])


def frames_of_videos(videos: Sequence[Path | str], folder: Path, fps: float) -> list[Any]:
    """Fill a folder with a folder of frames for each video, and nothing else; what they are made of is returned."""
    names: dict[str, Path] = {}
    for video in map(Path, videos):
        name = video.stem
        while name in names:
            name += "_"
        names[name] = video
    for earlier in sorted(folder.glob(f"*/{RECORD}")):
        if earlier.parent.name not in names:  # of another run
            shutil.rmtree(earlier.parent)
    made = []
    for name, video in names.items():
        try:
            found = extract_frames(video, folder / name, fps)
        except OtherSettingsError:
            remove_folder(folder / name)
            found = extract_frames(video, folder / name, fps)
        log.info("%-18s %s", name, found)
        made.append([name, [frame.name for frame in found.kept], (folder / name / RECORD).read_text(encoding="utf-8")])
    return made
