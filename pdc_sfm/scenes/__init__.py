"""The built-in scenes: a small town square, rooms and objects, rendered with exact ground truth."""

from pdc_sfm.scenes.layouts.aachen import write_aachen
from pdc_sfm.scenes.layouts.plain import read_cameras, read_depth, write_scene
from pdc_sfm.scenes.layouts.produce import take_pictures
from pdc_sfm.scenes.layouts.truth import SceneTruth
from pdc_sfm.scenes.layouts.worlds import write_world
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.flow import flow_between, flow_from_depth
from pdc_sfm.scenes.render.renderer import Rendering, render_image
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import SceneSettings, WorldSettings
from pdc_sfm.scenes.town.town import Town, build_scene
from pdc_sfm.scenes.town.walk import plan_shots

__all__ = [
    "Camera",
    "Conditions",
    "Rendering",
    "SceneSettings",
    "SceneTruth",
    "Shot",
    "Town",
    "WorldSettings",
    "build_scene",
    "flow_between",
    "flow_from_depth",
    "plan_shots",
    "read_cameras",
    "read_depth",
    "render_image",
    "take_pictures",
    "write_aachen",
    "write_scene",
    "write_world",
]
