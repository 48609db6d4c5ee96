"""A small map of a painted wall, made by the network itself: photographs whose cameras are known exactly."""

import cv2
import numpy as np
import pycolmap
from projections import look_at

from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.images import write_image
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs

SIZE, FOCAL = (160, 120), 150.0
NAMES = [f"db/{k}.png" for k in range(4)]
MATCHING = ["dense.min_side=120", "dense.max_side=160", "dense.method=direct", "device=cpu"]
RETRIEVAL = ["min_side=120", "max_side=160", "method=direct", "device=cpu"]


def poses():
    """Cameras on an arc before the wall z = 6; those of the map, then one of a query."""
    angles = dict(zip([*NAMES, "query.png"], (-0.3, -0.1, 0.1, 0.3, 0.02)))
    centers = {name: np.array([5 * np.sin(a), 0.3 * np.cos(9 * a), 6 - 5 * np.cos(a)]) for name, a in angles.items()}
    return {name: look_at(center, np.array([0, 0, 6.0])) for name, center in centers.items()}


def photograph(pose):
    """The wall, 8 units wide, as a camera sees it."""
    rng = np.random.default_rng(3)
    wall = sum(
        cv2.resize(rng.uniform(0, 1, (n, n, 3)).astype(np.float32), (1024, 1024), interpolation=cv2.INTER_CUBIC) / k
        for k, n in enumerate((8, 24, 72, 200), start=1)
    )
    wall = cv2.normalize(wall, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)
    camera = np.array([[FOCAL, 0, SIZE[0] / 2 - 0.5], [0, FOCAL, SIZE[1] / 2 - 0.5], [0, 0, 1]])
    wall_from_pixel = np.array([[8 / 1024, 0, -4], [0, 8 / 1024, -4], [0, 0, 1]])  # x, y on the wall
    plane = np.c_[pose[:, 0], pose[:, 1], 6 * pose[:, 2] + pose[:, 3]]
    return cv2.warpPerspective(wall, camera @ plane @ wall_from_pixel, SIZE, flags=cv2.INTER_AREA)


def make_map(folder):
    """The map in `folder`/sfm, its photographs in `folder`/images; a query in `folder`/queries."""
    images, known = folder / "images", pycolmap.Reconstruction()
    params = [FOCAL, SIZE[0] / 2, SIZE[1] / 2]
    camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=SIZE[0], height=SIZE[1], params=params, camera_id=1)
    known.add_camera_with_trivial_rig(camera)  # one for all: a plane alone tells no focal length
    for number, (name, pose) in enumerate(poses().items(), start=1):
        path = (folder / "queries" if name == "query.png" else images) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(path, photograph(pose))
        if name in NAMES:
            image = pycolmap.Image(name=name, camera_id=1, image_id=number)
            known.add_image_with_trivial_frame(image, pycolmap.Rigid3d(pose))
    (folder / "known").mkdir()
    known.write_binary(folder / "known")
    pairs = [(a, b) for k, a in enumerate(NAMES) for b in NAMES[k + 1 :]]
    write_pairs(folder / "pairs.txt", pairs)
    found = match_pairs(images, pairs, folder, load_settings(MatchingSettings, None, MATCHING))
    triangulate(folder / "known", images, folder / "pairs.txt", found.features, found.matches, folder / "sfm")
    return folder
