"""scene.json: what a scene's folder holds, so that it is neither rendered twice nor mixed with another."""

from __future__ import annotations

import json
from pathlib import Path

from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.files import write_text
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import SceneSettings, WorldSettings
from pdc_sfm.settings import differences, to_dict

RECORD = "scene.json"
CONVENTION = (
    "x ~ K (R X + t), camera-from-world, metres; K in COLMAP's coordinates: the image's top-left corner is (0, 0), "
    "the center of its first pixel (0.5, 0.5)"
)


def is_written(folder: Path, settings: SceneSettings | WorldSettings, layout: str) -> bool:
    """Whether the folder holds this scene complete; an error if it holds another one."""
    path = folder / RECORD
    if not path.is_file():
        return False
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        stored = {"layout": record["layout"], **record["settings"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is not the record of a scene ({error}): choose another output") from None
    changed = differences(stored, {"layout": layout, **to_dict(settings)})
    if changed:
        raise SettingsError(f"{folder} holds another scene ({', '.join(changed)}): choose another output, or remove it")
    return True


def write_record(folder: Path, settings: SceneSettings | WorldSettings, layout: str, shots: dict[str, Shot]) -> None:
    """Written last: a folder without it is unfinished."""
    images = {
        name: {
            "role": shot.role,
            "conditions": shot.conditions.name,
            "people": shot.conditions.people,
            "cars": shot.conditions.cars,
        }
        for name, shot in shots.items()
    }
    record = {"layout": layout, "settings": to_dict(settings), "convention": CONVENTION, "images": images}
    write_text(folder / RECORD, json.dumps(record, indent=1))
