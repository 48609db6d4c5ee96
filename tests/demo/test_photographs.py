"""The demo on a folder of photographs: what can be read is used, names with blanks work, and bad folders say so."""

import numpy as np
import pytest
from fake_network import FakeNetwork
from PIL import Image
from projections import exact_matcher, make_scene, write_images

from pdc_sfm.cli import main
from pdc_sfm.demo import PhotographSettings, run_photographs
from pdc_sfm.demo.linked_images import link_images
from pdc_sfm.errors import ImageError, OutputError
from pdc_sfm.images import list_images, write_image
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.run_folder import RunFolder
from pdc_sfm.store.pair_lists import read_pairs

NAMES = [f"{k}.png" for k in range(6)]
QUIET = {"sift": False, "report": False, "retrieve": RetrievalSettings(method="direct", min_side=64)}


@pytest.fixture
def scene(tmp_path):
    made = make_scene(NAMES, points=500)
    write_images(made, tmp_path / "photos")
    return made


def test_a_folder_becomes_a_model(scene, tmp_path, said):
    settings = PhotographSettings(**QUIET)
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(scene))
    record = RunFolder(tmp_path / "run").record
    assert record["kind"] == "images"
    assert [step["name"] for step in record["steps"]] == ["images", "pairs", "match", "reconstruct"]
    assert (record["metrics"][0]["registered"], record["metrics"][0]["images"]) == (6, 6)
    assert "all 15 pairs of 6 images" in said()[1]
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=None)
    assert sum(line.endswith("done before") for line in said()) == 4


def test_many_photographs_are_paired_by_retrieval(scene, tmp_path):
    settings = PhotographSettings(exhaustive=4, retrieved=4, neighbors=0, **QUIET)
    options = {"match": exact_matcher(scene), "network": FakeNetwork()}
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, **options)
    pairs = read_pairs(tmp_path / "run" / "pairs.txt")
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) < 15
    assert {name for pair in pairs for name in pair} == set(NAMES)


def test_unreadable_images_are_named_and_left_out(scene, tmp_path, said):
    (tmp_path / "photos" / "5.png").write_bytes(b"not an image")
    settings = PhotographSettings(**QUIET)
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(scene))
    assert [line for line in said() if "5.png is not a readable image" in line]
    assert RunFolder(tmp_path / "run").record["metrics"][0]["images"] == 5


def test_names_with_blanks_are_linked_without_them_and_stay_apart(tmp_path):
    image = np.zeros((32, 32, 3), np.uint8)
    for name in ("my photo.png", "my_photo.png", "trip/a b.png", "trip-a_b.png"):
        write_image(tmp_path / "photos" / name, image)
    folder = RunFolder(tmp_path / "run")
    link_images(tmp_path / "photos", list_images(tmp_path / "photos"), folder)
    links = list_images(tmp_path / "run" / "images")
    assert len(links) == 4
    assert len({link.replace("/", "-") for link in links}) == 4  # as hloc's files name them
    assert not any(" " in link for link in links)
    assert {(tmp_path / "run" / "images" / link).resolve().name for link in links} == {
        "my photo.png", "my_photo.png", "a b.png", "trip-a_b.png",
    }  # fmt: skip


@pytest.mark.parametrize("output", [".", "run", "../photos", "deep/er"])
def test_a_run_in_the_folder_of_photographs_is_refused(scene, tmp_path, output):
    before = sorted((tmp_path / "photos").rglob("*"))
    with pytest.raises(OutputError, match="photos"):
        run_photographs(tmp_path / "photos", tmp_path / "photos" / output, PhotographSettings(**QUIET))
    assert sorted((tmp_path / "photos").rglob("*")) == before


def test_photographs_where_a_run_puts_its_links_are_not_deleted(scene, tmp_path):
    (tmp_path / "photos").rename(tmp_path / "images")
    with pytest.raises(OutputError, match="is an input"):
        run_photographs(tmp_path / "images", tmp_path, PhotographSettings(**QUIET))
    assert len(list_images(tmp_path / "images")) == 6


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "no images"),
        ({"a.png": None}, "one image"),
        ({"a.png": None, "b.png": b"broken", "c.jpg": b""}, "1 of 3 images of"),
        ({"notes.txt": b"text"}, "no images"),
    ],
)
def test_a_folder_without_two_images_is_refused_in_a_line(tmp_path, capsys, files, text):
    (tmp_path / "photos").mkdir()
    for name, content in files.items():
        if content is None:
            write_image(tmp_path / "photos" / name, np.zeros((32, 32, 3), np.uint8))
        else:
            (tmp_path / "photos" / name).write_bytes(content)
    assert main(["demo", "--images", str(tmp_path / "photos"), "--output", str(tmp_path / "run")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("pdc-sfm: ")
    assert text in last


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ImageError, match="is not a folder"):
        run_photographs(tmp_path / "none", tmp_path / "run")


def test_photographs_that_were_moved_are_found_again_and_nothing_is_repeated(scene, tmp_path, said):
    settings = PhotographSettings(**QUIET)
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(scene))
    (tmp_path / "photos").rename(tmp_path / "moved")
    said()
    run_photographs(tmp_path / "moved", tmp_path / "run", settings, match=None)
    assert sum(line.endswith("done before") for line in said()) == 4
    assert (tmp_path / "run" / "images" / NAMES[0]).read_bytes() == (tmp_path / "moved" / NAMES[0]).read_bytes()


def test_masks_of_another_size_are_named_before_anything_is_matched(scene, tmp_path, said):
    for name in NAMES[:4]:
        write_image(tmp_path / "masks" / f"{name}.png", np.full((240, 320), 255, np.uint8))
    with pytest.raises(ImageError, match=r"2 of 6 images of .* can be used"):
        run_photographs(tmp_path / "photos", tmp_path / "run", masks=tmp_path / "masks", match=None)
    left_out = [line for line in said() if line.startswith("left out")]
    assert len(left_out) == 4
    assert f"the mask {tmp_path / 'masks' / '0.png.png'} is 320 x 240, the image 0.png 640 x 480" in left_out[0]


def test_other_photographs_of_the_same_names_are_not_taken_for_those_of_an_earlier_run(scene, tmp_path, said):
    settings = PhotographSettings(**QUIET)
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(scene))
    write_image(tmp_path / "photos" / NAMES[3], np.full((480, 640, 3), 9, np.uint8))
    said()
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, match=exact_matcher(scene))
    assert not any(line.endswith("done before") for line in said())


def test_masks_follow_the_names_of_links(scene, tmp_path):
    (tmp_path / "photos" / "0.png").rename(tmp_path / "photos" / "no 0.png")
    for name in ("no 0.png", "1.png"):
        write_image(tmp_path / "masks" / f"{name}.png", np.full((480, 640), 255, np.uint8))
    seen = []

    def match(images, pairs, features, matches, fixed=None):
        seen.append(sorted(path.name for path in (tmp_path / "run" / "masks").iterdir()))
        raise ImageError("that is all")

    for _ in range(2):
        with pytest.raises(ImageError, match="that is all"):
            run_photographs(
                tmp_path / "photos",
                tmp_path / "run",
                PhotographSettings(**QUIET),
                masks=tmp_path / "masks",
                match=match,
            )
    assert seen == [["1.png.png", "no_0.png.png"]] * 2


def test_a_mirrored_photograph_is_left_out_with_what_to_do(scene, tmp_path, said):
    exif = Image.Exif()
    for name, number in zip(NAMES, (1, 2, 3, 5, 6, 7)):  # 2, 5 and 7 mirror, the others turn
        exif[0x0112] = number
        with Image.open(tmp_path / "photos" / name) as image:
            image.load()
        image.save(tmp_path / "photos" / name, exif=exif)

    def match(*_, **__):
        raise ImageError("that is all")

    with pytest.raises(ImageError, match="that is all"):
        run_photographs(tmp_path / "photos", tmp_path / "run", PhotographSettings(**QUIET), match=match)
    left_out = [line for line in said() if line.startswith("left out")]
    assert ["1.png is mirrored by EXIF" in left_out[0], "3.png" in left_out[1], "5.png" in left_out[2]] == [True] * 3
    assert list_images(tmp_path / "run" / "images") == ["0.png", "2.png", "4.png"]
