"""PDC-Net+ inside hloc, without changing hloc.

Four steps of hloc by their names, with hloc's signatures, so that a script changes by one import:

    from pdc_sfm.hloc_plugin import localize_sfm, match_dense, reconstruction, triangulation

    features, matches = match_dense.main(match_dense.confs["pdcnet_plus_aachen"], pairs, images, export_dir=outputs)
    model = triangulation.main(sfm_dir, reference_model, images, pairs, features, matches)

`match_dense` is this module itself. docs/hloc.md says why the other steps are replaced too. After `register()`, hloc's own
`match_dense.main` runs the matcher by conf["model"]["name"] = "pdcnet_plus"; it then encodes both images anew for every
pair, which `main` does not.
"""

from __future__ import annotations

import copy
import logging
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.localization import localize_sfm
from pdc_sfm.colmap.mapping import reconstruction, triangulation
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import from_dict

__all__ = ["confs", "localize_sfm", "main", "match_dense", "reconstruction", "register", "triangulation"]

NAME = "pdcnet_plus"
match_dense = sys.modules[__name__]

log = logging.getLogger(__name__)


def _conf(output: str, max_error: float, cell_size: float, weights: str | None, side: int, paper: bool = False) -> dict:
    """A configuration in hloc's form. `preprocessing` is what hloc itself does to images before our matcher.

    `paper`: P_1 > 0.1, both directions concatenate, matches rounded to cells, the flow as the network gives it.
    """
    model = {"select": {"threshold": 0.1, "directions": "both"}, "tracks": {"rule": "hloc"}} if paper else {}
    dense = {"subpixel": False, "method": "direct"} if paper else {}
    return {
        "output": output,
        "model": {"name": NAME, "weights": weights, **model, "dense": {"min_side": side, "max_side": None, **dense}},
        "preprocessing": {"grayscale": False, "resize_max": None, "dfactor": 1},
        "max_error": max_error,
        "cell_size": cell_size,
    }


# weights: the path of a PDC-Net+ checkpoint, to be filled in; None is the built-in model
confs: dict[str, dict[str, Any]] = {
    # every point: best for small scenes
    "pdcnet_plus": _conf("matches-pdcnet_plus", 1, 1, "PDCNet_plus_megadepth.pth.tar", 480),
    # the paper's Aachen settings; call `main` with max_kps=None to keep all matches, as the paper does
    "pdcnet_plus_aachen": _conf("matches-pdcnet_plus_aachen", 1, 1, "PDCNet_plus_megadepth.pth.tar", 600, paper=True),
    # the paper's matches between SuperPoint keypoints (NMS 4 at a smallest side of 600), given as features_ref
    "pdcnet_plus_superpoint": _conf(
        "matches-pdcnet_plus_superpoint", 4, 4, "PDCNet_plus_megadepth.pth.tar", 600, paper=True
    ),
    # the built-in model, which needs no download
    "compact": _conf("matches-pdc_compact", 1, 1, None, 480),
    # the same for maps of thousands of images: one keypoint in 8 x 8 pixels
    "compact_aachen": _conf("matches-pdc_compact_aachen", 2, 8, None, 600),
}


def main(
    conf: Mapping[str, Any],
    pairs: Path | str,
    image_dir: Path | str,
    export_dir: Path | str | None = None,
    matches: Path | str | None = None,
    features: Path | str | None = None,
    features_ref: Path | str | Sequence[Path | str] | None = None,
    max_kps: int | None = 8192,
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """hloc's `match_dense.main`: match the pairs, write both files, return (features, matches).

    `features` is a path (a Path, or a word that ends in .h5), or as in hloc what its file name begins with.
    """
    if features is not None and (isinstance(features, Path) or features.endswith(".h5")):
        if matches is None:
            raise SettingsError("give both features and matches as paths, or neither")
    elif export_dir is None:
        raise SettingsError("export_dir is needed unless features and matches are both given as paths")
    else:
        features = Path(export_dir) / f"{'feats_' if features is None else features}{conf['output']}.h5"
        matches = matches or Path(export_dir) / f"{conf['output']}_{Path(pairs).stem}.h5"
    references = [features_ref] if isinstance(features_ref, Path | str) else list(features_ref or ())
    result = match_pairs(
        image_dir,
        Path(pairs),
        Path(features).parent,
        settings_of(conf, max_kps),
        features=features,
        matches=matches,
        features_ref=references,
        overwrite="all" if overwrite else "no",
    )
    for reason in result.loop.bad.values():
        log.warning(f"left out: {reason}")
    return result.features, result.matches


def settings_of(conf: Mapping[str, Any], max_kps: int | None = 8192) -> MatchingSettings:
    """Our settings from an hloc configuration. Other keys of `model` than the name are settings of a run."""
    model = {key: value for key, value in conf["model"].items() if key != "name"}
    if conf["model"]["name"] != NAME:
        raise SettingsError(f"this plugin runs the model {NAME}, not {conf['model']['name']}: use hloc's match_dense")
    tracks = {"max_error": conf["max_error"], "cell_size": conf["cell_size"], "max_keypoints": max_kps}
    tracks |= model.pop("tracks", {})
    return from_dict(MatchingSettings, {"output": conf["output"], **model, "tracks": tracks})


def register() -> dict[str, dict[str, Any]]:
    """Make `pdcnet_plus` a matcher of hloc: adds `hloc.matchers.pdcnet_plus` and our confs to hloc's `match_dense`."""
    try:
        import hloc.match_dense
        import hloc.matchers
        from hloc.utils.base_model import BaseModel
    except ImportError as error:
        raise SettingsError(
            f"hloc cannot be imported ({error}): it is an optional companion, install it first"
        ) from None
    name = f"hloc.matchers.{NAME}"
    if name not in sys.modules:
        module = types.ModuleType(name, "PDC-Net+, registered by pdc_sfm.hloc_plugin.")
        matcher = _matcher_class(BaseModel, name)
        setattr(module, matcher.__name__, matcher)
        sys.modules[name] = module
        setattr(hloc.matchers, NAME, module)
        for key, conf in confs.items():
            hloc.match_dense.confs.setdefault(key, copy.deepcopy(conf))
    return hloc.match_dense.confs


def _matcher_class(base: type, module: str) -> type:
    import torch

    class PDCNetPlus(base):
        """hloc's contract: images (1, 3, H, W) in [0, 1] to keypoints in their pixels, and scores."""

        default_conf = {"weights": None}  # noqa: RUF012 - hloc's own manner
        required_inputs = ["image0", "image1"]  # noqa: RUF012

        def _init(self, conf: Mapping[str, Any]) -> None:
            from pdc_sfm.matcher import PairSettings, load_matcher

            settings = settings_of({"output": "hloc", "max_error": 1, "cell_size": 1, "model": {"name": NAME, **conf}})
            match = PairSettings(settings.dense, settings.select, settings.snap)
            self.matcher = load_matcher(settings.weights, match, settings.device, settings.precision)

        def _forward(self, data: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            codes = [self.matcher.encode(_to_image(data[key]), key) for key in ("image0", "image1")]
            found = self.matcher.match(*codes)
            device = data["image0"].device
            names = ("keypoints0", "keypoints1", "scores")
            return {name: torch.from_numpy(getattr(found, name).copy()).to(device) for name in names}

    PDCNetPlus.__module__ = module  # hloc takes the one class that its module defines
    return PDCNetPlus


def _to_image(tensor: Any) -> Any:
    """(1, C, H, W) in [0, 1] -> (H, W, 3) uint8."""
    pixels = (tensor[0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
    return pixels.repeat(3, axis=2) if pixels.shape[2] == 1 else pixels
