"""Frames of a video: the sharpest around each instant, blurred ones left out, and what a damaged video says."""

import json
import struct

import cv2
import numpy as np
import pytest
from photo_fakes import waves
from projections import exact_matcher, make_scene, write_images

from pdc_sfm.cli import main
from pdc_sfm.demo import run_photographs, video_settings
from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.images import list_images, read_image
from pdc_sfm.media import video
from pdc_sfm.media.video import VideoFrame, blurred_frames, extract_frames, sharpness

RATE, SECONDS = 20, 5


def noise(seed=0, size=(120, 160)):
    """A picture with detail at every scale."""
    rng = np.random.default_rng(seed)
    return cv2.GaussianBlur(rng.integers(0, 255, (*size, 3)).astype(np.uint8), (0, 0), 1.0)


def smeared(image, pixels, angle=0.0):
    """As by motion while the shutter was open."""
    kernel = np.zeros((pixels, pixels), np.float32)
    kernel[pixels // 2] = 1 / pixels
    turn = cv2.getRotationMatrix2D(((pixels - 1) / 2, (pixels - 1) / 2), angle, 1.0)
    kernel = cv2.warpAffine(kernel, turn, (pixels, pixels))
    return cv2.filter2D(image, -1, kernel / kernel.sum())


def write_video(path, frames, rate=RATE, code="MJPG"):
    height, width = frames[0].shape[:2]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*code), rate, (width, height))
    assert writer.isOpened()
    for frame in frames:
        writer.write(frame[..., ::-1])
    writer.release()
    return path


def walk(blurred=()):
    """A view that moves by a pixel a frame; some frames are smeared."""
    wide = noise(size=(120, 160 + RATE * SECONDS))
    frames = [np.ascontiguousarray(wide[:, k : k + 160]) for k in range(RATE * SECONDS)]
    return [smeared(frame, 9) if k in blurred else frame for k, frame in enumerate(frames)]


def test_two_frames_a_second_at_even_times(tmp_path):
    found = extract_frames(write_video(tmp_path / "a.avi", walk()), tmp_path / "frames", fps=2)
    assert list_images(tmp_path / "frames") == [frame.name for frame in found.kept]
    times = np.array([frame.time for frame in found.kept])
    instants = np.arange(len(times)) / 2  # at 0, 0.5, ..., each moved by an eighth of a second at most
    assert np.abs(times - instants).max() <= 0.5 * video.WINDOW / 2 + 1 / RATE
    assert len(times) in (10, 11)
    assert all(frame.number == round(frame.time * RATE) for frame in found.kept)
    shown = read_image(tmp_path / "frames" / found.kept[3].name).astype(int)
    assert np.abs(shown - walk()[found.kept[3].number]).mean() < 12  # JPEG twice


def test_the_sharpest_around_an_instant_is_taken_and_what_is_blurred_left_out(tmp_path):
    # around 1 s (frames 18 to 22) only 22 is sharp; around 3 s none is
    blurred = {18, 19, 20, 21, *range(54, 67)}
    found = extract_frames(write_video(tmp_path / "a.avi", walk(blurred)), tmp_path / "frames", fps=2)
    numbers = [frame.number for frame in found.kept]
    assert 22 in numbers
    assert [frame.number in blurred for frame in found.blurred] == [True]
    assert 57 <= found.blurred[0].number <= 63
    assert not blurred & set(numbers)
    assert not (tmp_path / "frames" / found.blurred[0].name).exists()


@pytest.mark.parametrize("angle", [0, 30, 45, 90, 135])
def test_motion_in_any_direction_takes_sharpness(angle):
    image = noise(size=(240, 320))
    assert sharpness(smeared(image, 9, angle)) < 0.5 * sharpness(image)
    assert sharpness(image // 2) == pytest.approx(sharpness(image), rel=0.02)  # whatever the light


def test_what_is_blurred_as_a_whole_is_kept_as_nothing_is_better():
    assert blurred_frames([VideoFrame(k, k / 2, 0.01) for k in range(20)]) == []
    frames = [VideoFrame(k, k / 2, 0.3 - 0.01 * k) for k in range(25)]  # becomes dull by and by
    assert blurred_frames(frames[:20]) == []
    assert blurred_frames([VideoFrame(0, 0, 0.0), VideoFrame(1, 1, 1.0)]) == []  # nothing tells which of two is usual


def test_stopped_it_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    path = write_video(tmp_path / "a.avi", walk({18, 19, 20, 21}))
    whole = extract_frames(path, tmp_path / "whole", fps=2)
    written, real = [], video.write_image

    def stopping(target, image):
        if len(written) == 4:
            raise KeyboardInterrupt
        real(target, image)
        written.append(target)

    monkeypatch.setattr(video, "write_image", stopping)
    with pytest.raises(KeyboardInterrupt):
        extract_frames(path, tmp_path / "frames", fps=2)
    with open(tmp_path / "frames" / video.JOURNAL, "a", encoding="utf-8") as journal:
        journal.write('{"number": 12')  # a line that was being written
    measured, real_sharpness = [], video.sharpness
    monkeypatch.setattr(video, "write_image", real)
    monkeypatch.setattr(video, "sharpness", lambda image: measured.append(1) or real_sharpness(image))
    assert extract_frames(path, tmp_path / "frames", fps=2) == whole
    assert len(measured) < 0.7 * (len(whole.kept) + len(whole.blurred)) * 5  # of five around each instant
    for frame in whole.kept:
        assert (tmp_path / "frames" / frame.name).read_bytes() == (tmp_path / "whole" / frame.name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "frames").iterdir() if not p.name.startswith(".")) == sorted(
        p.name for p in (tmp_path / "whole").iterdir() if not p.name.startswith(".")
    )
    measured.clear()
    assert extract_frames(path, tmp_path / "frames", fps=2) == whole  # all done before
    assert not measured


def test_frames_of_another_video_are_not_mixed_in(tmp_path):
    path = write_video(tmp_path / "a.avi", walk())
    extract_frames(path, tmp_path / "frames", fps=2)
    with pytest.raises(OtherSettingsError, match="another source, or with other settings"):
        extract_frames(path, tmp_path / "frames", fps=3)


def test_a_video_that_ends_early_is_used_and_said(tmp_path, capsys):
    path = write_video(tmp_path / "a.avi", walk())
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    assert main(["frames", str(path), "--output", str(tmp_path / "frames")]) == 1
    said = capsys.readouterr()
    assert "a.avi ends early: " in said.err
    assert " of 5.0 s can be read" in said.err
    found = json.loads((tmp_path / "frames" / video.RECORD).read_text())
    assert 2.0 < found["seconds"] < 3.5
    assert len(found["kept"]) == pytest.approx(2 * found["seconds"], abs=2)


@pytest.mark.parametrize("content", [b"", b"no video at all", None])
def test_what_is_no_video_is_one_line(tmp_path, capsys, content):
    path = tmp_path / "a.mp4"
    if content is None:  # an mp4 has its table of contents at the end
        write_video(path, walk(), code="mp4v")
        content = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(content)
    assert main(["frames", str(path), "--output", str(tmp_path / "frames")]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert "a.mp4 is no video that can be read" in line
    assert main(["frames", str(tmp_path / "absent.mp4"), "--output", str(tmp_path / "frames")]) == 2
    assert "cannot read the video" in capsys.readouterr().err


def test_a_phone_that_was_held_upright(tmp_path):
    path = write_video(tmp_path / "a.mp4", [waves(1, (96, 160))] * RATE, code="mp4v")
    content = bytearray(path.read_bytes())
    place = content.index(b"tkhd") + 4 + 40  # version 0: the matrix comes after 40 bytes
    content[place : place + 36] = struct.pack(">9i", 0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)  # by 90 degrees
    path.write_bytes(content)
    found = extract_frames(path, tmp_path / "frames", fps=2)
    shown = read_image(tmp_path / "frames" / found.kept[0].name).astype(int)
    assert shown.shape == (160, 96, 3)
    assert np.abs(shown - np.rot90(waves(1, (96, 160)), -1)).mean() < 10


def test_videos_become_a_map_with_a_camera_each(tmp_path, monkeypatch, capsys):
    names = [f"{clip}/{k:06d}.jpg" for clip in ("one", "two") for k in range(4)]
    scene = make_scene(names, points=500)
    write_images(scene, tmp_path / "drawn")
    for clip in ("one", "two"):
        drawn = [read_image(tmp_path / "drawn" / name) for name in names if name.startswith(clip)]
        write_video(tmp_path / f"{clip}.avi", drawn, rate=2)
    settings, videos = video_settings(), [tmp_path / "one.avi", tmp_path / "two.avi"]
    assert settings.reconstruction.camera.mode == "per_folder"
    monkeypatch.setattr("pdc_sfm.demo.photographs.engine_matcher", lambda settings, masks: exact_matcher(scene))
    words = ["map", "--output", str(tmp_path / "run"), "report=false"]
    words += [word for path in videos for word in ("--video", str(path))]
    assert main(words) == 0
    assert "8/8" in capsys.readouterr().out
    assert list_images(tmp_path / "run" / "images") == names
    folder = run_photographs(None, tmp_path / "run", settings, videos=videos, match=exact_matcher(scene))
    from pdc_sfm.colmap.io.models import load_model

    assert load_model(folder / "sfm").num_cameras() == 2
    assert main(["map", "--output", str(tmp_path / "run")]) == 2
    assert "a folder of photographs, or --video FILE" in capsys.readouterr().err
