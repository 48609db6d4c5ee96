"""The report in a real browser: nothing to complain about, the model is drawn, it fits a laptop and a phone, dark and light."""

import pytest
from browser import Browser, find_chromium
from run_maker import ShiftMatcher, make_run

from pdc_sfm.images import read_image
from pdc_sfm.report import write_report

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt install chromium)")
ALL_DECODED = """(() => {
  const images = [...document.images].filter((image) => image.src);
  images.forEach((image) => { image.loading = "eager"; });
  return Promise.all(images.map((image) => image.decode().then(() => true, () => false))).then((done) => done.every(Boolean));
})()"""
# a table that is wider than the page has a shadow at the side where it goes on
TABLES_TELL = """[...document.querySelectorAll(".scroll")].every((box) => box.scrollWidth <= box.clientWidth
  || getComputedStyle(box).backgroundImage.split("linear-gradient").length === 5)"""
GROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser") / "run"
    make_run(folder)
    return write_report(folder, pairs=1, matcher=ShiftMatcher())


@pytest.mark.parametrize(("width", "height", "dark"), [(1280, 900, False), (390, 844, True)])
def test_it_is_shown_whole_and_without_complaint(report, tmp_path, width, height, dark):
    with Browser(CHROMIUM, width, height, dark) as browser:
        browser.open(report)
        browser.wait_for("document.getElementById('model-view').dataset.drawn === 'yes'")
        assert browser.ask("document.documentElement.scrollWidth") == width  # nothing hangs over the side
        red, green, blue = map(int, browser.ask(GROUND)[4:-1].split(","))
        assert (max(red, green, blue) < 60) if dark else (min(red, green, blue) > 220)
        assert browser.ask("document.querySelectorAll('#model-view canvas').length") > 0
        assert browser.ask(TABLES_TELL)
        assert browser.ask(ALL_DECODED)
        browser.picture(tmp_path / "view.png")
        assert read_image(tmp_path / "view.png").std() > 5  # something is drawn
        assert browser.complaints == []


def test_the_look_can_be_changed_and_pictures_enlarged(report):
    with Browser(CHROMIUM, 800, 600) as browser:
        browser.open(report)
        before = browser.ask(GROUND)
        browser.ask("document.getElementById('theme').click()")
        assert browser.ask(GROUND) != before
        browser.ask("document.querySelector('.pair img.zoom').click()")
        assert browser.ask("document.getElementById('large').open")
        browser.ask("document.querySelector('#large img').click()")
        assert not browser.ask("document.getElementById('large').open")
        assert browser.complaints == []
