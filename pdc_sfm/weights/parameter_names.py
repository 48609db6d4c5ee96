"""Maps parameter names in the authors' checkpoints to ours."""

from __future__ import annotations

import re
from collections.abc import Iterable

# authors' name (regular expression) -> ours; the first that matches at the start of a name is used
_TABLE = (
    (r"decoder(\d)\.(?:final|predict_flow)\.", r"levels.\1.decoder.output."),
    (r"decoder(\d)\.", r"levels.\1.decoder."),
    (r"corr_uncertainty_decoder(\d)\.predict_uncertainty\.", r"levels.\1.slices.output."),
    (r"corr_uncertainty_decoder(\d)\.", r"levels.\1.slices."),
    (r"uncertainty_decoder(\d)\.predict_uncertainty_final\.", r"levels.\1.predictor.output."),
    (r"uncertainty_decoder(\d)\.", r"levels.\1.predictor."),
    (r"deconv4\.", "levels.3.up_flow."),
    (r"deconv2\.", "levels.1.up_flow."),
    (r"upfeat2\.", "levels.1.up_feature."),
    (r"dc_conv7\.", "levels.3.refinement.output."),
    (r"l_dc_conv7\.", "levels.1.refinement.output."),
    (r"dc_conv([1-6])\.", lambda m: f"levels.3.refinement.layers.{int(m[1]) - 1}."),
    (r"l_dc_conv([1-6])\.", lambda m: f"levels.1.refinement.layers.{int(m[1]) - 1}."),
    (r"corr\.corr_module\.filter_initializer\.", "global_gocor."),
    (r"corr\.corr_module\.filter_optimizer\.reg_layer\.", "global_gocor."),
    (r"corr\.corr_module\.filter_optimizer\.label_map_predictor\.weight", "global_gocor.objective.label"),
    (r"corr\.corr_module\.filter_optimizer\.spatial_weight_predictor\.weight", "global_gocor.objective.weight"),
    (r"corr\.corr_module\.filter_optimizer\.target_mask_predictor\.0\.weight", "global_gocor.objective.mask"),
    (r"corr\.corr_module\.filter_optimizer\.", "global_gocor.objective."),
    (r"local_corr\.filter_initializer\.", "local_gocor."),
    (r"local_corr\.filter_optimizer\.label_map_predictor\.weight", "local_gocor.objective.label"),
    (r"local_corr\.filter_optimizer\.spatial_weight_predictor\.weight", "local_gocor.objective.weight"),
    (r"local_corr\.filter_optimizer\.target_mask_predictor\.0\.weight", "local_gocor.objective.mask"),
    (r"local_corr\.filter_optimizer\.", "local_gocor.objective."),
    (r"pyramid_256\.", "backbone_low."),
    (r"pyramid\.", "backbone_high."),
)


def our_name(name: str) -> str | None:
    """The name of a parameter of the authors' checkpoints in our network; None if it is not one of theirs."""
    name = name.removeprefix("module.")  # left by training on several GPUs
    for pattern, ours in _TABLE:
        new, count = re.subn("^" + pattern, ours, name)
        if count:
            return new
    return None


def is_authors(names: Iterable[str]) -> bool:
    """Whether names are those of the authors' PDC-Net family."""
    bare = [name.removeprefix("module.") for name in names]
    return any(n.startswith("pyramid.level_") for n in bare) and any(n.startswith("decoder4.") for n in bare)
