"""kapture (1.1): sensors, images, trajectories and points. Cameras and poses are COLMAP's own, camera from world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.pointcloud import model_points
from pdc_sfm.export.formats import Export, register
from pdc_sfm.files import write_text

HEAD = "# kapture format: 1.1"


@register("kapture", images="sensors/records_data", separators=",")
def write(export: Export) -> str:
    """sensors/*.txt and reconstruction/points3d.txt. Every image has a time of its own, in the order of names."""
    sensors, records, poses = {}, [], []
    for time, (image_id, (name, camera, pose)) in enumerate(zip(export.image_ids(), export.views())):
        device = f"camera{camera.camera_id}"
        params = [repr(float(p)) for p in camera.params]
        sensors[device] = [device, "", "camera", camera.model_name, camera.width, camera.height, *params]
        rotation = np.asarray(export.model.image(image_id).cam_from_world().rotation.quat)[[3, 0, 1, 2]]
        records.append([time, device, name])
        poses.append([time, device, *(repr(float(n)) for n in (*rotation, *pose[:, 3]))])
    points, colors = model_points(export.model)
    cloud = ([*(repr(float(n)) for n in xyz), *map(int, rgb)] for xyz, rgb in zip(points, colors))
    _table(export, "sensors/sensors.txt", "sensor_id, name, sensor_type, [sensor_params]+", sensors.values())
    _table(export, "sensors/records_camera.txt", "timestamp, device_id, image_path", records)
    _table(export, "sensors/trajectories.txt", "timestamp, device_id, qw, qx, qy, qz, tx, ty, tz", poses)
    _table(export, "reconstruction/points3d.txt", "X, Y, Z, R, G, B", cloud)
    return f"{len(records)} images, {len(points):,} points"


def _table(export: Export, name: str, columns: str, rows: Iterable[list[Any]]) -> None:
    lines = [HEAD, f"# {columns}", *(", ".join(map(str, row)) for row in rows)]
    write_text(export.folder / name, "\n".join(lines) + "\n")
