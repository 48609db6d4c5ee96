"""Images that see the same points."""

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.covisibility import covisibility_clusters, most_covisible, pairs_from_covisibility
from pdc_sfm.colmap.io.point_lookup import PointLookup


def model_of(tracks, images):
    """A model whose points are seen by the given images (by number, from 1)."""
    model = pycolmap.Reconstruction()
    camera = pycolmap.Camera(camera_id=1, model="SIMPLE_PINHOLE", width=9, height=9, params=[9, 4, 4])
    model.add_camera_with_trivial_rig(camera)
    for i in range(1, images + 1):
        image = pycolmap.Image(name=f"{i}.jpg", keypoints=np.zeros((len(tracks), 2)), camera_id=1, image_id=i)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d())
    for number, track in enumerate(tracks):
        elements = [pycolmap.TrackElement(i, number) for i in track]
        model.add_point3D(np.zeros(3), pycolmap.Track(elements))
    return model


def test_clusters_are_connected_through_other_images_and_sorted_by_size():
    lookup = PointLookup(model_of([(1, 2), (2, 3), (4, 5)], images=6))
    clusters = covisibility_clusters([5, 1, 6, 3, 2, 4], lookup)
    assert clusters == [[1, 3, 2], [5, 4], [6]]


def test_only_retrieved_images_connect():
    lookup = PointLookup(model_of([(1, 2), (2, 3)], images=3))
    assert covisibility_clusters([1, 3], lookup) == [[1], [3]]


def test_pairs_are_ranked_by_shared_points():
    model = model_of([(1, 2), (1, 2), (1, 3), (2, 3), (1, 4), (1, 4), (1, 4)], images=5)
    pairs = pairs_from_covisibility(model, 2)
    by_image = {}
    for first, second in pairs:
        by_image.setdefault(first, []).append(second)
    assert by_image["1.jpg"] == ["4.jpg", "2.jpg"]
    assert by_image["3.jpg"] == ["1.jpg", "2.jpg"]
    assert by_image["4.jpg"] == ["1.jpg"]
    assert "5.jpg" not in by_image


def test_a_point_seen_twice_by_an_image_counts_once():
    images, points = np.array([0, 0, 1, 0, 2, 0, 2]), np.array([0, 0, 0, 1, 1, 2, 2])
    assert most_covisible(["a", "b", "c"], images, points, 1)[0] == ("a", "c")


def test_a_model_without_points_has_no_pairs():
    assert pairs_from_covisibility(model_of([], images=3), 5) == []
