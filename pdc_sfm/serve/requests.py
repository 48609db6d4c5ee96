"""Requests in one SQLite file: queued ones with their pictures, finished ones with their answers. A kill loses none of them."""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pdc_sfm.client.answers import Request
from pdc_sfm.errors import FormatError

MOST_BEGINNINGS = 2  # a request that was begun so often and never ended took the server down with it
SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    received REAL NOT NULL, finished REAL, name TEXT NOT NULL, parameters TEXT NOT NULL, begun INTEGER NOT NULL DEFAULT 0,
    answer TEXT, error TEXT NOT NULL DEFAULT '', status INTEGER NOT NULL DEFAULT 200);
CREATE INDEX IF NOT EXISTS by_state ON requests (state, number);
CREATE TABLE IF NOT EXISTS pictures (id TEXT NOT NULL, place INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (id, place));
"""
ADDITION = "add"  # the kind of requests that change the map
COLUMNS = "id, kind, state, received, finished, name, answer, error, status"


def new_number() -> str:
    """The name of a request, which no one guesses."""
    return secrets.token_urlsafe(12)


class Full(Exception):
    """As many requests are waiting as the server takes."""


class Task(NamedTuple):
    """A request that is to be worked on."""

    id: str
    kind: str
    parameters: dict[str, Any]
    pictures: list[bytes]


class RequestStore:
    """Threads may share it. `bound`: requests that wait; `history`: finished ones that are kept."""

    def __init__(self, path: Path, bound: int, history: int):
        self._bound, self._history, self._lock = bound, history, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(SCHEMA)
            self._recover()
        except sqlite3.DatabaseError as error:
            raise FormatError(f"cannot read the requests in {path}: {error}; move that file away") from None

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _recover(self) -> None:
        """What was being worked on when the server ended begins again, unless it is what ended it."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            given_up = "the server ended while it worked on this, more than once"
            self._db.execute(
                "UPDATE requests SET state='failed', finished=?, error=?, status=500 WHERE state='running' AND begun>=?",
                (time.time(), given_up, MOST_BEGINNINGS),
            )
            self._db.execute("DELETE FROM pictures WHERE id IN (SELECT id FROM requests WHERE state='failed')")
            self._db.execute("UPDATE requests SET state='queued' WHERE state='running'")

    def add(
        self, number: str, kind: str, parameters: dict[str, Any], pictures: Sequence[bytes], name: str = ""
    ) -> None:
        """Queue a request; raises `Full`. On return it survives the end of this process."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if self._count("queued") >= self._bound:
                raise Full
            self._db.execute(
                "INSERT INTO requests (id, kind, state, received, name, parameters) VALUES (?, ?, 'queued', ?, ?, ?)",
                (number, kind, time.time(), name, json.dumps(parameters)),
            )
            rows = [(number, place, content) for place, content in enumerate(pictures)]
            self._db.executemany("INSERT INTO pictures VALUES (?, ?, ?)", rows)

    def take(self, additions: bool = False) -> Task | None:
        """The request that waits longest, now being worked on: of additions to the map, or of all others."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            row = self._db.execute(
                "SELECT id, kind, parameters FROM requests WHERE state='queued' AND (kind=?)=? ORDER BY number LIMIT 1",
                (ADDITION, additions),
            ).fetchone()
            if row is None:
                return None
            self._db.execute("UPDATE requests SET state='running', begun=begun+1 WHERE id=?", row[:1])
            pictures = self._db.execute("SELECT content FROM pictures WHERE id=? ORDER BY place", row[:1]).fetchall()
        return Task(row[0], row[1], json.loads(row[2]), [content for (content,) in pictures])

    def finish(self, number: str, answer: dict[str, Any] | None, error: str = "", status: int = 200) -> None:
        """Keep the answer, or why there is none; the picture is no longer needed."""
        state = "failed" if answer is None else "done"
        text = None if answer is None else json.dumps(answer)
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "UPDATE requests SET state=?, finished=?, answer=?, error=?, status=? WHERE id=?",
                (state, time.time(), text, error, status, number),
            )
            self._db.execute("DELETE FROM pictures WHERE id=?", (number,))
            self._db.execute(
                "DELETE FROM requests WHERE state NOT IN ('queued', 'running') AND number <= "
                "(SELECT max(number) FROM requests) - ?",
                (self._history,),
            )

    def drop(self, number: str) -> None:
        """Forget a request that no one waits for any more, unless it is being worked on."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            gone = "UPDATE requests SET state='dropped', finished=? WHERE id=? AND state='queued'"
            if self._db.execute(gone, (time.time(), number)).rowcount:
                self._db.execute("DELETE FROM pictures WHERE id=?", (number,))

    def get(self, number: str) -> Request | None:
        """A request; None if there is none of this number, or it was long ago."""
        with self._lock:
            row = self._db.execute(f"SELECT {COLUMNS}, number FROM requests WHERE id=?", (number,)).fetchone()
            if row is None:
                return None
            ahead = 0
            if row[2] == "queued":
                waiting = "SELECT count(*) FROM requests WHERE state IN ('queued', 'running') AND number < ?"
                (ahead,) = self._db.execute(waiting, row[-1:]).fetchone()
        return _request(row[:-1], ahead)

    def latest(self, count: int) -> list[Request]:
        """The latest requests, the latest first."""
        with self._lock:
            rows = self._db.execute(f"SELECT {COLUMNS} FROM requests ORDER BY number DESC LIMIT ?", (count,)).fetchall()
        return [_request(row) for row in rows]

    def waiting(self) -> int:
        """How many are queued."""
        with self._lock:
            return self._count("queued")

    def _count(self, state: str) -> int:
        return int(self._db.execute("SELECT count(*) FROM requests WHERE state=?", (state,)).fetchone()[0])


def _request(row: tuple[Any, ...], ahead: int = 0) -> Request:
    number, kind, state, received, finished, name, answer, error, status = row
    content = None if answer is None else json.loads(answer)
    return Request(
        number, kind, state, received, finished, name, ahead=ahead, answer=content, error=error, status=status
    )
