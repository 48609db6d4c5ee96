"""Dense clouds: depth of every image from the flows to its partners and from the images themselves, checked and fused."""

from pdc_sfm.fusion.run import DenseCloud, densify
from pdc_sfm.fusion.settings import DensifySettings

__all__ = ["DenseCloud", "DensifySettings", "densify"]
