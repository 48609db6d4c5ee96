"""A map among many other images: a small map of ours, and photographs that show none of it, with poses but without points.

    python benchmarks/large_map.py --map outputs/demo --photos PHOTOS --images 1000 --output outputs/large
    python benchmarks/serve.py --map outputs/large --images QUERIES

What a large map costs a query is finding the images that show the same among all others; that these others are photographs
of elsewhere, and not rendered, makes them no cheaper to look through. Each is used once: PHOTOS must hold enough of them.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import h5py
import numpy as np
import pycolmap

from pdc_sfm.demo.queries import open_map
from pdc_sfm.images import list_images, read_image
from pdc_sfm.store.writers import write_keypoints

APART = 1000.0  # units of the map from its origin, where the others are said to have been taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--map", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs of elsewhere")
    parser.add_argument("--images", type=int, default=1000, help="of the large map")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    small, output = open_map(args.map), args.output
    model = pycolmap.Reconstruction(small.model)
    own = [model.image(number).name for number in model.reg_image_ids()]
    others = list_images(args.photos)[: args.images - len(own)]
    if len(own) + len(others) < args.images:
        raise SystemExit(f"{args.photos} holds {len(others)} photographs: {args.images - len(own)} are needed")
    shutil.copytree(small.model, output / "sfm")
    for name in own:
        link(small.images / name, output / "images" / name)
    shutil.copyfile(small.features, output / "features.h5")
    rng, image_id, camera_id = np.random.default_rng(0), max(model.images), max(model.cameras)
    with h5py.File(output / "features.h5", "a") as features:
        for number, photo in enumerate(others, start=1):
            name = f"elsewhere/{number:05d}{Path(photo).suffix}"
            link(args.photos / photo, output / "images" / name)
            height, width = read_image(args.photos / photo).shape[:2]
            camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=width, height=height, camera_id=camera_id + number)
            camera.params = [1.2 * max(width, height), width / 2, height / 2]
            model.add_camera_with_trivial_rig(camera)
            pose = pycolmap.Rigid3d(pycolmap.Rotation3d(), APART * (1 + rng.random(3)))
            image = pycolmap.Image(name=name, camera_id=camera_id + number, image_id=image_id + number)
            model.add_image_with_trivial_frame(image, pose)
            if name not in features:
                write_keypoints(features, name, np.zeros((0, 2)), np.zeros(0), (width, height))
    model.write_binary(output / "sfm")
    print(f"{model.num_reg_images()} images in {output}, {len(own)} of them with points")


def link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(source.resolve())


if __name__ == "__main__":
    main()
