"""The row every table is compared with: COLMAP's own SIFT, matched exhaustively, mapped incrementally."""

from __future__ import annotations

from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import SUMMARY, MappingResult, ReconstructionError, save_model, summarize
from pdc_sfm.colmap.mapping.mappers import map_incrementally
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.files import atomic_folder, exclusive
from pdc_sfm.images import list_images
from pdc_sfm.settings import to_dict


def sift_database(path: Path, images: Path, names: list[str], camera: CameraSettings, seed: int, threads: int) -> None:
    """A new database with SIFT features of the images and their verified exhaustive matches, COLMAP's defaults."""
    pycolmap.Database.open(path).close()
    reader = pycolmap.ImageReaderOptions(camera_model=camera.model)
    reader.camera_params = ",".join(repr(p) for p in camera.params)
    extraction, matching = pycolmap.FeatureExtractionOptions(), pycolmap.FeatureMatchingOptions()
    extraction.num_threads = matching.num_threads = thread_count(threads)
    extraction.use_gpu = matching.use_gpu = False
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = seed
    mode = pycolmap.CameraMode.__members__[camera.mode.upper()]
    pycolmap.extract_features(path, images, names, mode, reader, extraction, pycolmap.Device.cpu)
    pycolmap.match_exhaustive(
        path, matching_options=matching, verification_options=verification, device=pycolmap.Device.cpu
    )


def reconstruct_sift(
    images: Path | str,
    output: Path | str,
    settings: ReconstructionSettings | None = None,
    names: list[str] | None = None,
    verbose: bool = False,
) -> MappingResult:
    """Reconstruct a folder of images (or those named) from SIFT features."""
    settings, images = settings or ReconstructionSettings(), Path(images)
    names = names or list_images(images)
    with exclusive(output), atomic_folder(output, SUMMARY) as folder, colmap_log(verbose):
        database = folder / "database.db"
        sift_database(database, images, names, settings.camera, settings.seed, settings.threads)
        models = map_sift(database, images, folder / "models", settings)
        if not models:
            raise ReconstructionError(f"SIFT finds no model of {len(names)} images in {images}")
        summary = summarize(models[0], len(names))
        save_model(folder, models[0], summary, {"settings": to_dict(settings)}, settings.keep_outliers)
    return MappingResult(models[0], summary, ())


def map_sift(
    database: Path, images: Path, scratch: Path, settings: ReconstructionSettings, names: list[str] | None = None
) -> list[pycolmap.Reconstruction]:
    """Models of a database with features and matches, of some of its images if named."""
    scratch.mkdir(parents=True, exist_ok=True)
    extra = {"image_names": names} if names else None
    return map_incrementally(database, images, scratch, settings, settings.camera.refine, extra)
