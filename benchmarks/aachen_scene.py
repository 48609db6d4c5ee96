"""A generated scene in Aachen's layout through full localization and through the challenge: recall of SIFT and of ours.

pdc-sfm scene --layout aachen --output outputs/square
python benchmarks/aachen_scene.py --dataset outputs/square --work outputs/benchmarks/aachen_scene
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from data import needed

from pdc_sfm.aachen.challenge import run_challenge
from pdc_sfm.aachen.challenge_files import write_challenge_files
from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.localization import run_localization
from pdc_sfm.aachen.reference import read_reference
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import CheckpointError
from pdc_sfm.evaluation.measures.poses import RECALL_THRESHOLDS, localization_recall
from pdc_sfm.pipeline.matching import ListMatcher, engine_matcher
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.weights import built_in_path


def true_poses(dataset: AachenDataset) -> dict[str, dict[str, np.ndarray]]:
    """Day and night -> name in the results -> pose."""
    poses = read_poses(dataset.root / "ground_truth" / "query_poses.txt")
    return {
        time: {name.split("/")[-1]: pose for name, pose in poses.items() if name.startswith(f"query/{time}/")}
        for time in ("day", "night")
    }


def row(label: str, what: str, results: Path, true: dict[str, np.ndarray]) -> str:
    recall = localization_recall(read_poses(results), true)
    return f"{label:<12} {what:<22} {len(true):>4} " + " ".join(f"{100 * r:>10.1f}" for r in recall)


def run(dataset: AachenDataset, work: Path, label: str, match: ListMatcher, matching: object, retrieval: Path) -> None:
    true = true_poses(dataset)
    results, _ = run_localization(dataset, work / f"{label}_localize", match, retrieval, matching=matching)
    for time in ("day", "night"):
        print(row(label, f"localize, {time}", results, true[time]), flush=True)
    try:
        result = run_challenge(dataset, work / f"{label}_challenge", match, matching=matching)
        print(row(label, "challenge, night", result.path, true["night"]), flush=True)
    except ReconstructionError as error:
        print(f"{label:<12} challenge: {error}")


def pair_queries(dataset: AachenDataset, path: Path, top: int, settings: MatchingSettings | None) -> Path:
    """Each query with the images that retrieval finds, the same for all methods; without a network with all images."""
    queries, database = list(read_camera_list(dataset.queries)), list(read_reference(dataset, points=False).names)
    if settings is None or top >= len(database):
        write_pairs(path, [(query, name) for query in queries for name in database])
    else:
        finding = RetrievalSettings(best=top, weights=settings.weights, device=settings.device)
        retrieve(dataset.images, queries, database, path, top, finding)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--version", choices=("1.0", "1.1"), default="1.0")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/aachen_scene"))
    parser.add_argument("--top", type=int, default=8, help="database images matched with each query")
    parser.add_argument("--config", type=Path, help="settings of our matching")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of our matching")
    args = parser.parse_args()
    needed(args.dataset)
    args.work.mkdir(parents=True, exist_ok=True)
    dataset = AachenDataset(args.dataset, args.version)
    if not dataset.challenge_database.exists():
        write_challenge_files(dataset)
    settings = load_settings(MatchingSettings, args.config, args.settings)
    try:
        known = settings if settings.weights is not None or built_in_path() else None
    except CheckpointError as error:
        print(f"no row of ours: {error}")
        known = None
    retrieval = pair_queries(dataset, args.work / "pairs-queries.txt", args.top, known)
    limits = " ".join(f"{f'{m:g} m {d:g} deg':>10}" for m, d in RECALL_THRESHOLDS)
    print(f"{'method':<12} {'run':<22} {'of':>4} {limits}")
    run(dataset, args.work, "SIFT", match_sift, "sift", retrieval)
    if known is not None:
        run(dataset, args.work, "ours", engine_matcher(known), args.settings, retrieval)


if __name__ == "__main__":
    main()
