"""The built-in scene: a small town square, rendered with exact ground truth."""

from pdc_sfm.scenes.camera import Camera
from pdc_sfm.scenes.conditions import Conditions
from pdc_sfm.scenes.flow import flow_between, flow_from_depth
from pdc_sfm.scenes.layout_aachen import write_aachen
from pdc_sfm.scenes.layout_plain import read_cameras, read_depth, write_scene
from pdc_sfm.scenes.produce import take_pictures
from pdc_sfm.scenes.render import Rendering, render
from pdc_sfm.scenes.settings import SceneSettings
from pdc_sfm.scenes.town import Scene, build_scene
from pdc_sfm.scenes.truth import SceneTruth
from pdc_sfm.scenes.walk import Shot, plan_shots

__all__ = [
    "Camera",
    "Conditions",
    "Rendering",
    "Scene",
    "SceneSettings",
    "SceneTruth",
    "Shot",
    "build_scene",
    "flow_between",
    "flow_from_depth",
    "plan_shots",
    "read_cameras",
    "read_depth",
    "render",
    "take_pictures",
    "write_aachen",
    "write_scene",
]
