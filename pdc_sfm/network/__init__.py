"""PDC-Net+ and its relatives: an image becomes an `ImageCode`, two codes become a flow with its distribution. Torch only."""

from pdc_sfm.network.code import ImageCode, LevelOutput
from pdc_sfm.network.image import prepare_image
from pdc_sfm.network.inference import for_inference
from pdc_sfm.network.model import PDCNet, upsample_estimate
from pdc_sfm.network.settings import COMPACT, PDCNET, PDCNET_PLUS, MixtureSettings, NetworkSettings

__all__ = [
    "COMPACT",
    "PDCNET",
    "PDCNET_PLUS",
    "ImageCode",
    "LevelOutput",
    "MixtureSettings",
    "NetworkSettings",
    "PDCNet",
    "for_inference",
    "prepare_image",
    "upsample_estimate",
]
