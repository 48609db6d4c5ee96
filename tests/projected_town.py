"""A projected scene in the place of the rendered one, and exact matches in the place of the network's."""

import json

from projections import make_scene, write_features, write_images, write_matches

from pdc_sfm.scenes import Camera
from pdc_sfm.scenes.layouts.plain import camera_to_dict
from pdc_sfm.store.pair_lists import read_pairs

NAMES = [f"db/{k:04d}.png" for k in range(1, 7)]
QUERIES = ["day/0001.png", "day/0002.png", "night/0001.png", "night/0002.png"]
BLIND = "night/0002.png"  # no matches are found in it


class ExactMatcher:
    """Writes hloc files of true projections; counts what it is asked."""

    def __init__(self, scene):
        self.scene, self.calls = scene, []

    def __call__(self, images, pairs, features, matches, fixed=None):
        self.calls.append(pairs.name)
        listed = read_pairs(pairs)
        write_features(self.scene, features, sorted({name for pair in listed for name in pair}))
        write_matches(_Blinded(self.scene), matches, listed)


class _Blinded:
    """As the scene, but the blind query finds no matches."""

    def __init__(self, scene):
        self.keypoints, self._scene = scene.keypoints, scene

    def matches(self, first, second):
        return self._scene.matches(first, second)[: 0 if BLIND in (first, second) else None]


def projected_scene(module, monkeypatch):
    """A projected scene in the place of the rendered one."""
    order = [NAMES[0], QUERIES[0], *NAMES[1:3], QUERIES[2], *NAMES[3:5], QUERIES[3], QUERIES[1], NAMES[5]]
    made = make_scene(order, model="SIMPLE_PINHOLE", params=(500, 320, 240))

    def write(folder, settings, workers, progress=None):
        write_images(made, folder / "images")
        cameras = {
            name: camera_to_dict(Camera(640, 480, float(made.cameras[name].params[0]), made.poses[name]))
            for name in [*NAMES, *QUERIES]
        }
        (folder / "cameras.json").write_text(json.dumps(cameras))

    monkeypatch.setattr(module, "write_scene", write)
    return made
