"""The folder of a dense cloud, laid out as COLMAP's dense workspace, so that COLMAP and what reads its workspaces take it.

images/                                    undistorted images
sparse/                                    the model of their pinhole cameras
stereo/depth_maps/NAME.geometric.bin       checked depth, 0 where there is none
stereo/normal_maps/NAME.geometric.bin      normals in the camera's frame
stereo/sigma_maps/NAME.geometric.bin       standard deviation of the depth (not COLMAP's)
stereo/fusion.cfg, patch-match.cfg         the images, for COLMAP's stereo_fusion
fused.ply, fused.ply.vis                   the cloud, and which images see each point
densify.json                               settings, counts, seconds of each step: written last
.work/STEP/NAME.npz                        what a stopped run goes on from
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_path

DENSE = "dense"  # below a map
RECORD = "densify.json"
MAPS = {"depth": "depth_maps", "normal": "normal_maps", "sigma": "sigma_maps"}
LONGEST_HEADER = 64  # bytes of a map's


class Workspace:
    """Names in the folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.images, self.sparse = folder / "images", folder / "sparse"
        self.stereo, self.work = folder / "stereo", folder / ".work"
        self.cloud, self.record = folder / "fused.ply", folder / RECORD

    def made(self, step: str, name: str) -> Path:
        """What a step made of an image."""
        return self.work / step / f"{name}.npz"

    def map(self, kind: str, name: str) -> Path:
        """The file of an image's depth, normal or sigma map."""
        return self.stereo / MAPS[kind] / f"{name}.geometric.bin"

    def save(self, step: str, name: str, **arrays: np.ndarray) -> None:
        """Keep what a step made, at once or not at all."""
        with atomic_path(self.made(step, name)) as partial, open(partial, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def load(self, step: str, name: str) -> dict[str, np.ndarray]:
        """What a step made of an image."""
        path = self.made(step, name)
        try:
            with np.load(path) as file:
                return {key: file[key] for key in file.files}
        except (OSError, ValueError, EOFError, KeyError) as error:
            raise FormatError(f"cannot read {path}: {error}; remove it and run the same command again") from None


def write_map(path: Path, values: np.ndarray) -> None:
    """(h, w) or (h, w, C) as COLMAP has it: `width&height&channels&`, then float32 planes, rows after rows."""
    height, width = values.shape[:2]
    planes = values.reshape(height, width, -1)
    with atomic_path(path) as partial, open(partial, "wb") as file:
        file.write(f"{width}&{height}&{planes.shape[2]}&".encode("ascii"))
        file.write(np.ascontiguousarray(np.moveaxis(planes, -1, 0), "<f4").tobytes())


def read_map(path: Path | str) -> np.ndarray:
    """(h, w) or (h, w, C) float32 of a file of COLMAP's dense maps."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    parts = data[:LONGEST_HEADER].split(b"&", 3)
    if len(parts) < 4 or not all(part.isdigit() for part in parts[:3]):
        raise FormatError(f"{path} is no depth or normal map of COLMAP's")
    width, height, channels = (int(part) for part in parts[:3])
    body = data[sum(len(part) + 1 for part in parts[:3]) :]
    if len(body) != 4 * width * height * channels:
        raise FormatError(f"{path} ends early: {width} x {height} x {channels} floats were announced")
    planes = np.frombuffer(body, "<f4").reshape(channels, height, width)
    return planes[0].copy() if channels == 1 else np.moveaxis(planes, 0, -1).copy()


def write_lists(workspace: Workspace, names: list[str]) -> None:
    """What COLMAP's stereo_fusion wants to know: the images, and that every other one may be a partner."""
    for file, lines in (
        ("fusion.cfg", names),
        ("patch-match.cfg", [line for name in names for line in (name, "__auto__, 20")]),
    ):
        with atomic_path(workspace.stereo / file) as partial:
            partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
