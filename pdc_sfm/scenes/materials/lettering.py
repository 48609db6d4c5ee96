"""Capital letters drawn with straight strokes, sharp at any distance."""

from __future__ import annotations

import functools
import itertools

import numpy as np

# Each letter: strokes as pairs of points on a grid 0..4 across, 0..6 up; "." lifts the pen.
_STROKES = {
    "A": "00 26 40.12 32",
    "B": "00 06 36 45 44 33 03.33 42 41 30 00",
    "C": "45 36 16 05 01 10 30 41",
    "D": "00 06 26 44 42 20 00",
    "E": "40 00 06 46.03 33",
    "F": "00 06 46.03 33",
    "G": "45 36 16 05 01 10 30 41 43 23",
    "H": "00 06.40 46.03 43",
    "I": "20 26",
    "J": "46 41 30 10 01",
    "K": "00 06.46 03 40",
    "L": "06 00 40",
    "M": "00 06 23 46 40",
    "N": "00 06 40 46",
    "O": "10 01 05 16 36 45 41 30 10",
    "P": "00 06 36 45 44 33 03",
    "Q": "10 01 05 16 36 45 41 30 10.22 40",
    "R": "00 06 36 45 44 33 03.23 40",
    "S": "01 10 30 41 42 33 13 04 05 16 36 45",
    "T": "20 26.06 46",
    "U": "06 01 10 30 41 46",
    "V": "06 20 46",
    "W": "06 10 23 30 46",
    "X": "00 46.06 40",
    "Y": "06 23 46.23 20",
    "Z": "06 46 00 40",
    "&": "40 05 16 25 02 10 20 42",
    "0": "10 01 05 16 36 45 41 30 10",
    "1": "15 26 20",
    "2": "05 16 36 45 44 00 40",
    "3": "05 16 36 45 44 33 42 41 30 10 01",
    "4": "30 36 02 42",
    "5": "46 06 03 33 42 41 30 00",
    "6": "45 36 16 05 01 10 30 41 42 33 03",
    "7": "06 46 10",
    "8": "13 04 05 16 36 45 44 33 13 02 01 10 30 41 42 33",
    "9": "01 10 30 41 45 36 16 05 04 13 43",
    " ": "",
}
SHOPS = (
    *(
        "CAFE AM MARKT",
        "APOTHEKE",
        "BUCHHANDLUNG",
        "BACKEREI KAISER",
        "HOTEL KRONE",
        "UHREN & SCHMUCK",
        "BLUMEN",
        "ZUM LOWEN",
    ),
    *(
        "OPTIK WEBER",
        "SCHUHHAUS LANG",
        "POST",
        "WEINSTUBE",
        "EISENWAREN",
        "METZGEREI FUCHS",
        "FAHRRADER",
        "GASTHAUS ADLER",
    ),
    *("SPIELWAREN", "FRISEUR", "DROGERIE", "TABAK", "KUNST & RAHMEN", "LEDERWAREN", "TEEHAUS", "PAPETERIE"),
)
BILLS = ("KONZERT", "THEATER", "MUSEUM", "ZIRKUS", "JAZZ 24", "MARKT", "FEST", "OPER", "KINO", "LAUF 10", "AUSSTELLUNG")
STALLS = ("OBST & GEMUSE", "KASE", "BROT", "HONIG", "SUPPEN")
TOWN_HALL = "RATHAUS 1587"
WORDS = (*SHOPS, *BILLS, *STALLS, TOWN_HALL)
_LIMIT = 16  # strokes of the most intricate letter


@functools.cache
def _alphabet() -> tuple[dict[str, int], np.ndarray]:
    """Index of each letter, and all strokes (letters, _LIMIT, 4) as x0 y0 x1 y1; unused ones are far away."""
    table = np.full((len(_STROKES), _LIMIT, 4), 99.0, np.float32)
    for i, strokes in enumerate(_STROKES.values()):
        lines = [line.split() for line in strokes.split(".")]
        segments = [(*map(int, a), *map(int, b)) for line in lines for a, b in itertools.pairwise(line)]
        table[i, : len(segments)] = np.array(segments or [(99,) * 4], np.float32)[:_LIMIT]
    return {letter: i for i, letter in enumerate(_STROKES)}, table


@functools.cache
def _texts() -> tuple[np.ndarray, np.ndarray]:
    """WORDS as letter indices (words, longest), padded with blanks, and their lengths."""
    index, _ = _alphabet()
    longest = max(map(len, WORDS))
    letters = np.array([[index[c] for c in word.ljust(longest)] for word in WORDS])
    return letters, np.array([len(word) for word in WORDS], np.float32)


def lettered(
    x: np.ndarray, y: np.ndarray, word: np.ndarray, height: np.ndarray, weight: np.ndarray | float, pixel: np.ndarray
) -> np.ndarray:
    """Coverage (n,) of a word centerd at (0, 0) with letters of `height`; `weight` is the stroke's width in heights."""
    letters, lengths = _texts()
    word = np.clip(word.astype(np.int64), 0, len(WORDS) - 1)
    unit = height / 6  # metres per grid step; a letter takes 5.6 steps
    column = x / (unit * 5.6) + lengths[word] / 2
    place = np.floor(column)
    inside = np.flatnonzero((place >= 0) & (place < lengths[word]) & (np.abs(y) < height * 0.75))
    ink = np.zeros(len(x), np.float32)
    if len(inside) == 0:
        return ink
    letter = letters[word[inside], place[inside].astype(np.int64)]
    gx = (column[inside] - place[inside]) * 5.6 - 0.8
    gy = y[inside] / unit[inside] + 3
    stroke = np.broadcast_to(weight, x.shape)[inside] * 3  # half width in grid steps
    distance = _to_strokes(gx, gy, letter)
    blur = pixel[inside] / unit[inside]
    ink[inside] = np.clip((stroke - distance) / blur + 0.5, 0, 1) * np.minimum(2 * stroke / blur, 1)
    return ink


def _to_strokes(x: np.ndarray, y: np.ndarray, letter: np.ndarray) -> np.ndarray:
    """Distance to the nearest stroke of each letter, in grid steps."""
    _, table = _alphabet()
    best = np.full(len(x), 1e3, np.float32)
    for k in range(_LIMIT):
        x0, y0, x1, y1 = table[letter, k].T
        dx, dy = x1 - x0, y1 - y0
        along = np.clip(((x - x0) * dx + (y - y0) * dy) / np.maximum(dx * dx + dy * dy, 1e-6), 0, 1)
        best = np.minimum(best, np.hypot(x - x0 - along * dx, y - y0 - along * dy))
    return best
