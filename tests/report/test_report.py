"""The report of a whole run, of one with parts missing, and of things that are no run."""

import html.parser
import json
import re
import shutil

import numpy as np
import pytest
from run_maker import DATABASE, QUERIES, SIZE, ShiftMatcher, make_run

from pdc_sfm.cli import main
from pdc_sfm.errors import FormatError
from pdc_sfm.images import write_image
from pdc_sfm.report import write_report
from pdc_sfm.report.gallery import gallery, load_shown, masked_image
from pdc_sfm.report.run_data import Run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    make_run(folder)
    return folder


@pytest.fixture(scope="session")
def document(finished):
    return write_report(finished, pairs=3, matcher=ShiftMatcher()).read_text()


@pytest.fixture
def copy(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink(missing_ok=True)
    return tmp_path / "run"


class Anatomy(html.parser.HTMLParser):
    """Which tags are open and closed, and what they point to."""

    VOID = ("meta", "link", "img", "br", "line", "circle", "rect", "polyline")

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.sources = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.sources += [given[key] for key in ("src", "href") if key in given]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def without_scripts(text):
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


def test_every_section_is_there_and_every_tag_is_closed(document):
    anatomy = Anatomy(without_scripts(document))
    assert anatomy.open == []
    for section in ("overview", "model", "pairs", "statistics", "localization", "retrieval", "settings"):
        assert section in anatomy.ids
    assert "missing" not in anatomy.ids


def test_the_file_needs_nothing_else(document):
    for source in Anatomy(without_scripts(document)).sources:
        assert source.startswith(("data:", "#"))
    assert "@import" not in document
    assert len(document.encode()) < 20e6


def test_names_and_settings_are_text_not_tags(document):
    assert "day/&lt;1&gt;.jpg" in document
    assert "&lt;b&gt;not bold&lt;/b&gt;" in document
    assert "<b>not bold" not in document


def test_it_says_what_the_run_says(document):
    text = without_scripts(document)
    assert "6 of 6" in text
    assert "100 / 100 / 100" in text
    assert "0.030 m" in text
    assert "4 inliers" in text  # SIFT's reason
    assert "pycolmap" in text
    assert "99 matches" in text  # the second best of the retrieval
    assert "about where the cameras stand, seen from above" in text


def test_the_model_holds_all_cameras_and_points(document):
    data = json.loads(re.search(r'id="model-data">(.*?)</script>', document, re.S).group(1))
    images, queries = data["cameras"]
    assert images["names"] == DATABASE
    assert sorted(queries["names"]) == sorted(QUERIES)
    assert len(images["centers"]) == 6
    assert len(data["points"]) * 3 / 4 / 12 > 100  # base64 of three floats a point


def test_the_gallery_shows_each_pair_with_five_panels_and_its_lines(document):
    articles = re.findall(r'<article class="pair">.*?</article>', document, re.S)
    assert len(articles) == 3
    assert all(article.count("<img") == 6 for article in articles)
    assert any("night query" in article for article in articles)


@pytest.mark.parametrize(
    ("gone", "said", "kept"),
    [
        ("run.json", "run.json", "localization"),
        ("sfm", "the model and the histogram of track lengths", "pairs"),
        ("matches.raw", "the gallery of pairs", "model"),
        ("pairs.txt", "the pair graph", "statistics"),
        ("localization.json", "the errors of each query", "retrieval"),
        ("results.txt_logs.json", "the inliers of each query", "localization"),
        ("retrieval.txt", "the retrieval strips", "localization"),
        ("sift.json", "SIFT&#x27;s row", "localization"),
        ("images/night/1.jpg", "cannot read image", "localization"),
        ("matches-query.raw", None, "pairs"),
    ],
)
def test_what_is_missing_is_said_and_the_rest_is_shown(copy, gone, said, kept):
    path = copy / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = without_scripts(write_report(copy, pairs=2, matcher=ShiftMatcher()).read_text())
    anatomy = Anatomy(text)
    assert anatomy.open == []
    assert kept in anatomy.ids
    if said:
        assert said in text[text.index('id="missing"') : text.index('id="overview"')]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("localization.json", "{"),
        ("localization.json", "[]"),
        ("retrieval.json", '{"queries": 3}'),
        ("sfm/points3D.bin", "no points"),
        ("images/db/0.jpg", "no image"),
        ("run.json", '{"kind": "scene", "metrics": [{"method": "ours"}]}'),
    ],
)
def test_damaged_files_are_named_and_never_stop_the_report(copy, name, content):
    (copy / name).write_text(content)
    text = without_scripts(write_report(copy, pairs=2, matcher=ShiftMatcher()).read_text())
    assert 'id="missing"' in text
    assert 'id="statistics"' in text


def test_without_the_weights_matches_are_still_drawn(copy):
    text = write_report(copy, pairs=2).read_text()
    assert "flow and confidence of pairs" in text
    assert "none.safetensors" in text
    articles = re.findall(r'<article class="pair">.*?</article>', text, re.S)
    assert [article.count("<img") for article in articles] == [3, 3]


def test_images_that_no_full_pass_ranked_are_shown_without_a_number(copy):
    path = copy / "retrieval.json"
    content = json.loads(path.read_text())
    content["queries"] = {
        query: [[row[0], None, *row[2:]] for row in rows] for query, rows in content["queries"].items()
    }
    path.write_text(json.dumps(content))
    text = without_scripts(write_report(copy, pairs=2, matcher=ShiftMatcher()).read_text())
    assert "retrieval" in Anatomy(text).ids
    assert "missing" not in Anatomy(text).ids
    assert "99 matches" not in text


@pytest.mark.parametrize("with_retrieval", [False, True])
def test_a_run_on_photographs_has_no_queries_and_misses_none(copy, with_retrieval):
    record = json.loads((copy / "run.json").read_text())
    record["kind"] = "images"
    for row in record["metrics"]:
        row["queries"] = {}
    (copy / "run.json").write_text(json.dumps(record))
    gone = ["results.txt", "results.txt_logs.json", "localization.json", "sift.json"]
    for name in gone if with_retrieval else [*gone, "retrieval.txt"]:
        (copy / name).unlink()
    shutil.rmtree(copy / "matches-query.raw")
    anatomy = Anatomy(without_scripts(write_report(copy, pairs=2, matcher=ShiftMatcher()).read_text()))
    assert "localization" not in anatomy.ids
    assert ("retrieval" in anatomy.ids) == with_retrieval
    assert "missing" not in anatomy.ids


def test_the_command_writes_the_file_and_says_where(copy, capsys):
    assert main(["report", str(copy), "--pairs", "1"]) == 0
    assert str(copy / "report.html") in capsys.readouterr().out


def test_what_is_no_run_is_refused(tmp_path, capsys):
    with pytest.raises(FormatError, match="is not a folder"):
        write_report(tmp_path / "none")
    assert main(["report", str(tmp_path)]) == 2
    assert "holds nothing of a run" in capsys.readouterr().err


def test_what_masks_cover_is_drawn_and_told(copy):
    for name in DATABASE[:5]:
        mask = np.full(SIZE[::-1], 255, np.uint8)
        mask[:, : SIZE[0] // 4] = 0
        write_image(copy / "masks" / f"{name}.png", mask)
    run = Run(copy)
    shown = load_shown(run, 3, None)
    section = gallery(run, shown, None, {})
    told = {name for pair in shown for name in pair.names if f"{name}; 25 % masked, in gray" in section.content}
    assert told == {name for pair in shown for name in pair.names} & set(DATABASE[:5]) != set()
    picture, share = masked_image(run, DATABASE[0])
    plain = run.image(DATABASE[0])
    assert share == 0.25
    assert np.array_equal(picture[:, SIZE[0] // 4 :], plain[:, SIZE[0] // 4 :])
    assert picture[:, : SIZE[0] // 4].std() < 0.5 * plain[:, : SIZE[0] // 4].std()
