"""From a pair list to hloc files: the function behind `pdc-sfm match` and the hloc plugin."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.device import Precision, check_device, require_device
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.engine.given_keypoints import GivenKeypoints
from pdc_sfm.engine.loop import LoopReport, match_on
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.engine.work import PairMatcher, PairWork, pairs_together
from pdc_sfm.errors import FormatError, ImageError
from pdc_sfm.files import exclusive
from pdc_sfm.images import fitted_size
from pdc_sfm.matches.masks import Masks
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.snap import SnapSettings
from pdc_sfm.paths import keep_apart
from pdc_sfm.pixels import Size
from pdc_sfm.settings import require, require_file_name, to_dict
from pdc_sfm.store.image_marks import check_same_images
from pdc_sfm.store.journal import open_raw_store
from pdc_sfm.store.pair_lists import Pair, check_keys, read_pairs, unique_pairs
from pdc_sfm.tracks.assemble import Outputs, Summary, aggregate
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.workers import Engine, RaySettings, open_pool

Overwrite = Literal["no", "tracks", "all"]


@dataclass(frozen=True)
class MatchingSettings:
    """Everything about matching a pair list. `device` and `memory` to `ray` change the speed only."""

    output: str = "matches-pdc"  # names the files: feats_{output}.h5 and {output}_{pair list}.h5
    weights: str | None = None  # a weights file; null: the built-in model
    device: str = "auto"  # cpu, cuda, cuda:1 ..., or auto: a GPU if there is one
    precision: Precision = "float32"  # of convolutions; lower ones are faster on a GPU and change results a little
    codes: Literal["float32", "float16"] = (
        "float32"  # type of the codes in memory; float16: twice as many fit, matches move < 0.001 px
    )
    memory: str = "4GB"  # for codes of images that later pairs use again
    readers: int = 2  # threads that read images ahead
    batch: int = 1  # pairs of equal sizes at a time
    # local: this process; ray: several workers, each with its own memory=, on this machine or a cluster
    # (docs/scale.md)
    engine: Engine = "local"
    ray: RaySettings = field(default_factory=RaySettings)
    # keypoints given by --features-ref are matched by the flow at them (flow), or take the nearest match (assign)
    keypoints: Literal["flow", "assign"] = "flow"
    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=SelectSettings)
    snap: SnapSettings = field(default_factory=SnapSettings)
    tracks: TrackSettings = field(default_factory=TrackSettings)

    def __post_init__(self) -> None:
        require_file_name(self.output, "output")
        require(parse_bytes(self.memory) > 0, f"memory={self.memory} must be positive")
        require(0 <= self.readers <= 64, f"readers={self.readers} must be between 0 and 64")
        require_device(self.device, self.precision)
        require(self.batch >= 1, f"batch={self.batch} must be at least 1")


@dataclass(frozen=True)
class MatchResult:
    """The files of a run, and what was left out."""

    features: Path
    matches: Path
    raw: Path  # the journal of raw matches, for refinement and for other settings of `tracks`
    pairs: int  # distinct pairs of the list
    loop: LoopReport
    summary: Summary | None  # None: the files were there already
    repeated: int  # lines of the list that repeat a pair
    with_itself: int  # lines that pair an image with itself

    @property
    def complete(self) -> bool:
        """Whether every pair was matched."""
        return not self.loop.bad


def match_pairs(
    images: Path | str,
    pairs: Path | str | Sequence[Pair],
    output: Path | str,
    settings: MatchingSettings | None = None,
    *,
    features: Path | str | None = None,
    matches: Path | str | None = None,
    features_ref: Sequence[Path | str] = (),
    masks: Path | str | None = None,
    matcher: PairMatcher | None = None,
    overwrite: Overwrite = "no",
    strict: bool = False,
    wait: bool = False,
) -> MatchResult:
    """Match all pairs of a list and write hloc's feature and match files.

    After an interruption the same call continues. `features_ref` are feature files whose keypoints are kept; so are those
    of the feature file itself, if it exists. Nothing is matched where a mask of the folder `masks` is black. Without
    `matcher` the network is loaded.
    """
    settings = settings or MatchingSettings()
    if matcher is None:
        check_device(settings.device, settings.precision, settings.engine)
    images = Path(images)
    if not images.is_dir():
        raise ImageError(f"{images} is not a folder of images")
    listed, stem = (read_pairs(pairs), Path(pairs).stem) if isinstance(pairs, Path | str) else (list(pairs), "pairs")
    unique = unique_pairs(listed)
    if not unique:
        raise FormatError(f"{pairs if isinstance(pairs, Path | str) else 'the list'} holds no pair of two images")
    check_keys(unique)
    references = tuple(Path(path) for path in features_ref)
    features = Path(features or Path(output) / f"feats_{settings.output}.h5")
    matches = Path(matches or Path(output) / f"{settings.output}_{stem}.h5")
    raw = matches.with_suffix(".raw")
    listed_in = [Path(pairs)] if isinstance(pairs, Path | str) else []
    keep_apart(images=[images], inputs=listed_in, files=[features, matches], replaced=[raw])
    # the feature file may be one of these: it is extended
    keep_apart(inputs=references, files=[matches], replaced=[raw])
    keep_apart(images=[masks] if masks is not None else [], files=[features, matches], replaced=[raw])
    given = GivenKeypoints(references, unique) if references and settings.keypoints == "flow" else None
    masking = Masks(masks) if masks is not None else None
    unmasked = masking.missing(dict.fromkeys(name for pair in unique for name in pair)) if masking else None
    made_by = _made_by(settings, matcher, given) | ({"masks": masking.digest()} if masking else {})
    recorded = {**made_by, "tracks": to_dict(settings.tracks)}
    uncertainty = functools.partial(_uncertainty, settings)
    covered = masking.covered if masking else None
    outputs = Outputs(features, matches, recorded, settings.tracks, references, uncertainty, covered)
    with open_raw_store(raw, made_by, overwrite=overwrite == "all", wait=wait) as store:
        listed_images = (name for pair in unique for name in pair)
        check_same_images(raw, images, listed_images, {name for pair in store.pairs() for name in pair})
        loop = LoopReport()
        if any(pair not in store for pair in unique):
            make = functools.partial(_work, settings, images, matcher, given, strict, masking)
            if settings.engine == "ray":
                weights = WeightsFile.of(settings.weights) if matcher is None else None
                make = functools.partial(_work, settings, images.absolute(), matcher, given, strict, masking, weights)
            with open_pool(settings.engine, settings.ray, make, device=settings.device, block=settings.batch) as pool:
                loop = match_on(pool, unique, store, memory=parse_bytes(settings.memory))
        if unmasked:
            loop.remarks[unmasked] = None
        store.flush()
        with exclusive(features, wait=True):
            summary = aggregate(store, unique, outputs, overwrite=overwrite != "no")
    with_itself = sum(a == b for a, b in listed)
    return MatchResult(
        features, matches, raw, len(unique), loop, summary, len(listed) - len(unique) - with_itself, with_itself
    )


def _uncertainty(settings: MatchingSettings, size: Size) -> float:
    """A pixel of what the network saw, in pixels of the image; cells round keypoints by half their tolerance."""
    seen = fitted_size(size, settings.dense.min_side, settings.dense.max_side)
    rounding = settings.tracks.max_error / 2 if settings.tracks.rule == "hloc" else 0.0
    return max(1.0, max(size) / max(seen), rounding)


def _made_by(settings: MatchingSettings, matcher: PairMatcher | None, given: GivenKeypoints | None) -> dict[str, Any]:
    """What decides the raw matches, as plain values."""
    made_by: dict[str, Any] = {"dense": to_dict(settings.dense), "select": to_dict(settings.select)}
    if settings.precision != "float32":
        made_by["precision"] = settings.precision
    if settings.codes != "float32":
        made_by["codes"] = settings.codes
    if matcher is None:
        made_by["weights"] = WeightsFile.of(settings.weights).fingerprint
        made_by["scores"] = "probability"  # of version 0.1 they were held below 0.573: not to be mixed
    else:
        made_by["matcher"] = getattr(matcher, "identity", type(matcher).__name__)
    if given is not None:
        made_by |= {"snap": to_dict(settings.snap), "keypoints": given.digest()}
    return made_by


def _work(
    settings: MatchingSettings,
    images: Path,
    matcher: PairMatcher | None,
    given: GivenKeypoints | None,
    strict: bool,
    masks: Masks | None = None,
    weights: WeightsFile | None = None,
) -> PairWork:
    """What each worker has: the matcher, in its own memory, and the images. `weights` on other machines."""
    matcher = matcher or _load(replace(settings, weights=weights.here()) if weights else settings)
    match_many = given.match_many(matcher) if given else pairs_together(matcher)
    return PairWork(
        images,
        matcher,
        memory=parse_bytes(settings.memory),
        readers=settings.readers,
        batch=settings.batch,
        strict=strict,
        match_many=masks.over(match_many) if masks else match_many,
        masks=masks,
    )


def _load(settings: MatchingSettings) -> PairMatcher:
    from pdc_sfm.matcher import PairSettings, load_matcher

    match = PairSettings(settings.dense, settings.select, settings.snap)
    return load_matcher(settings.weights, match, settings.device, settings.precision, settings.codes)
