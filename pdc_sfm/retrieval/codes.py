"""Codes of many images by the 256-pixel branch, on disk in parts: made once, used for every query and every run.

A part is a safetensors file of some images' features in half precision. Each is written at once, so a run that is killed
goes on after the last whole part.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pdc_sfm.dense.views import View
from pdc_sfm.engine.reading import ReadAhead
from pdc_sfm.errors import FormatError, ImageError, OtherSettingsError
from pdc_sfm.files import remove_leftovers
from pdc_sfm.images import Photograph, read_photograph
from pdc_sfm.network import ImageCode, PDCNet
from pdc_sfm.pixels import COARSE_SIDE, MIN_SIDE, Size
from pdc_sfm.settings import differences
from pdc_sfm.weights.tensor_files import write_safetensors

PART = 128  # images of a part
ENCODED_AT_ONCE = 8  # images in a batch
FEW = 0.5  # of a part: up to so many of its images are read one by one


@dataclass(frozen=True)
class CoarseCodes:
    """Codes of some images by the 256-pixel branch, half precision."""

    names: list[str]
    sizes: list[Size]  # (width, height) of the images
    code: ImageCode  # a batch

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Sequence[int], device: str = "cpu") -> ImageCode:
        """The codes of some of the images as a batch for the network."""
        index = torch.as_tensor(rows)
        return self.code.map(lambda x: x[index].to(device, torch.float32))

    def some(self, rows: Sequence[int]) -> CoarseCodes:
        """Those of some of the images."""
        index = torch.as_tensor(rows)
        names, sizes = [self.names[row] for row in rows], [self.sizes[row] for row in rows]
        return CoarseCodes(names, sizes, self.code.map(lambda x: x[index]))

    @staticmethod
    def cat(parts: Sequence[CoarseCodes]) -> CoarseCodes:
        names, sizes = ([item for part in parts for item in getattr(part, key)] for key in ("names", "sizes"))
        return CoarseCodes(names, sizes, ImageCode.cat([part.code for part in parts]))


class Encoder:
    """Images of a folder to codes. `bad` collects those that cannot be read."""

    def __init__(self, network: PDCNet, images: Path, *, readers: int = 2, device: str = "cpu"):
        self.network, self.images, self.readers, self.device = network, images, readers, device
        self.bad: dict[str, str] = {}

    def encode(self, names: Sequence[str]) -> CoarseCodes | None:
        """The codes of the readable images; None if there is none."""
        kept: list[tuple[str, Size]] = []
        pictures: list[np.ndarray] = []
        codes: list[ImageCode] = []
        for name, found in self._read(names):
            if found is not None:
                kept.append((name, found[1]))
                pictures.append(found[0])
            if len(pictures) == ENCODED_AT_ONCE or (pictures and name == names[-1]):
                codes.append(self._encode(np.stack(pictures)))
                pictures.clear()
        if not kept:
            return None
        return CoarseCodes([name for name, _ in kept], [size for _, size in kept], ImageCode.cat(codes))

    def encode_one(self, photograph: Photograph, name: str = "query") -> CoarseCodes:
        """The code of an image that is in memory."""
        small, size = _small(photograph, name)
        return CoarseCodes([name], [size], self._encode(small[None]))

    def _encode(self, pictures: np.ndarray) -> ImageCode:
        batch = torch.from_numpy(pictures).permute(0, 3, 1, 2).to(self.device)  # (B, 3, 256, 256)
        with torch.inference_mode():
            return self.network.encode_low(batch).to("cpu", torch.float16)

    def _read(self, names: Sequence[str]) -> Iterator[tuple[str, tuple[np.ndarray, Size] | None]]:
        with ReadAhead(self.images, self.readers, _read_small) as reader:
            waiting = iter(names)
            for name in names:
                while reader.has_room and (ahead := next(waiting, None)) is not None:
                    reader.start(ahead)
                try:
                    yield name, reader.take(name)
                except ImageError as error:
                    self.bad[name] = str(error)
                    yield name, None


def _read_small(path: Path) -> tuple[np.ndarray, Size]:
    """An image at 256x256 as it is seen upright, (256, 256, 3) float32 in [0, 1], and its own stored (width, height)."""
    return _small(read_photograph(path), path)


def _small(photograph: Photograph, name: Path | str) -> tuple[np.ndarray, Size]:
    image, orientation = photograph
    size = image.shape[1], image.shape[0]
    if min(size) < MIN_SIDE:
        raise ImageError(f"{name} is {size[0]}x{size[1]} pixels: at least {MIN_SIDE}x{MIN_SIDE} are needed")
    upright = np.ascontiguousarray(orientation.upright(image))
    return View.whole(upright, orientation.stored_size(size), (COARSE_SIDE, COARSE_SIDE)).render(), size


class CodeFolder:
    """Codes of a database on disk. `made_by` says what decides them; codes made by something else are refused."""

    def __init__(self, folder: Path | str, made_by: Mapping[str, Any]):
        self.folder = Path(folder)
        self.made_by = json.loads(json.dumps(made_by))
        self.parts = sorted(self.folder.glob("[0-9]*.safetensors"))
        self.images: list[list[tuple[str, Size]]] = []  # of each part: names and (width, height)
        self._places: dict[str, tuple[int, int]] = {}  # name -> part and row
        for path in self.parts:
            self._know(self._header(path))

    @property
    def names(self) -> Collection[str]:
        """The images that have codes."""
        return self._places.keys()

    def missing(self, names: Sequence[str]) -> list[str]:
        """The images that no part has yet."""
        return [name for name in names if name not in self._places]

    def rows(self, names: Sequence[str]) -> list[tuple[int, list[int]]]:
        """Where the wanted images are: numbers of parts, and rows in them."""
        found: dict[int, list[int]] = {}
        for part, row in sorted({self._places[name] for name in names if name in self._places}):
            found.setdefault(part, []).append(row)
        return list(found.items())

    def read(self, part: int, rows: list[int], levels: Sequence[int] = ()) -> CoarseCodes:
        """The codes of some rows of a part, of all levels or only of some."""
        file, known = self._open(self.parts[part])[0], self.images[part]
        features: dict[int, Tensor] = {}
        for key in file.keys():
            level = int(key.removeprefix("level"))
            if levels and level not in levels:
                continue
            if len(rows) <= FEW * len(known):  # a part is 27 MB: one query's images are a hundredth of it
                stored = file.get_slice(key)
                features[level] = torch.cat([stored[row : row + 1] for row in rows])
            else:
                tensor = file.get_tensor(key)
                features[level] = tensor if len(rows) == len(known) else tensor[torch.as_tensor(rows)]
        names, sizes = [known[row][0] for row in rows], [known[row][1] for row in rows]
        return CoarseCodes(
            names, sizes, ImageCode(features, {}, (COARSE_SIDE, COARSE_SIDE), (COARSE_SIDE, COARSE_SIDE))
        )

    def add(self, codes: CoarseCodes) -> None:
        """Write a part. Hold the lock of the folder (`files.exclusive`) meanwhile."""
        number = int(self.parts[-1].stem) + 1 if self.parts else 0
        path = self.folder / f"{number:05d}.safetensors"
        tensors = {f"level{level}": x.contiguous() for level, x in codes.code.features.items()}
        content = {"names": codes.names, "sizes": codes.sizes, "made_by": self.made_by}
        remove_leftovers(path)
        write_safetensors(path, tensors, {"pdc_sfm.codes": json.dumps(content)})
        self.parts.append(path)
        self._know(list(zip(codes.names, codes.sizes)))

    def _know(self, images: list[tuple[str, Size]]) -> None:
        for row, (name, _) in enumerate(images):
            self._places.setdefault(name, (len(self.images), row))
        self.images.append(images)

    def _header(self, path: Path) -> list[tuple[str, Size]]:
        content = self._open(path)[1]
        changes = differences(content["made_by"], self.made_by)
        if changes:
            raise OtherSettingsError(
                f"the codes in {self.folder} were made otherwise ({'; '.join(changes)}): choose another folder",
                self.folder,
            )
        return [(name, tuple(size)) for name, size in zip(content["names"], content["sizes"])]

    def _open(self, path: Path) -> tuple[Any, dict[str, Any]]:
        from safetensors import SafetensorError, safe_open

        try:
            file = safe_open(path, framework="pt")
            return file, json.loads((file.metadata() or {})["pdc_sfm.codes"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise FormatError(f"{path} does not hold codes of images ({error}): delete it and run again") from None
