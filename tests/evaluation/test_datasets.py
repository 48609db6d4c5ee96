"""Miniature datasets in each layout: what is read, at which size errors are measured, how they are averaged."""

import pickle

import cv2
import numpy as np
import pytest
from shift_matcher import MovedMatcher, picture

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.kitti import read_flow
from pdc_sfm.evaluation.datasets.pose_list import read_pose_list
from pdc_sfm.evaluation.runs.flow_datasets import FLOW_DATASETS, count_pairs, evaluate_dataset, open_parts
from pdc_sfm.evaluation.runs.flow_pairs import FlowSettings
from pdc_sfm.evaluation.runs.mma import MmaSettings, evaluate_mma, match_errors
from pdc_sfm.images import write_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.settings import load_settings


def evaluate(name, folder, shift, **options):
    settings = load_settings(FlowSettings, None, FLOW_DATASETS[name].words)
    parts = open_parts(name, folder, None, None)
    return evaluate_dataset(name, parts, MovedMatcher(shift), settings, **options)


def write_table(path, rows):
    lines = ["scene,source_image,target_image,XA,YA,XB,YB"]
    for scene, source, target, a, b in rows:
        columns = (";".join(f"{v:g}" for v in points[:, c]) for points in (a, b) for c in (0, 1))
        lines.append(",".join([scene, source, target, *columns]))
    path.write_text("\n".join(lines) + "\n")


# --- MegaDepth and RobotCar: a table of correspondences -----------------------------------------------------------


@pytest.fixture
def megadepth(tmp_path):
    """Two pairs of 1280x960 images; the target is the reference. 4 and 2 points, moved by (10, 4)."""
    images = tmp_path / "test1600Pairs"
    for name, corner in (("source.png", 200), ("target.png", 100)):
        write_image(images / "0015" / name, picture((1280, 960), corner))
    points = np.array([[100.5, 200], [300, 400], [500, 90], [700, 700.0]])
    rows = [("0015", "source.png", "target.png", p + np.array([10, 4]), p) for p in (points, points[:2])]
    write_table(tmp_path / "test1600Pairs.csv", rows)
    return tmp_path


def test_megadepth_flow_goes_from_target_to_source(megadepth):
    result = evaluate("megadepth", megadepth, (10, 4))
    scores = result.parts["all"]
    assert [image.pixels for image in scores.tally.images] == [4, 2]
    assert result.headline(scores) == {"pck_1": 1, "pck_3": 1, "pck_5": 1}


def test_megadepth_errors_are_pixels_at_a_smaller_side_of_480(megadepth):
    # 5 pixels of 960 are 2.5 of 480
    result = evaluate("megadepth", megadepth, (10, 9))
    assert result.parts["all"].tally.aepe() == pytest.approx(2.5)
    assert result.headline(result.parts["all"]) == {"pck_1": 0, "pck_3": 1, "pck_5": 1}


def test_the_papers_rows_stand_beside_and_are_marked(megadepth):
    said = evaluate("megadepth", megadepth, (10, 4)).text("ours")
    assert "PDC-Net+ (D), published" in said
    assert "72.41" in said
    assert "not measured here" in said


def test_robotcar_has_its_own_names(tmp_path):
    for name, corner in (("a.png", 200), ("b.png", 100)):
        write_image(tmp_path / "images" / "night" / name, picture((64, 48), corner))
    points = np.array([[10.0, 10], [20, 30]])
    write_table(tmp_path / "test6511.csv", [("/", "night/a.png", "night/b.png", points + 2, points)])
    assert evaluate("robotcar", tmp_path, (2, 2)).parts["all"].tally.pck_per_dataset(1.0) == 1


def test_a_limit_is_kept_and_the_length_of_a_stream_unknown(megadepth):
    assert len(evaluate("megadepth", megadepth, (10, 4), limit=1).parts["all"].tally.images) == 1
    assert count_pairs(open_parts("megadepth", megadepth, None, None), None) is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a,b\n1,2\n", "has no column source_image"),
        ("source_image,target_image,XA,YA,XB,YB\nx,y,1;2,1;2,1,1\n", "2 points in the source image, 1 in the target"),
        ("source_image,target_image,XA,YA,XB,YB\nx,y,1;b,1;2,1,1\n", "line 2"),
    ],
)
def test_a_bad_table_is_named(tmp_path, content, complaint):
    (tmp_path / "test1600Pairs").mkdir()
    (tmp_path / "test1600Pairs.csv").write_text(content)
    with pytest.raises(FormatError, match=complaint):
        list(open_parts("megadepth", tmp_path, None, None)["all"])


@pytest.mark.parametrize("name", ["megadepth", "robotcar", "eth3d", "kitti", "hpatches240"])
def test_an_empty_folder_is_no_dataset(tmp_path, name):
    with pytest.raises(FormatError, match=str(tmp_path)):
        sum(len(list(pairs)) for pairs in open_parts(name, tmp_path, None, None).values())


# --- ETH3D ----------------------------------------------------------------------------------------------------------


def test_eth3d_is_averaged_by_sequence(tmp_path):
    for name, corner in (("0.png", 100), ("1.png", 200)):
        write_image(tmp_path / "multiview_testing" / "lakeside" / name, picture((94, 60), corner))
    points = np.array([[10.0, 10], [20, 30], [40, 40], [50, 10]])

    def entry(moved):
        names = [f"multiview_testing/lakeside/{k}.png" for k in (0, 1)]
        columns = {"Xs": moved[:, 0], "Ys": moved[:, 1], "Xt": list(points[:, 0]), "Yt": points[:, 1]}
        return {"target_image": names[0], "source_image": names[1], **columns}

    (tmp_path / "info_ETH3D_files").mkdir()
    right, wrong = points + np.array([3, 0]), points + np.array([3, 2])
    lists = {"lakeside_every_5_rate_of_3": [entry(right)] * 3, "tunnel_every_5_rate_of_3": [entry(wrong)]}
    lists["tunnel_every_5_rate_of_15"] = [entry(wrong)]
    for name, content in lists.items():
        (tmp_path / "info_ETH3D_files" / name).write_bytes(pickle.dumps(content))
    result = evaluate("eth3d", tmp_path, (3, 0))
    assert list(result.parts) == ["interval 3", "interval 15"]
    # one sequence right, one off by 2 pixels: each counts half, though the first has three pairs
    assert result.headline(result.parts["interval 3"]) == pytest.approx({"aepe": 1, "pck_1": 0.5, "pck_5": 1}, abs=1e-6)
    assert result.rows["interval 15"]["PDC-Net+ (H)"]["aepe"] == 3.22


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize("content", [pickle.dumps(Evil()), b"nothing", pickle.dumps([{"Xs": [1]}]), pickle.dumps(3)])
def test_an_eth3d_list_is_never_executed(tmp_path, capsys, content):
    (tmp_path / "info_ETH3D_files").mkdir()
    (tmp_path / "info_ETH3D_files" / "tunnel_every_5_rate_of_3").write_bytes(content)
    with pytest.raises(FormatError, match="rate_of_3"):
        open_parts("eth3d", tmp_path, None, None)
    assert "executed" not in capsys.readouterr().out


# --- KITTI ----------------------------------------------------------------------------------------------------------


def write_flow(path, flow, known):
    image = np.zeros((*known.shape, 3), np.uint16)
    image[..., 2], image[..., 1] = np.rint(flow[..., 0] * 64 + 2**15), np.rint(flow[..., 1] * 64 + 2**15)
    image[..., 0] = known
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image)


@pytest.mark.parametrize(("images", "year"), [("image_2", "kitti2015"), ("colored_0", "kitti2012")])
def test_kitti_flow_is_known_at_some_pixels(tmp_path, images, year):
    folder = tmp_path / "training"
    for number, corner in ((10, 100), (11, 200)):
        write_image(folder / images / f"000000_{number}.png", picture((100, 40), corner))
    flow = np.broadcast_to(np.float32([30, -2.5]), (40, 100, 2)).copy()
    flow[:, 50:] = (90, 10)  # what the matcher below does not see
    known = np.zeros((40, 100), bool)
    known[::2, ::2] = True
    write_flow(folder / "flow_occ" / "000000_10.png", flow, known)
    read, mask = read_flow(folder / "flow_occ" / "000000_10.png")
    assert (read == flow).all()
    assert (mask == known).all()
    result = evaluate("kitti", tmp_path, (30, -2.5))
    headline = result.headline(result.parts[year])
    assert headline["fl"] == 0.5
    assert headline["aepe"] == pytest.approx(np.hypot(60, 12.5) / 2)
    assert result.rows[year]["PDC-Net+ (D)"]["fl"] == {"kitti2015": 12.62, "kitti2012": 6.60}[year]


def test_a_flow_of_another_size_is_refused(tmp_path):
    for number, corner in ((10, 100), (11, 200)):
        write_image(tmp_path / "image_2" / f"000000_{number}.png", picture((100, 40), corner))
    write_flow(tmp_path / "flow_occ" / "000000_10.png", np.zeros((40, 90, 2)), np.ones((40, 90), bool))
    with pytest.raises(FormatError, match="90x40, its image 100x40"):
        evaluate("kitti", tmp_path, (0, 0))


# --- HPatches -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hpatches(tmp_path):
    """v_one: image 1 is seen in all others moved by (6, 0); i_two: not moved; v_talent is left out by D2-Net."""
    for name, step in (("v_one", 6), ("i_two", 0), ("v_talent", 0)):
        for k in range(1, 7):
            write_image(tmp_path / name / f"{k}.ppm", picture((120, 80), 250 if k == 1 else 100))
            if k > 1:
                (tmp_path / name / f"H_1_{k}").write_text(f"1 0 {step}\n0 1 0\n0 0 1\n")
    return tmp_path


def test_hpatches_at_240_stretches_images_and_flow(hpatches):
    # image 1 -> k moves by 6 of 120 pixels, that is 12 of 240; the flow goes back, from k to 1
    result = evaluate("hpatches240", hpatches, (-12, 0))
    scores = result.parts["all"]
    assert scores.summary()["pairs"] == 10  # v_one and v_talent
    by_name = {image.group: image for image in scores.tally.images[:5]}
    assert set(by_name) == {f"1-{k}" for k in range(2, 7)}
    moved = scores.tally.images[:5]  # v_one
    assert all(image.error_sum / image.pixels < 1e-4 for image in moved)
    assert all(image.pixels == 240 * 228 for image in moved)  # 12 columns leave the view
    unmoved = scores.tally.images[5]
    assert unmoved.error_sum / unmoved.pixels == pytest.approx(12)


def test_mma_counts_pairs_of_both_kinds_and_leaves_eight_sequences_out(hpatches):
    result = evaluate_mma(hpatches, MovedMatcher((-6, 0)), MmaSettings(sift=False))
    assert result.summary()["ours"]["all"]["pairs"] == 10
    assert result.accuracy("ours", "v").tolist() == [1] * 10
    assert result.accuracy("ours", "i").tolist() == [0] * 5 + [1] * 5  # off by 6
    assert result.accuracy("ours", "iv").tolist() == [0.5] * 5 + [1] * 5
    assert "viewpoint" in result.text()


def test_only_the_most_confident_matches_are_judged():
    points = np.zeros((3000, 2))
    off = np.zeros((3000, 2))
    off[2000:] = 50  # the least confident are wrong
    errors = match_errors(RawMatches(points, off, np.linspace(1, 0.1, 3000)), np.eye(3))
    assert len(errors) == 2000
    assert errors.max() == 0


# --- YFCC and ScanNet -----------------------------------------------------------------------------------------------

LINE = "a/1.jpg a/2.jpg 0 0 500 0 320 0 500 240 0 0 1 600 0 320 0 600 240 0 0 1 1 0 0 0.5 0 1 0 0 0 0 1 0 0 0 0 1"


def test_a_line_of_superglues_lists(tmp_path):
    (tmp_path / "pairs.txt").write_text(LINE + "\n\n")
    (pair,) = read_pose_list(tmp_path / "pairs.txt", tmp_path)
    assert pair.image1 == tmp_path / "a/2.jpg"
    assert pair.intrinsics0[0].tolist() == [500, 0, 320]
    assert pair.intrinsics1[1, 1] == 600
    assert pair.cam1_from_cam0.tolist() == [[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("a b 0 0", "4 words"),
        (LINE.replace(" 0 0 500", " 1 0 500", 1), "original images"),
        (LINE.replace("0.5", "x"), "line 1"),
        ("", "lists no pair"),
    ],
)
def test_bad_lists_are_named(tmp_path, line, complaint):
    (tmp_path / "pairs.txt").write_text(line)
    with pytest.raises(FormatError, match=complaint):
        read_pose_list(tmp_path / "pairs.txt", tmp_path)
