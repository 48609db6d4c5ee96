"""A textured wall behind a textured floor with exact cameras, pictures and depth, as a map; and its true flow."""

import json

import cv2
import numpy as np
import pycolmap

from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.images import write_image
from pdc_sfm.pixels import grid_points, inside, to_colmap

SIZE = (128, 96)  # pixels
FOCAL = 110.0
WALL, FLOOR = np.array([0, 0, 1 / 4.0]), np.array([0, 1 / 1.2, 0])  # planes n X = 1: z = 4, and y = 1.2 below
TEXEL = 0.02  # of the textures
NAMES = tuple(f"{k}.png" for k in range(5))


def pose(number: int) -> np.ndarray:
    """(3, 4) cam_from_world: side by side, 0.35 apart, every other one lower."""
    return np.c_[np.eye(3), [-0.35 * (number - 2), 0.1 * (number % 2), 0.0]]


def rays(points: np.ndarray, distortion: float = 0.0) -> np.ndarray:
    """(..., 3) of pixel indices (..., 2), of a camera with SIMPLE_RADIAL distortion."""
    camera = camera_of(distortion)
    flat = np.asarray(camera.cam_from_img(to_colmap(points.reshape(-1, 2).astype(np.float64))))
    return np.c_[flat, np.ones(len(flat))].reshape(*points.shape[:-1], 3)


def camera_of(distortion: float) -> pycolmap.Camera:
    """PINHOLE, or SIMPLE_RADIAL."""
    (width, height), center = SIZE, [SIZE[0] / 2, SIZE[1] / 2]
    model, params = (
        ("SIMPLE_RADIAL", [FOCAL, *center, distortion]) if distortion else ("PINHOLE", [FOCAL, FOCAL, *center])
    )
    return pycolmap.Camera(model=model, width=width, height=height, params=params)


def depth_at(number: int, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depth (...) along rays (..., 3) of a camera, and whether it is the floor's."""
    center = -pose(number)[:, 3]
    found = []
    for plane in (WALL, FLOOR):
        along = directions @ plane
        found.append(np.where(along > 1e-9, (1 - center @ plane) / np.where(along > 1e-9, along, 1), np.inf))
    return np.minimum(*found), found[1] < found[0]


def true_depth(number: int) -> np.ndarray:
    """(h, w) of an undistorted image."""
    return depth_at(number, rays(grid_points(SIZE, SIZE)))[0]


def picture(number: int, distortion: float = 0.0) -> np.ndarray:
    """(h, w, 3) uint8."""
    directions = rays(grid_points(SIZE, SIZE), distortion)
    depth, is_floor = depth_at(number, directions)
    points = directions * depth[..., None] - pose(number)[:, 3]
    across, up = points[..., 0], np.where(is_floor, points[..., 2], points[..., 1])
    colors = [
        [
            cv2.remap(
                _texture(seed), *((axis / TEXEL + 400).astype(np.float32) for axis in (across, up)), cv2.INTER_LINEAR
            )
            for seed in (3 * kind, 3 * kind + 1, 3 * kind + 2)
        ]
        for kind in (0, 1)
    ]
    return np.stack([np.where(is_floor, floor, wall) for wall, floor in zip(*colors)], -1).astype(np.uint8)


def _texture(seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 1, (800, 800)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 2.5)
    return np.clip(128 + 45 * smooth / smooth.std(), 0, 255)


def write_map(folder, count=5, distortion=0.0):
    """A map of the scene as `triangulate` writes it: images in `photos`, the model in `sfm`. Returns `sfm`."""
    names = NAMES[:count]
    for number, name in enumerate(names):
        write_image(folder / "photos" / name, picture(number, distortion))
    model = posed_model({name: pose(k) for k, name in enumerate(names)}, dict.fromkeys(names, camera_of(distortion)))
    pixels = grid_points((16, 12), SIZE).reshape(-1, 2)
    directions = rays(pixels, distortion)
    points = directions * depth_at(0, directions)[0][:, None] - pose(0)[:, 3]
    seen = {image_id: _keypoints(model, image_id) for image_id in model.reg_image_ids()}
    for image_id, keypoints in seen.items():
        model.image(image_id).points2D = [pycolmap.Point2D(xy) for xy in keypoints(points)]
    for row, point in enumerate(points):
        track = [pycolmap.TrackElement(image_id, row) for image_id in seen if _shows(model, image_id, row)]
        if len(track) > 1:
            model.add_point3D(point, pycolmap.Track(track), np.zeros(3, np.uint8))
    (folder / "sfm").mkdir()
    model.write_binary(folder / "sfm")
    inputs = {"images": str(folder / "photos")}
    (folder / "sfm" / "summary.json").write_text(json.dumps({"inputs": inputs}))
    return folder / "sfm"


def _keypoints(model, image_id):
    image = model.image(image_id)
    camera, pose_ = model.camera(image.camera_id), np.asarray(image.cam_from_world().matrix())

    def project(points):
        return np.nan_to_num(np.asarray(camera.img_from_cam(points @ pose_[:, :3].T + pose_[:, 3])), nan=-1.0)

    return project


def _shows(model, image_id, row) -> bool:
    x, y = model.image(image_id).points2D[row].xy
    return 0 < x < SIZE[0] and 0 < y < SIZE[1]


class TrueFlow:
    """Stands in for the network: the flow of the scene, sure of itself except on what `unsure` covers."""

    def __init__(self, unsure=lambda points: np.zeros(points.shape[:-1], bool)):
        self.unsure, self.encoded = unsure, []

    def encode(self, image, name):
        self.encoded.append(name)
        return _Code(NAMES.index(name))

    def estimate(self, reference, query):
        points = grid_points((SIZE[0] // 4, SIZE[1] // 4), SIZE)
        directions = rays(points)
        world = directions * depth_at(reference.number, directions)[0][..., None] - pose(reference.number)[:, 3]
        there = world + pose(query.number)[:, 3]
        target = there[..., :2] / there[..., 2:] * FOCAL + np.array(SIZE) / 2 - 0.5
        confidence = np.where(self.unsure(points), 0.0, 0.95).astype(np.float32)
        flow = (target - points).astype(np.float32)
        return DenseEstimate(flow, None, None, inside(target, SIZE), SIZE, SIZE, head_confidence=confidence)


class _Code:
    nbytes = 1000

    def __init__(self, number):
        self.number = number
