"""The commands of README.md: those of its blocks, those inside its sentences and tables, and its Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("pdc-sfm", "make", "python", "pip", "git")


@dataclass(frozen=True)
class Block:
    """Lines that stand together, to be run one after the other."""

    language: str  # "" for shell
    lines: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """Fenced blocks with their language, and blocks indented by four blanks. A backslash joins lines."""
    found, inside, language, lines = [], False, "", []
    for line in [*text.splitlines(), ""]:
        fence = re.fullmatch(r"```(\w*)", line.strip())
        if fence and not inside:
            inside, language = True, fence[1]
        elif fence or (not inside and lines and not line.startswith("    ")):
            found.append(Block("" if language in ("bash", "sh", "console") else language, _joined(lines)))
            inside, language, lines = False, "", []
        elif inside or line.startswith("    "):
            lines.append(line if inside else line[4:])
    return found


def inline(text: str) -> list[str]:
    """Commands between single backquotes, outside of blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    prose = "\n".join(line for line in prose.splitlines() if not line.startswith("    "))
    return [word for word in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose) if word.split()[0] in PROGRAMS]


def _joined(lines: list[str]) -> tuple[str, ...]:
    return tuple("\n".join(lines).replace("\\\n", " ").splitlines())
