"""A real server on this machine: what it answers, what it refuses, and that no one who asks harms another."""

import gc
import http.client
import io
import json
import socket
import sqlite3
import struct
import threading
import time
import urllib.error
import urllib.request
import weakref
import zlib
from importlib import resources
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from serving import running, tell_brightness, wait_until

from pdc_sfm.client import ServerError
from pdc_sfm.serve.map_view import map_points, map_summary
from pdc_sfm.serve.requests import RequestStore, new_number

TOKEN = "a-token-of-some-length"


def picture(light=100, size=(64, 48), kind="PNG", **options):
    content = io.BytesIO()
    Image.fromarray(np.full((size[1], size[0], 3), light, np.uint8)).save(content, kind, **options)
    return content.getvalue()


def bomb(side):
    """A PNG of a few kilobytes that decodes to gigabytes."""

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


def hostile_exif():
    """EXIF whose directory points at itself and whose counts are beyond the file."""
    entry = struct.pack("<HHII", 0x8769, 4, 1, 8) + struct.pack("<HHII", 0x920A, 5, 0xFFFFFFFF, 0xFFFFFFF0)
    block = b"Exif\0\0II*\0" + struct.pack("<I", 8) + struct.pack("<H", 2) + entry + struct.pack("<I", 8)
    return picture(kind="JPEG", exif=block)


def post(url, body, path="/localize", **headers):
    """Status, headers and content of an answer."""
    request = urllib.request.Request(url + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read() or b"{}")


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


class Gate:
    """Work that waits until it is let go."""

    def __init__(self):
        self.open, self.begun = threading.Event(), threading.Event()

    def __call__(self, photograph, content, where, report):
        self.begun.set()
        report("match", 3, 20)
        assert self.open.wait(60)
        return tell_brightness(photograph, content, where, report)


def test_the_map_itself_answers(make_server, ask, wall):
    """The whole road over HTTP, by the typed client."""
    with running(make_server()) as url:
        client = ask(url)
        found = client.localize(wall / "queries" / "query.png")
        assert found.localized
        assert np.allclose(found.pose.position, [0.1, 0.3, 1.0], atol=0.15)  # 5 before the wall z = 6, angle 0.02
        assert found.camera.source == "the map's camera"
        (asked,) = json.loads(get(f"{url}/requests"))
        assert (asked["name"], asked["state"]) == ("query.png", "done")
        assert client.request(asked["id"]).answer["inliers"] == found.inliers
        map_ = client.map()
        assert [image.name for image in map_.images] == [f"db/{k}.png" for k in range(4)]
        points = get(f"{url}/map/points?most=50")
        assert np.allclose(np.frombuffer(points[:600], "<f4").reshape(50, 3)[:, 2], 6, atol=0.3)  # they lie on the wall
        assert len(points) == 50 * 15
        assert get(f"{url}/map/images/{map_.images[0].number}?side=80")[:2] == b"\xff\xd8"
        assert client.retrieve(wall / "queries" / "query.png", top=1).images[0].name in ("db/1.png", "db/2.png")
        assert client.match(wall / "images" / "db/0.png", wall / "images" / "db/1.png", most=5).count > 100


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"not a picture at all", 415, "not a JPEG, PNG or WebP"),
        (b"GIF89a" + bytes(100), 415, "not a JPEG, PNG or WebP"),
        (bomb(12_000), 413, "12000 x 12000: more than the"),
        (bomb(60_000), 413, "more than the"),
        (picture(size=(8, 8)), 422, "at least"),
        (picture(size=(640, 480))[:-200], 422, "damaged or cut off"),
        (b"", 422, "send one picture"),
        (bytes(2_000_000), 413, "1,000,000 bytes at most"),
    ],
)
def test_what_is_no_picture_gets_a_clear_refusal(make_server, body, status, said):
    with running(make_server(tell_brightness, upload="1MB")) as url:
        found = post(url, body)
        assert (found[0], said in found[2]["detail"]) == (status, True), found[2]
        assert post(url, picture(7))[2]["inliers"] == 7  # and the next one is answered


def test_a_hostile_exif_is_not_believed(make_server):
    with running(make_server()) as url:  # the real road: its intrinsics are looked for in EXIF
        status, _, content = post(url, hostile_exif())
        assert (status, "no focal length in EXIF" in content["detail"]) == (422, True)


def test_a_photograph_of_a_phone_is_read(make_server):
    pillow_heif = pytest.importorskip("pillow_heif", reason="needs the extra [heic]")
    content = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(np.full((48, 64, 3), 80, np.uint8))).save(content, quality=-1)
    with running(make_server(tell_brightness)) as url:
        assert abs(post(url, content.getvalue())[2]["inliers"] - 80) <= 2  # colors of HEIC are rounded
        assert post(url, content.getvalue()[:200])[0] in (415, 422)
    with running(make_server(tell_brightness, pixels=1000)) as url:
        assert post(url, content.getvalue())[0] == 413


def test_parameters_that_make_no_sense_are_named(make_server):
    with running(make_server(tell_brightness)) as url:
        for query, said in {
            "camera=PINHOLE": "write MODEL WIDTH HEIGHT PARAMS",
            "camera=NO%20640%20480%201": "unknown camera model NO",
            "position=1,2&radius=3": "write 3 numbers",
            "position=1,2,3": "give a radius",
            "radius=3": "give a position, place or pose",
            "position=1,2,3&radius=-1": "must be above 0",
            "position=1,2,3&radius=nan": "must be above 0",
            "place=48,11&radius=5": "does not know its place on the earth",
        }.items():
            status, _, content = post(url, picture(), f"/localize?{query}")
            assert (status, said in content["detail"]) == (422, True), content
        assert post(url, picture(), "/retrieve?top=0")[0] == 422
        assert post(url, picture(), "/match")[0] == 422  # one picture, where two are needed


def test_what_is_known_of_a_queued_photograph_arrives_as_for_one_that_is_waited_for(make_server, ask, wall):
    told = []

    def note(photograph, content, where, report):
        told.append((where.position.tolist(), where.radius))
        return tell_brightness(photograph, content, where, report)

    with running(make_server(note)) as url:
        client, near = ask(url), {"position": (1.5, 2, 3), "radius": 4}
        client.localize(picture(), **near)
        number = client.submit(wall / "queries" / "query.png", name="mine", **near)
        wait_until(lambda: client.request(number).state == "done")
        assert told == [([1.5, 2, 3], 4)] * 2
        assert client.request(number).name == "mine"


def test_a_full_disk_stops_no_worker(make_server, monkeypatch):
    """Where requests cannot be written, they wait; when there is room again, they are answered."""
    monkeypatch.setattr("pdc_sfm.serve.worker.PAUSE", 0.05)
    server = make_server(tell_brightness)

    def failing(method):
        refused = []

        def call(*args, **kwargs):
            if len(refused) < 4:
                refused.append(True)
                raise sqlite3.OperationalError("database or disk is full")
            return method(*args, **kwargs)

        return call

    with running(server) as url:
        monkeypatch.setattr(server.store, "take", failing(server.store.take))
        assert post(url, picture(5))[2]["inliers"] == 5
        monkeypatch.setattr(server.store, "finish", failing(server.store.finish))
        assert post(url, picture(6))[2]["inliers"] == 6


def test_a_map_that_was_replaced_is_let_go(make_server):
    server = make_server()
    before = weakref.ref(server.map)
    assert map_summary(server.map).points
    assert map_points(server.map, 10)
    server.map = server._load()
    gc.collect()
    assert before() is None


def test_forms_are_read_as_browsers_and_curl_send_them(make_server):
    with running(make_server(tell_brightness)) as url:
        kind = {"Content-Type": "multipart/form-data; boundary=x"}
        part = (
            b'--x\r\nContent-Disposition: form-data; name="image"; filename="../../etc/passwd"\r\n\r\n%s\r\n--x--\r\n'
        )
        assert post(url, part % picture(33), **kind)[2]["inliers"] == 33
        assert post(url, b"--x\r\nnonsense", **kind)[0] in (400, 422)
        assert post(url, picture(), **{"Content-Type": "multipart/form-data"})[0] == 400


def test_beyond_the_queue_one_is_told_when_to_come_back(make_server):
    gate, found = Gate(), []
    with running(make_server(gate, queue=2)) as url:
        threads = [
            threading.Thread(target=lambda k=k: found.append((k, post(url, picture(k))[2]["inliers"])))
            for k in range(3)
        ]
        threads[0].start()
        assert gate.begun.wait(60)
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda: json.loads(get(f"{url}/healthz"))["waiting"] == 2)
        status, headers, content = post(url, picture())
        assert (status, "2 requests are waiting" in content["detail"]) == (503, True)
        assert int(headers["Retry-After"]) >= 1
        gate.open.set()
        for thread in threads:
            thread.join(60)
        assert sorted(found) == [(0, 0), (1, 1), (2, 2)]  # each its own answer
        assert post(url, picture(9))[2]["inliers"] == 9


def test_a_request_counts_once_against_the_queue(make_server):
    """It is not an upload any more when it waits: another that fits beside it is not refused."""
    gate, kept, let_go = Gate(), threading.Event(), threading.Event()
    server = make_server(gate, queue=2)
    add = server.store.add

    def add_and_linger(*arguments):
        add(*arguments)
        kept.set()
        assert let_go.wait(60)

    with running(server) as url:
        first = threading.Thread(target=post, args=(url, picture(1)))
        first.start()
        assert gate.begun.wait(60)  # it is in work: what comes now waits
        server.store.add = add_and_linger
        second = threading.Thread(target=post, args=(url, picture(2)))
        second.start()
        assert kept.wait(60)
        server.store.add = add
        status, _, _ = post(url, picture(3), "/localize?wait=false")
        let_go.set()
        gate.open.set()
        first.join(60)
        second.join(60)
        assert status == 202


def test_who_goes_away_holds_up_no_one(make_server):
    gate = Gate()
    server = make_server(gate)
    with running(server) as url:
        where = urlsplit(url)
        begun = threading.Thread(target=post, args=(url, picture(1)))
        begun.start()
        assert gate.begun.wait(60)
        gone = http.client.HTTPConnection(where.hostname, where.port)
        gone.request("POST", "/localize?name=gone", picture(2))
        wait_until(lambda: server.store.waiting() == 1)
        gone.close()
        slow = socket.create_connection((where.hostname, where.port))  # says how much will come, and sends nothing
        slow.sendall(b"POST /localize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        wait_until(lambda: server.store.waiting() == 0)
        gate.open.set()
        begun.join(60)
        assert post(url, picture(5))[2]["inliers"] == 5
        states = {asked["name"]: asked["state"] for asked in json.loads(get(f"{url}/requests"))}
        assert states["gone"] == "dropped"
        slow.close()


def test_an_upload_that_does_not_come_is_given_up(make_server):
    with running(make_server(tell_brightness, upload_seconds=0.3)) as url:
        where = urlsplit(url)
        slow = socket.create_connection((where.hostname, where.port))
        slow.sendall(b"POST /localize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        assert b"408" in slow.recv(1000)
        slow.close()


def test_one_who_waits_too_long_is_told_where_the_answer_will_be(make_server):
    gate = Gate()
    with running(make_server(gate, answer_seconds=0.1)) as url:
        status, headers, content = post(url, picture(4))
        assert (status, content["id"] in headers["Location"]) == (504, True)
        wait_until(lambda: json.loads(get(url + headers["Location"]))["stage"])
        asked = json.loads(get(url + headers["Location"]))
        assert (asked["state"], asked["stage"], asked["done"], asked["total"]) == ("running", "match", 3, 20)
        gate.open.set()
        wait_until(lambda: json.loads(get(url + headers["Location"]))["state"] == "done")
        assert json.loads(get(url + headers["Location"]))["answer"]["inliers"] == 4


def test_a_stop_loses_nothing(make_server, ask):
    gate = Gate()
    with running(make_server(gate)) as url:
        first, second = (ask(url).submit(picture(k), name=f"number {k}") for k in (1, 2))
        assert gate.begun.wait(60)
        threading.Timer(0.3, gate.open.set).start()
    with running(make_server(tell_brightness)) as url:
        client = ask(url)
        assert client.request(first).answer["inliers"] == 1  # it was in work: it was finished
        wait_until(lambda: client.request(second).state == "done")
        assert client.request(second).answer["inliers"] == 2


def test_a_kill_loses_nothing_and_what_kills_is_given_up(tmp_path):
    """The store as a killed server leaves it: opened again without having been closed."""
    path, number = tmp_path / "requests.sqlite", new_number()
    RequestStore(path, 4, 10).add(number, "localize", {"radius": 2.0}, [b"picture"], "a")
    for _ in range(2):
        task = RequestStore(path, 4, 10).take()
        assert (task.id, task.parameters, task.pictures) == (number, {"radius": 2.0}, [b"picture"])
    store = RequestStore(path, 4, 10)
    assert store.take() is None
    assert "more than once" in store.get(number).error
    for k in range(30):  # only the latest are remembered
        store.add(str(k), "match", {}, [bytes(1000)])
        store.finish(store.take().id, {"k": k})
    assert len(store.latest(100)) == 10


def test_pages_of_others_and_names_that_are_not_ours_are_refused(make_server):
    with running(make_server(tell_brightness)) as url:
        assert post(url, picture(), Origin="http://elsewhere.example")[0] == 403
        assert post(url, picture(), Host="elsewhere.example")[0] == 403  # a name that was made to lead here
        assert post(url, picture(3), Origin=url)[2]["inliers"] == 3


def test_a_token_is_asked_for_and_compared(make_server, ask):
    with running(make_server(tell_brightness), TOKEN, local=False) as url:
        assert post(url, picture())[0] == 401
        assert post(url, picture(), Authorization="Bearer wrong")[0] == 401
        assert post(url, picture(), Authorization="Bearer \xfc")[0] == 401
        assert json.loads(get(f"{url}/healthz"))["ready"]
        assert ask(url, token=TOKEN).localize(picture(8)).inliers == 8
        with pytest.raises(ServerError, match="needs its token"):
            ask(url).map()


def test_a_map_made_anew_is_taken_up_without_a_failed_request(make_server, wall, network, queries):
    from pdc_sfm.serve.resident_map import ResidentMap

    server = make_server(tell_brightness, reload_seconds=0.2)
    server._load = lambda: light(ResidentMap(server._find(), server._folder / "codes", queries, network))

    def light(held):
        held.localize = tell_brightness
        return held

    with running(server) as url:
        before, answers, ended = server.map.state, [], threading.Event()

        def keep_asking():
            while not ended.is_set():
                answers.append(post(url, picture(6)))

        thread = threading.Thread(target=keep_asking)
        thread.start()
        cameras = wall / "sfm" / "cameras.bin"
        cameras.touch()  # another state of its files
        wait_until(lambda: server.map.state != before)
        held = server.map
        content = cameras.read_bytes()
        cameras.write_bytes(content[:10])  # one that cannot be read: the last one stays
        time.sleep(1)
        cameras.write_bytes(content)
        ended.set()
        thread.join(60)
        assert server.map is held or server.map.state != held.state
        assert {(status, content["inliers"]) for status, _, content in answers} == {(200, 6)}


def test_metrics_and_descriptions(make_server):
    with running(make_server(tell_brightness)) as url:
        post(url, picture())
        post(url, b"nonsense")
        text = get(f"{url}/metrics").decode()
        assert 'pdc_sfm_responses_total{path="/localize",status="200"} 1' in text
        assert 'pdc_sfm_responses_total{path="/localize",status="415"} 1' in text
        assert 'pdc_sfm_request_seconds_count{kind="localize"} 1' in text
        assert "pdc_sfm_map_images 4" in text
        paths = json.loads(get(f"{url}/openapi.json"))["paths"]
        assert {"/localize", "/match", "/retrieve", "/map", "/healthz", "/version", "/metrics"} <= set(paths)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{url}/../../etc/passwd")


def test_the_pages_ask_no_other_server():
    for page in resources.files("pdc_sfm.serve").joinpath("page").iterdir():
        text = page.read_text(encoding="utf-8")
        assert "://" not in text.replace("http://127.0.0.1", ""), page.name
