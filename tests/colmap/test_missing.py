"""Two walls that look alike are told apart by what does not match where one was laid over the other."""

import numpy as np
import pycolmap
import pytest
from scipy.spatial.transform import Rotation

from pdc_sfm.colmap.mapping.missing import MissingMatches

SIZE = 640, 480


def wall(count: int = 1500, seed: int = 0, depth: float = 6.0) -> np.ndarray:
    """(N, 3) points of a wall that faces the first camera and fills its picture."""
    rng = np.random.default_rng(seed)
    return np.c_[rng.uniform(-3.6, 3.6, count), rng.uniform(-2.6, 2.6, count), rng.uniform(0.99, 1.01, count) * depth]


def make_model(seen: list[tuple[np.ndarray, tuple[int, ...]]], centers, angles=(0, 0, 0, 0)) -> pycolmap.Reconstruction:
    """Points and the images (1 to 4) that see them; cameras turned about the vertical."""
    model = pycolmap.Reconstruction()
    camera = pycolmap.Camera.create_from_model_name(1, "SIMPLE_PINHOLE", 500.0, *SIZE)
    model.add_camera_with_trivial_rig(camera)
    pixels: dict[int, list] = {number: [] for number in range(1, 5)}
    tracks: list[tuple[np.ndarray, list]] = []
    poses = {}
    for number, (center, angle) in enumerate(zip(centers, angles), start=1):
        rotation = Rotation.from_euler("y", angle, degrees=True).as_matrix()
        poses[number] = pycolmap.Rigid3d(np.c_[rotation, -rotation @ np.array(center)])
    for points, images in seen:
        for point in points:
            elements = []
            for number in images:
                local = poses[number] * point
                elements.append((number, len(pixels[number])))
                pixels[number].append(camera.img_from_cam(local) if local[2] > 0 else np.zeros(2))
            tracks.append((point, elements))
    for number, pose in poses.items():
        image = pycolmap.Image(f"{number}.png", np.array(pixels[number]).reshape(-1, 2), 1, number)
        model.add_image_with_trivial_frame(image, pose)
    for point, elements in tracks:
        model.add_point3D(point, pycolmap.Track([pycolmap.TrackElement(*element) for element in elements]), np.zeros(3))
    return model


APART = ((0, 0, 0), (0.5, 0, 0), (0.2, 0, 0), (0.7, 0, 0))


def test_images_that_share_points_all_over_miss_nothing():
    found = MissingMatches(make_model([(wall(), (1, 2, 3, 4))], APART))(1, 3)
    assert found.missed == 0
    assert found.shared > 1000


def test_a_wall_laid_over_another_that_matches_in_its_right_half_alone_is_missed_in_the_left():
    both, *apart = (
        np.c_[side * abs(x), y, z] for side, (x, y, z) in zip((1, -1, -1), (wall(6000, s).T for s in range(3)))
    )
    found = MissingMatches(make_model([(both, (1, 2, 3, 4)), (apart[0], (1, 2)), (apart[1], (3, 4))], APART))(1, 3)
    assert found.missed == pytest.approx(found.shared, rel=0.2)


@pytest.mark.parametrize(
    ("depth", "centers", "angles"),
    [
        (9.0, APART, (0, 0, 0, 0)),  # behind it
        (6.0, ((0, 0, 0), (0.5, 0, 0), (12, 0, 0), (12.5, 0, 0)), (0, 0, 60, 60)),  # seen from another side
        (6.0, ((0, 0, 0), (0.5, 0, 0), (0, 0, -12), (0.5, 0, -12)), (0, 0, 0, 0)),  # from more than twice as far
    ],
)
def test_what_lies_elsewhere_or_is_seen_otherwise_need_not_match(depth, centers, angles):
    seen = [(wall(seed=1), (1, 2)), (wall(seed=2, depth=depth), (3, 4))]
    assert MissingMatches(make_model(seen, centers, angles))(1, 3).missed == 0
