"""Memory and file size of a COLMAP model against its images: what `budget.py` counts with.

    python benchmarks/model_memory.py --images 100 300 1000

A simulated model: every image has 4,096 keypoints of which some 2,500 see points, 550 new points an image, each seen by the next
images in turn (benchmarks/knee.py prints 550 points an image for the demo and a kitchen). Each size in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

KEYPOINTS, POINTS, SEEN_BY = 4096, 550, 5


def measure(images: int) -> tuple[float, float, float]:
    """Bytes an image in memory and on disk, and processor seconds in all."""
    import numpy as np
    import pycolmap

    start, before = time.process_time(), peak()
    random, model = np.random.default_rng(0), pycolmap.Reconstruction()
    camera = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=[500, 500, 320, 240], camera_id=1)
    model.add_camera_with_trivial_rig(camera)
    for number in range(1, images + 1):
        xy = random.uniform((0, 0), (640, 480), (KEYPOINTS, 2))
        image = pycolmap.Image(f"{number:07d}.jpg", xy, 1, number)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d())
    for number in range(1, images - SEEN_BY + 2):
        for point, xyz in enumerate(random.normal(size=(POINTS, 3))):
            elements = [pycolmap.TrackElement(number + place, place * POINTS + point) for place in range(SEEN_BY)]
            model.add_point3D(xyz, pycolmap.Track(elements), np.zeros(3, np.uint8))
    memory = (peak() - before) / images
    with tempfile.TemporaryDirectory() as folder:
        model.write(folder)
        disk = sum(path.stat().st_size for path in Path(folder).iterdir()) / images
    return memory, disk, time.process_time() - start


def peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[100, 300, 1000])
    args = parser.parse_args()
    print(f"{'images':>9} {'kB an image':>12} {'on disk':>9} {'seconds':>8}")
    for images in args.images:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory, disk, seconds = pool.apply(measure, (images,))
            pool.close()
            pool.join()
        print(f"{images:>9,} {memory / 1e3:>12.0f} {disk / 1e3:>9.0f} {seconds:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
