"""The page in a real browser: a photograph is dropped, and its pose is seen in the map."""

import base64

import pytest
from browser import Browser, find_chromium
from serving import running

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt install chromium)")
LOADED = "document.getElementById('map-note').textContent.includes('4 images')"
DROP = """(async () => {
  const content = await (await fetch("data:image/png;base64,%s")).blob();
  const files = new DataTransfer();
  files.items.add(new File([content], "dropped.png", { type: "image/png" }));
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
})()"""
# colors on a canvas that are not its ground
DRAWN = """(() => {
  const canvas = document.getElementById("%s"), context = canvas.getContext("2d");
  const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(data.buffer)).size;
})()"""
UNNAMED = """[...document.querySelectorAll("button, input, canvas, meter, progress, a")].filter((element) =>
  !(element.getAttribute("aria-label") || element.textContent.trim() || (element.labels && element.labels.length))).length"""


@pytest.fixture(scope="module")
def dropped(wall):
    return DROP % base64.b64encode((wall / "queries" / "query.png").read_bytes()).decode()


def allow_own_data(browser):
    """The test itself makes its file of a data address, which the page's own rules forbid."""
    browser.call("Page.setBypassCSP", enabled=True)


def test_a_dropped_photograph_is_seen_where_it_was_taken(make_server, dropped):
    with running(make_server()) as url, Browser(CHROMIUM, 1280, 900) as browser:
        allow_own_data(browser)
        browser.visit(f"{url}/")
        browser.wait_for(LOADED)
        browser.wait_for(f"{DRAWN % 'model'} > 20")  # points of a painted wall
        assert browser.ask(UNNAMED) == 0  # a screen reader has a name for everything
        browser.ask(dropped)
        browser.wait_for("!document.getElementById('work').hidden")
        browser.wait_for("!document.getElementById('answer').hidden")
        said = browser.ask("document.getElementById('said').textContent")
        place = [float(word) for word in said.removeprefix("Taken at ").split(", ")]
        assert place == pytest.approx([0.1, 0.3, 1.0], abs=0.15)
        assert "Right with probability 9" in browser.ask("document.getElementById('probability-text').textContent")
        browser.wait_for(f"{DRAWN % 'matches'} > 100")  # both pictures and the lines between them
        assert browser.ask("viewer.pose.length") == 5  # the camera stands in the map
        assert (
            browser.ask("document.activeElement.id") == "answer"
        )  # where a keyboard goes on, and a screen reader reads
        browser.wait_for("document.querySelectorAll('#list button').length === 1")
        assert browser.complaints == []


@pytest.mark.parametrize(("width", "height", "dark"), [(390, 844, True), (1280, 800, False)])
def test_it_fits_a_phone_and_a_laptop_and_keys_turn_the_map(make_server, width, height, dark):
    with running(make_server()) as url, Browser(CHROMIUM, width, height, dark) as browser:
        browser.visit(f"{url}/")
        browser.wait_for(LOADED)
        assert browser.ask("document.documentElement.scrollWidth") <= width  # nothing hangs over the side
        red, green, blue = map(int, browser.ask("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))
        assert (max(red, green, blue) < 60) if dark else (min(red, green, blue) > 220)
        before = browser.ask("viewer.view.azimuth")
        browser.ask(
            "document.getElementById('model').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }))"
        )
        assert browser.ask("viewer.view.azimuth") != before
        browser.visit(f"{url}/api")
        browser.wait_for("document.body.innerText.includes('POST /localize')")
        assert browser.complaints == []


CHOOSE = """(async () => {
  const content = await (await fetch("data:image/png;base64,%s")).blob();
  const files = new DataTransfer();
  files.items.add(new File([content], "more.png", { type: "image/png" }));
  document.getElementById("add").files = files.files;
  document.getElementById("add").dispatchEvent(new Event("change"));
})()"""


def test_a_photograph_is_added_to_the_map_where_the_server_takes_them(make_server, wall):
    content = base64.b64encode((wall / "queries" / "query.png").read_bytes()).decode()
    with running(make_server(additions=True)) as url, Browser(CHROMIUM, 1280, 900) as browser:
        allow_own_data(browser)
        browser.visit(f"{url}/")
        browser.wait_for(LOADED)
        browser.wait_for("!document.getElementById('adding').hidden")
        browser.ask(CHOOSE % content)
        browser.wait_for("!document.getElementById('added').hidden")
        assert "It has 5 images now" in browser.ask("document.getElementById('added').textContent")
        assert "5 images" in browser.ask("document.getElementById('map-note').textContent")
        assert browser.complaints == []


def test_what_goes_wrong_is_said(make_server):
    bad = DROP % "bm90IGEgcGljdHVyZQ=="
    with running(make_server()) as url, Browser(CHROMIUM, 800, 600) as browser:
        allow_own_data(browser)
        browser.visit(f"{url}/")
        browser.wait_for(LOADED)
        assert browser.ask("document.getElementById('adding').hidden")  # this server takes no additions
        browser.ask(bad)
        browser.wait_for("!document.getElementById('problem').hidden")
        assert "not a JPEG, PNG or WebP" in browser.ask("document.getElementById('problem').textContent")
