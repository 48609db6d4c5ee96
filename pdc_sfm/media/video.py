"""Photographs from a video: the sharpest frame around every instant, without blurred ones.

A folder of frames is filled frame by frame; `frames.jsonl` says which are there while it is being filled, `frames.json` when it
is complete.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.files import exclusive, file_digest, write_text
from pdc_sfm.images import write_image
from pdc_sfm.media.picture_log import append_journal, other_content, read_journal
from pdc_sfm.paths import check_regular, keep_apart, read_text
from pdc_sfm.progress import progress

log = logging.getLogger(__name__)

RECORD, JOURNAL = "frames.json", "frames.jsonl"
WINDOW = 0.5  # of the time between two frames, around each instant, in which the sharpest frame is taken
# A frame half as sharp as its neighbors is left out. Motion that smears a photograph of 1,920 pixels by 10 of them does that
# (8 to 13 on four of Oxford's photographs, 20 to 24 on a fifth that is blurred already; defocus of that width does as well).
MIN_SHARPNESS = 0.5  # of the median of its neighbors
NEIGHBORS = 5  # frames before and as many after: fewer than five blurred frames in a row leave the median sharp
SIDE = 960  # pixels, at which sharpness is measured
EARLY = 0.5, 0.02  # seconds and share of the time that a video may end before it says, as times are rounded


@dataclasses.dataclass(frozen=True)
class VideoFrame:
    """A frame of a video."""

    number: int
    time: float  # seconds
    sharpness: float

    @property
    def name(self) -> str:
        return f"{self.number:06d}.jpg"


@dataclasses.dataclass(frozen=True)
class VideoFrames:
    """What became of a video."""

    kept: tuple[VideoFrame, ...]
    blurred: tuple[VideoFrame, ...]  # left out
    seconds: float  # of the video that could be read
    said: str = ""  # what is wrong with it, if anything

    def __str__(self) -> str:
        return f"{len(self.kept)} frames of {self.seconds:.1f} s ({len(self.blurred)} blurred ones left out)"


def extract_frames(video: Path | str, output: Path | str, fps: float = 2.0) -> VideoFrames:
    """Write about `fps` frames of each second of a video into a folder, as JPEG. Stopped, it goes on where it was."""
    video, output = Path(video), Path(output)
    if not (math.isfinite(fps) and fps > 0):
        raise SettingsError(f"fps={fps} must be above 0: frames taken of a second")
    keep_apart(inputs=[video], folders=[output])
    try:
        check_regular(video)
    except OSError as error:
        raise ImageError(f"cannot read the video {video}: {error.strerror}") from None
    origin = {"video": video.name, "digest": file_digest(video), "fps": float(fps)}
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RECORD):
        done = _read_record(output, origin)
        return done or _extract(video, output, origin, fps)


def blurred_frames(frames: list[VideoFrame]) -> list[VideoFrame]:
    """Those that are far less sharp than the frames around them."""
    found = []
    for k, frame in enumerate(frames):
        around = frames[max(0, k - NEIGHBORS) : k] + frames[k + 1 : k + 1 + NEIGHBORS]
        if len(around) > 1 and frame.sharpness < MIN_SHARPNESS * np.median([other.sharpness for other in around]):
            found.append(frame)
    return found


def sharpness(image: np.ndarray) -> float:
    """Of an image (H, W, 3): contrast between neighboring pixels, in the direction that has least, by the contrast of all.

    Motion smears one direction and leaves the other: of the gradients' covariance the smaller eigenvalue tells of both.
    """
    import cv2

    factor = min(1.0, SIDE / max(image.shape[:2]))
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    gray = cv2.resize(gray, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA).astype(np.float32)
    x, y = gray[1:, 1:] - gray[:-1, :-1], gray[1:, :-1] - gray[:-1, 1:]  # along both diagonals
    xy = float((x * y).mean())
    smaller = np.linalg.eigvalsh([[float((x * x).mean()), xy], [xy, float((y * y).mean())]])[0]
    contrast = float(gray.std())
    return math.sqrt(max(smaller, 0.0)) / contrast if contrast > 0 else 0.0


class _Video:
    """VideoFrame after frame of a file, with times that grow."""

    def __init__(self, path: Path):
        os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # what is wrong with it is said here, once
        import cv2

        self._cv2 = cv2
        self._capture = cv2.VideoCapture(str(path))
        if not self._capture.isOpened():
            raise _unreadable(path)
        rate, count = self._capture.get(cv2.CAP_PROP_FPS), self._capture.get(cv2.CAP_PROP_FRAME_COUNT)
        self.rate = rate if math.isfinite(rate) and rate > 0 else 30.0
        self.count = int(count) if math.isfinite(count) and 0 < count < 1 << 40 else 0  # as it says
        self.number, self.time = -1, -1.0

    def advance(self) -> bool:
        """Go to the next frame; whether there is one."""
        if not self._capture.grab():
            return False
        self.number += 1
        said = self._capture.get(self._cv2.CAP_PROP_POS_MSEC) / 1000
        self.time = said if math.isfinite(said) and said > self.time else self.time + 1 / self.rate
        return True

    def image(self) -> np.ndarray | None:
        """The frame as it is to be seen, turned as the file says; None if it is damaged."""
        there, image = self._capture.retrieve()
        return np.ascontiguousarray(image[..., ::-1]) if there and image is not None and image.ndim == 3 else None

    def close(self) -> None:
        self._capture.release()


def _extract(video: Path, output: Path, origin: dict[str, Any], fps: float) -> VideoFrames:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(contextlib.closing(_Video(video)))
        frames = [VideoFrame(**values) for values in read_journal(output / JOURNAL, origin)]
        bar = stack.enter_context(progress(None, "frames", "frame", source.count or None))
        for frame, image in _sharpest(source, fps, frames[-1] if frames else None, bar):
            write_image(output / frame.name, image)
            append_journal(output / JOURNAL, dataclasses.asdict(frame))
            frames.append(frame)
        seconds, rate, count = max(source.time, 0.0), source.rate, source.count
    if not frames:
        (output / JOURNAL).unlink()
        raise _unreadable(video)
    blurred = blurred_frames(frames)
    for frame in blurred:
        (output / frame.name).unlink(missing_ok=True)
    said = ""
    if count / rate - seconds - 1 / rate > max(EARLY[0], EARLY[1] * count / rate):
        said = (
            f"{video} ends early: {seconds:.1f} of {count / rate:.1f} s can be read, which are used; it may be damaged, or "
            "not have been copied in full"
        )
        log.warning(said)
    result = VideoFrames(tuple(f for f in frames if f not in blurred), tuple(blurred), seconds, said)
    write_text(output / RECORD, json.dumps({**origin, **dataclasses.asdict(result)}, indent=1) + "\n")
    (output / JOURNAL).unlink()
    return result


def _sharpest(source: _Video, fps: float, last: VideoFrame | None, bar: Any) -> Iterator[tuple[VideoFrame, np.ndarray]]:
    """The sharpest frame around each instant; those after `last`, if it was reached before."""
    step, best, current = 1 / fps, None, 0  # the instant that the best frame so far belongs to
    reached = -1 if last is None else round(last.time / step)
    while source.advance():
        bar.update()
        instant = round(source.time / step)
        if best is not None and instant != current:
            yield best
            best = None
        # of a video with fewer frames than are asked for, each is taken
        near = abs(source.time / step - instant) <= WINDOW / 2 or source.rate < 2 * fps
        if not near or instant <= reached:
            continue
        image = source.image()
        if image is None:
            continue
        frame = VideoFrame(source.number, source.time, sharpness(image))
        if best is None or frame.sharpness > best[0].sharpness:
            best, current = (frame, image), instant
    if best is not None:
        yield best


def _read_record(output: Path, origin: dict[str, Any]) -> VideoFrames | None:
    """Of a call that was done before."""
    if not (output / RECORD).is_file():
        return None
    try:
        found = json.loads(read_text(output / RECORD))
        kept, blurred = (tuple(VideoFrame(**frame) for frame in found[key]) for key in ("kept", "blurred"))
    except (ValueError, TypeError, KeyError):
        raise other_content(output) from None
    if {key: found.get(key) for key in origin} != origin:
        raise other_content(output)
    if not all((output / frame.name).is_file() for frame in kept):
        (output / RECORD).unlink()
        return None
    return VideoFrames(kept, blurred, found["seconds"], found["said"])


def _unreadable(video: Path) -> ImageError:
    return ImageError(f"{video} is no video that can be read: no frame of it can be decoded; was it copied in full?")
