"""Whole runs: the built-in scene with its true cameras, a map of photographs, queries in a map."""

from pdc_sfm.demo.panoramas import panorama_settings
from pdc_sfm.demo.photographs import plan_map, run_photographs
from pdc_sfm.demo.scene import run_scene
from pdc_sfm.demo.settings import DemoSettings, PhotographSettings, demo_settings
from pdc_sfm.demo.table import format_table
from pdc_sfm.demo.videos import video_settings

__all__ = [
    "DemoSettings",
    "PhotographSettings",
    "demo_settings",
    "format_table",
    "panorama_settings",
    "plan_map",
    "run_photographs",
    "run_scene",
    "video_settings",
]
