"""Probabilistic dense matching (PDC-Net+) for structure-from-motion and visual localization."""

__version__ = "0.1.0"

_PUBLIC = ("match_images", "load_matcher", "Matcher", "PairSettings")


def __getattr__(name: str) -> object:
    """`pdc_sfm.match_images` and its kin, imported when first used: importing the package stays free of cost."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'pdc_sfm' has no attribute '{name}'")
    from pdc_sfm import matcher

    return getattr(matcher, name)
