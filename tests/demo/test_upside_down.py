"""A photograph stored upside down, of which EXIF says nothing: its partners are searched for, and the map has it."""

import importlib

import numpy as np
from PIL import Image

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.evaluation.measures.poses import rotation_angle

rings = importlib.import_module("honesty_rings")


def test_map_finds_the_place_of_a_photograph_upside_down(tmp_path):
    cameras = list(rings.ring_cameras(36, (192, 144)).values())[:3]
    photos, turned = tmp_path / "photos", 1
    photos.mkdir()
    for number, picture in enumerate(rings.ring_pictures("temple", 1, cameras)):
        exif = Image.Exif()
        exif.get_ifd(0x8769)[0xA405] = round(35 * rings.FOCAL)  # FocalLengthIn35mmFilm
        image = Image.fromarray(picture).rotate(180 if number == turned else 0)
        image.save(photos / f"{number}.jpg", quality=95, exif=exif)
    words = ["report=false", "reconstruction.refine_keypoints=false"]
    assert main(["map", str(photos), "--output", str(tmp_path / "out"), *words]) == 0
    found = model_poses(load_model(tmp_path / "out" / "sfm"))
    assert sorted(found) == ["0.jpg", "1.jpg", "2.jpg"]
    true = [camera.cam_from_world[:, :3] for camera in cameras]
    true[turned] = np.diag([-1.0, -1.0, 1.0]) @ true[turned]
    for number in (1, 2):  # against the first
        relative = (found[f"{number}.jpg"][:, :3] @ found["0.jpg"][:, :3].T)[None]
        assert rotation_angle(relative, (true[number] @ true[0].T)[None])[0] < 5
