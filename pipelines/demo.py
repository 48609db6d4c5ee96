"""The whole road on the built-in scene: pictures, matches, a model, poses of day and night queries, their recall.

    python pipelines/demo.py --output outputs/demo_pipeline

`pdc-sfm demo` is the same with SIFT beside it, a report, and every step recorded so that it can be interrupted.
"""

import argparse
import logging
import os
from pathlib import Path

from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.demo.true_cameras import known_model, write_queries
from pdc_sfm.engine.pairing import nearest_pose_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import RECALL_THRESHOLDS, localization_recall
from pdc_sfm.pipeline.matching import query_settings
from pdc_sfm.retrieval import retrieve
from pdc_sfm.scenes import SceneSettings, read_cameras, write_scene
from pdc_sfm.store.pair_lists import unique_pairs, write_pairs


def run(output: Path, scene: SceneSettings, matching: MatchingSettings) -> None:
    # Pictures of a town square with their true cameras: a database along a walk, queries from elsewhere, some at night.
    write_scene(output, scene, os.cpu_count() or 1)
    images, cameras = output / "images", read_cameras(output)
    database = {name: camera for name, camera in cameras.items() if name.startswith("db/")}
    queries = {name: camera for name, camera in cameras.items() if name not in database}

    # Each database image with the nearest ones that look the same way; their matches; points from the known poses.
    pairs, sfm = output / "pairs.txt", output / "sfm"
    poses = {name: camera.cam_from_world for name, camera in database.items()}
    write_pairs(pairs, unique_pairs(nearest_pose_pairs(poses, 8, max_angle=60)))
    mapped = match_pairs(images, pairs, output, matching)
    print(triangulate(known_model(database), images, pairs, mapped.features, mapped.matches, sfm).summary)

    # For each query the database images with most confident matches; these matches again, with the model's keypoints.
    retrieval = output / "retrieval.txt"
    print(retrieve(images, list(queries), list(database), retrieval, 8))
    files = {"features": output / "features-query.h5", "features_ref": [mapped.features]}
    found = match_pairs(images, retrieval, output, query_settings(matching), **files)

    # Poses, and how many are within 0.25 m and 2 degrees, 0.5 m and 5 degrees, 5 m and 10 degrees of the truth.
    results, listed = output / "results.txt", write_queries(output / "queries.txt", queries)
    named = LocalizationSettings(prepend_camera_name=True)  # day/0001.jpg is not night/0001.jpg
    print(localize(sfm, listed, retrieval, found.features, found.matches, results, named))
    for group in ("day", "night"):
        true = {name: camera.cam_from_world for name, camera in queries.items() if name.startswith(group)}
        for (metres, degrees), share in zip(RECALL_THRESHOLDS, localization_recall(read_poses(results), true)):
            print(f"{group}: {share:.0%} within {metres:g} m and {degrees:g} degrees")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    run(args.output, SceneSettings(database=24, day_queries=8, night_queries=8), MatchingSettings())
