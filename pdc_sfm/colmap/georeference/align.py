"""Aligns a map with known positions, control points or distances; what does not fit is reported and not used."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.georeference.control_points import ControlPoint, known_scale, place_control
from pdc_sfm.colmap.georeference.held_axes import held_axes
from pdc_sfm.colmap.georeference.local_origin import LocalOrigin, swapped
from pdc_sfm.colmap.georeference.prior_adjustment import adjust_to_positions
from pdc_sfm.colmap.georeference.similarity import Axes, PlaceFit, Places, Similarity, fit_similarity, lie_on_a_line
from pdc_sfm.colmap.io.frame import MapFrame
from pdc_sfm.settings import require
from pdc_sfm.store.control import Control
from pdc_sfm.store.positions import VERTICAL, Positions, positions_of_exif, read_positions

FEWEST = 3  # places that fix a similarity
GPS_SIGMA = 5.0  # metres, horizontal, if not stated: what phones reach under open sky (gps.gov: 4.9 m)
UNKNOWN = 1000.0  # metres: sigma of an unknown altitude, larger than any map, so that it has no weight
MAX_SCALE_SIGMA = 0.2  # relative: at five sigmas the scale could then be zero
MIN_AGREEING = 0.5  # of the places: with fewer, the majority contradicts the map
MAX_WRONG = 0.2  # of the places: single receivers fail now and then; if more are off, the map itself may be wrong
UPSIDE_DOWN = (
    0.5  # mean of the z of what is down in a photograph, 1 if all are held level in a frame whose z points down
)
BETTER = 0.5  # of the median residual: exchanged axes must halve it, as noise in the fit does not
RIG_SIGMA = 0.002  # relative, of the scale from a calibrated rig: a millimetre of a baseline of half a metre
MOST_NAMED = 5  # positions in one line


@dataclasses.dataclass(frozen=True)
class PositionSettings:
    """How known positions of the images are used."""

    use_exif: bool = True  # use GPS in EXIF if no --positions are given
    adjust: bool = (
        True  # positions are priors of a last bundle adjustment; false: they only move, rotate and scale the map
    )
    sigma: float | None = None  # metres, horizontal error of positions without one; null: estimated from the fit

    def __post_init__(self) -> None:
        require(self.sigma is None or self.sigma > 0, f"sigma={self.sigma} must be positive, in metres")


@dataclasses.dataclass(frozen=True)
class Georeference:
    """The frame of a map, if it has one; what one should know; and what speaks against the map or the positions."""

    frame: MapFrame | None = None
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def georeference(
    model: pycolmap.Reconstruction,
    images: Path,
    positions: Positions | None,
    control: Control | None = None,
    settings: PositionSettings | None = None,
    bundle: pycolmap.BundleAdjustmentOptions | None = None,
    has_metres: bool = False,
) -> Georeference:
    """Bring a model into metres, or one that is in metres (`has_metres`) to its place.

    With `bundle`, positions are priors of an adjustment with these options (not of rigs: COLMAP takes one prior a frame).

    Three control points or more decide alone; else three positions or more, with the scale of known distances where there
    are some; else such distances give the scale alone.
    """
    settings = settings or PositionSettings()
    job = _Job(model, images, settings)
    points: dict[str, ControlPoint] = {}
    scale = (1.0, RIG_SIGMA) if has_metres else None
    if control is not None:
        points, said = place_control(model, control)
        measured_scale, more, doubts = known_scale(model, control, points)
        scale = measured_scale or scale
        job.remarks += [*said, *more]
        job.doubts += doubts
        measured = {name: point for name, point in points.items() if name in control.points}
        if len(measured) >= FEWEST:
            return job.by_control(control, measured, scale)
        if control.points:
            job.remarks.append(f"{len(measured)} control points can be used: at least {FEWEST} are needed")
    if positions is not None and positions.places:
        found = job.by_positions(positions, scale, bundle if settings.adjust else None)
        if found.frame is not None:
            return found
    return job.result() if has_metres else job.by_scale(scale)


class _Job:
    """One model, and what is said of it on the way."""

    def __init__(self, model: pycolmap.Reconstruction, images: Path, settings: PositionSettings):
        self.model, self.images, self.settings = model, images, settings
        self.ids = {model.image(i).name: i for i in sorted(model.reg_image_ids())}
        self.remarks: list[str] = []
        self.doubts: list[str] = []

    def result(self, frame: MapFrame | None = None) -> Georeference:
        return Georeference(frame, tuple(self.remarks), tuple(self.doubts))

    def by_scale(self, scale: tuple[float, float] | None) -> Georeference:
        if scale is None:
            return self.result()
        self._move(Similarity(scale[0], np.eye(3), np.zeros(3)))
        self.remarks.append(f"in metres by known distances: scale known to {scale[1]:.1%}")
        return self.result(MapFrame(None, scale[1], "distances", 0.0))

    def by_control(
        self, control: Control, points: dict[str, ControlPoint], scale: tuple[float, float] | None
    ) -> Georeference:
        given = [control.points[name] for name in points]
        world = LocalOrigin.of(given, control.geographic)
        source, target = np.array([point.place for point in points.values()]), world(given)
        rough = float(np.linalg.norm(np.ptp(target, axis=0)) / max(np.linalg.norm(np.ptp(source, axis=0)), 1e-12))
        sigma = [np.hypot(control.sigmas[name], rough * point.sigma) for name, point in points.items()]
        places = Places(source, target, np.repeat(np.array(sigma)[:, None], 3, axis=1), is_known=True)
        fit = fit_similarity(places, self._axes(control.geographic, target), scale)
        reason = _contradiction(fit, "control points") if fit else "the control points do not tell where the map lies"
        if fit is None or reason:
            self.doubts.append(f"{reason}; they are not used")
            return self.result()
        self._move(fit.similarity)
        return self._tell(fit, places, list(points), world, "control points")

    def by_positions(
        self,
        positions: Positions,
        scale: tuple[float, float] | None,
        bundle: pycolmap.BundleAdjustmentOptions | None,
    ) -> Georeference:
        world = LocalOrigin.of(
            list(positions.places.values()), positions.geographic
        )  # one for all models of these images
        positions = positions.of(self.ids)
        names = list(positions.places)
        if not names:
            self.remarks.append(f"{positions.source} has no position of an image of the map")
            return self.result()
        if len(names) < len(self.ids):
            self.remarks.append(
                f"{positions.source} has positions of {len(names)} of {len(self.ids)} images; the others follow the map"
            )
        if len(names) < FEWEST:
            self.remarks.append(f"the map has no metres: at least {FEWEST} positions are needed")
            return self.result()
        places = self._places(positions, world(list(positions.places.values())))
        axes = self._axes(positions.geographic, places.target)
        fit = fit_similarity(places, axes, scale)
        what = f"positions ({positions.source})"
        if fit is None or fit.scale_sigma > MAX_SCALE_SIGMA:
            known = "nothing" if fit is None else f"the scale to {fit.scale_sigma:.0%} only"
            self.remarks.append(
                f"the {what} are not used: they lie too near to each other for their errors, and tell {known}"
            )
            return self.result()
        reason = self._exchanged(positions, fit, axes) or _contradiction(fit, what)
        if reason:
            self.doubts.append(f"{reason}; they are not used, and the map has no metres")
            return self.result()
        self._move(fit.similarity)
        if bundle is not None and all(rig.num_sensors() == 1 for rig in self.model.rigs.values()):
            sigma = fit.factor * places.sigma
            used = {self.ids[name]: (places.target[k], sigma[k]) for k, name in enumerate(names) if fit.good[k]}
            if not adjust_to_positions(self.model, used, bundle):
                self.remarks.append("positions are no priors: with them the images would agree less with each other")
            places = self._places(positions, places.target)
            again = fit_similarity(places, self._axes(positions.geographic, places.target), scale)
            if again is not None:
                fit = again
                self._move(fit.similarity)
        if not positions.geographic and self._hangs():
            self.remarks.append(
                f"in the frame of the {what} most photographs are upside down (z points down): if z is up there, two axes, "
                "or the sign of one, are exchanged"
            )
        return self._tell(fit, places, names, world, what)

    def _hangs(self) -> bool:
        """Whether photographs, as they were held, show -z above: cameras at one height fit positions of exchanged axes so."""
        return float(held_axes(self.model, self.ids, self.images).down[:, 2].mean()) > UPSIDE_DOWN

    def _places(self, positions: Positions, target: np.ndarray) -> Places:
        """Camera centers as the model has them now, and where they are said to be."""
        source = np.array([self.model.image(self.ids[name]).projection_center() for name in positions.places])
        usual = self.settings.sigma or (
            float(np.median([flat for flat, _ in positions.sigmas.values()])) if positions.sigmas else None
        )
        plain = usual or (GPS_SIGMA if positions.geographic else 1.0)
        alike = plain, plain * (VERTICAL if positions.geographic else 1.0)
        said = np.array([positions.sigmas.get(name, alike) for name in positions.places])
        sigma = np.stack((said[:, 0], said[:, 0], said[:, 1]), axis=1)
        sigma[np.isnan([place[2] for place in positions.places.values()]), 2] = UNKNOWN
        return Places(source, target, sigma, is_known=usual is not None)

    def _axes(self, geographic: bool, target: np.ndarray) -> Axes | None:
        """How photographs are held. It tells which way is up if the axes of the world are known, or if places leave it open."""
        if not geographic and not lie_on_a_line(target):
            return None
        return held_axes(self.model, self.ids, self.images)

    def _exchanged(self, positions: Positions, fit: PlaceFit, axes: Axes | None) -> str:
        """What to say if the positions fit much better with two axes exchanged: as their mirror image."""
        other = swapped(positions)
        if other is None or len(other) <= FEWEST:
            return ""
        mirrored = self._places(positions, LocalOrigin.of(other, positions.geographic)(other))
        tried = fit_similarity(mirrored, axes)
        if tried is None or not tried.is_upright or tried.scale_sigma > MAX_SCALE_SIGMA or _contradiction(tried, ""):
            return ""
        worse = not fit.is_upright or fit.good.mean() < 1 - MAX_WRONG <= tried.good.mean()
        if not worse and _median(tried) >= BETTER * _median(fit):
            return ""
        what = "latitude and longitude" if positions.geographic else "two axes (or the sign of one)"
        return f"{what} are exchanged in the positions ({positions.source}), which fit the map as its mirror image"

    def _tell(self, fit: PlaceFit, places: Places, names: Sequence[str], world: LocalOrigin, what: str) -> Georeference:
        off = np.linalg.norm(fit.similarity(places.source) - places.target, axis=1)
        off = np.where(places.sigma[:, 2] >= UNKNOWN, _flat(fit, places), off)
        wrong = sorted(np.flatnonzero(~fit.good).tolist(), key=lambda k: -off[k])
        residual = float(np.sqrt(np.mean(off[fit.good] ** 2)))
        frame = MapFrame(world.origin, fit.scale_sigma, what, residual, world.offset)
        east = "x east, y north, z up, origin {:.5f} {:.5f} {:.0f} m"
        at = "in the given frame" if world.origin is None else east.format(*world.origin)
        self.remarks.append(
            f"in metres, {at}: {int(fit.good.sum())} of {len(names)} {what} agree within {residual:.2g} m, scale known to "
            f"{fit.scale_sigma:.1%}"
        )
        if any(world.offset):
            self.remarks.append("coordinates are less {:.0f} {:.0f} {:.0f}, which frame.json has".format(*world.offset))
        if wrong:
            named = ", ".join(f"{names[k]} ({_length(off[k])} off)" for k in wrong[:MOST_NAMED])
            more = f" and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
            line = f"not followed, {len(wrong)} of {len(names)} {what} that disagree with the map: {named}{more}"
            if len(wrong) > MAX_WRONG * len(names):
                self.doubts.append(f"{line}; they are wrong, or parts of the map are")
            else:
                self.remarks.append(line)
        return self.result(frame)

    def _move(self, similarity: Similarity) -> None:
        self.model.transform(
            pycolmap.Sim3d(similarity.scale, pycolmap.Rotation3d(similarity.rotation), similarity.translation)
        )


def _contradiction(fit: PlaceFit, what: str) -> str:
    """Why places are not followed; nothing if they are."""
    agreeing, count = int(fit.good.sum()), len(fit.good)
    if agreeing >= max(FEWEST, MIN_AGREEING * count):
        return ""
    return f"the {what} contradict the map: {agreeing} of {count} agree with it"


def _median(fit: PlaceFit) -> float:
    return float(np.median(fit.residuals)) * fit.factor


def _flat(fit: PlaceFit, places: Places) -> np.ndarray:
    return np.linalg.norm((fit.similarity(places.source) - places.target)[:, :2], axis=1)


def _length(metres: float) -> str:
    return f"{metres / 1000:.3g} km" if metres >= 1000 else f"{metres:.3g} m"


def find_positions(
    given: Path | str | Positions | None, images: Path, names: Collection[str], settings: PositionSettings
) -> Positions | None:
    """Positions of the named images: those given, or what the photographs say; None if neither is to be used."""
    if given is None:
        return positions_of_exif(images, names) if settings.use_exif else None
    read = given if isinstance(given, Positions) else read_positions(given)
    return read.some_of(names)


def georeference_models(
    models: Sequence[pycolmap.Reconstruction],
    images: Path,
    positions: Positions | None,
    control: Control | None,
    settings: PositionSettings,
    bundle: pycolmap.BundleAdjustmentOptions,
    has_metres: bool = False,
) -> list[Georeference]:
    """Each model, in one frame; the first is adjusted to the positions too. `has_metres`: they are in metres before."""
    found = [
        georeference(model, images, positions, control, settings, None if k else bundle, has_metres)
        for k, model in enumerate(models)
    ]
    read = positions.remarks if positions is not None else ()
    return [dataclasses.replace(found[0], remarks=read + found[0].remarks), *found[1:]]
