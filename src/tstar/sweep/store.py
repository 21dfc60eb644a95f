"""The store: SQLite, one row per run, committed as each run ends.

A run is *claimed* before it is started: its row says who works on it (host, process, a token) and
carries a heartbeat that changes while its holder lives. A claim whose process is gone from this host, or
whose heartbeat a reader has seen unchanged for a lease by the reader's own clock, is dead: anyone may take it
over. No clock is compared with another one; all that is assumed is that a holder beats within the lease, and
that host names differ. A result is written only by the holder of the claim.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tstar.errors import TstarError
from tstar.sweep.columns import ADDED, COLUMNS, WRITTEN, fits, recovered
from tstar.sweep.select import studies_of
from tstar.sweep.shared import process_exists
from tstar.sweep.spec import Spec

SCHEMA = 4  # PRAGMA user_version; a store with a higher one was written by a newer tstar
LEASE = 120.0  # seconds in which a heartbeat must change, or the claim is dead
_SAFE = "what was stored before is still there"
_ADVICE = {
    "full": f"free some space and start the sweep again: it goes on where it was; {_SAFE}",
    "readonly": f"the file or its folder is read-only; choose a writable --store; {_SAFE}",
    "read-only": f"the file or its folder is read-only; choose a writable --store; {_SAFE}",
    "unable to open": "its folder must exist and be writable; choose another --store",
    "locked": f"another process holds it; try again; {_SAFE}",
    "not a database": "it is not a store of tstar, or its beginning is damaged; choose another --store, or a copy of it; an "
    "export (.parquet, .csv) becomes a store by tstar runs merge FILE --into runs.db",
    "malformed": "the file is damaged and runs may be lost: use a copy, or save what can be read with "
    "sqlite3 FILE .recover",
}


class Store:
    """A file of runs. Opening it for reading creates nothing."""

    def __init__(self, path: str | Path, *, create: bool = False, lease: float = LEASE) -> None:
        self.path, self.lease = Path(path), lease
        self.claim_token, self.host, self.pid = uuid.uuid4().hex, socket.gethostname(), os.getpid()
        if not create and not self.path.exists():
            raise TstarError(f"The store {str(self.path)!r} does not exist; run tstar sweep first.")
        with self._explained():
            # isolation_level=None: every statement is its own transaction, or we say BEGIN.
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            try:
                self._db.row_factory = sqlite3.Row
                self._db.execute("PRAGMA synchronous = FULL")
                self._open(create)
            except BaseException:
                self._db.close()
                raise
        self._inode = os.stat(self.path).st_ino
        self._watched: dict[str, tuple[object, object, float]] = {}

    def _open(self, create: bool) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA:
            raise TstarError(
                f"The store {str(self.path)!r} was written by a newer version of tstar (schema "
                f"{version}, this one knows {SCHEMA}); update tstar. Nothing was changed."
            )
        tables = [
            r[0] for r in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        if "runs" in tables and 1 <= version <= SCHEMA:
            if version < SCHEMA and create:
                self._upgrade()
            return
        if tables or not create:
            raise TstarError(
                f"{str(self.path)!r} must be a store of tstar, but it is another SQLite file; "
                "choose another path with --store."
            )
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        with self._transaction():
            self._db.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns})")
            self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    def _upgrade(self) -> None:
        """Add the columns of later schemas; what older runs had there is filled in."""
        with self._transaction():
            present = self._present()
            for name, value in ADDED.items():
                if name not in present:
                    default = "NULL" if value is None else json.dumps(value).replace('"', "'")
                    self._db.execute(
                        f'ALTER TABLE runs ADD COLUMN "{name}" {COLUMNS[name]} DEFAULT {default}'
                    )
            self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    def _present(self) -> set[str]:
        """The columns that the file has."""
        return {row["name"] for row in self._db.execute("PRAGMA table_info(runs)")}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in the user's terms, with what is known of the runs that were stored."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            text = str(error)
            known = [advice for part, advice in _ADVICE.items() if part in text]
            advice = (known or ["check the path and the disk; what it still holds is not known"])[0]
            raise TstarError(
                f"The store {str(self.path)!r} could not be used: {text}; {advice}."
            ) from error

    def check_file(self) -> None:
        """The open file must still be the one at the path: results would go into a deleted one unseen."""
        try:
            same = os.stat(self.path).st_ino == self._inode
        except OSError:
            same = False
        if not same:
            raise TstarError(
                f"The store {str(self.path)!r} was deleted or replaced while it was in use; the results that "
                "it held are lost unless there is a copy."
            )

    # -- claiming and finishing ------------------------------------------------------------------

    def claim(
        self, spec: Spec, *, retry_failed: bool = True, study: tuple[str, str] | None = None
    ) -> bool:
        """Take a run: true if it is ours now, false if it is done or someone alive works on it.

        ``study``: name and hash of the study that asks for it.
        """
        now, key = time.time(), spec.key
        described = spec.to_dict()
        row = {name: value for name, value in described.items() if name in COLUMNS}
        row |= {"key": key, "status": "running", "attempts": 1, "spec": json.dumps(described)}
        row |= {"host": self.host, "pid": self.pid, "claim": self.claim_token}
        row |= {"started": now, "heartbeat": now}
        if study is not None:
            row["studies"] = json.dumps(dict([study]))
        with self._explained(), self._transaction():
            old = self._db.execute("SELECT * FROM runs WHERE key = ?", (key,)).fetchone()
            if old is not None and not self._claimable(old, retry_failed):
                return False
            if old is not None:
                row["attempts"] = old["attempts"] + 1
                row["studies"] = _joined(old["studies"], row.get("studies"))
            names = ", ".join(f'"{name}"' for name in row)
            marks = ", ".join(f":{name}" for name in row)
            self._db.execute(f"INSERT OR REPLACE INTO runs ({names}) VALUES ({marks})", row)
            return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk rolls back by itself
                self._db.execute("ROLLBACK")
            raise

    def _claimable(self, row: sqlite3.Row, retry_failed: bool) -> bool:
        if row["status"] == "failed":
            return retry_failed
        return row["status"] == "running" and not self.alive(row)

    def alive(self, row: Mapping[str, Any] | sqlite3.Row) -> bool:
        """Whether someone still works on a running row, as far as we have seen."""
        if row["claim"] == self.claim_token:
            return True
        if row["host"] == self.host and not process_exists(row["pid"]):
            return False
        now, beat = time.monotonic(), (row["claim"], row["heartbeat"])
        seen = self._watched.get(row["key"])
        if seen is None or seen[:2] != beat:
            seen = self._watched[row["key"]] = (*beat, now)
        return now - seen[2] < self.lease

    def beat(self) -> None:
        """Say that we are alive, for every run that we hold."""
        self.check_file()
        with self._explained():
            # About the time, for readers; what counts is that it changes, whatever the clock does.
            self._db.execute(
                "UPDATE runs SET heartbeat = max(?, heartbeat + 0.001) WHERE claim = ? AND status = 'running'",
                (time.time(), self.claim_token),
            )

    def join(self, keys: Iterable[str], study: tuple[str, str]) -> None:
        """Note that a study asks for runs that are in the store already."""
        new = json.dumps(dict([study]))
        with self._explained(), self._transaction():
            for key in keys:
                row = self._db.execute("SELECT studies FROM runs WHERE key = ?", (key,)).fetchone()
                if row is not None and (joined := _joined(row["studies"], new)) != row["studies"]:
                    self._db.execute("UPDATE runs SET studies = ? WHERE key = ?", (joined, key))

    def leave(self, keys: Iterable[str], study: tuple[str, str], *, part: bool = False) -> None:
        """Note that a study asks for no other runs than these; of a part of it, no others under an older hash."""
        asked, (study_name, digest) = set(keys), study
        with self._explained(), self._transaction():
            rows = self._db.execute("SELECT key, studies FROM runs WHERE studies IS NOT NULL")
            for key, text in rows.fetchall():
                names = studies_of(text)
                old = names.get(study_name)
                if key not in asked and old is not None and not (part and old == digest):
                    text = json.dumps({**names, study_name: None})
                    self._db.execute("UPDATE runs SET studies = ? WHERE key = ?", (text, key))

    def finish(self, key: str, status: str, values: Mapping[str, Any]) -> bool:
        """Write a result. False, and nothing written, if the claim was taken over meanwhile."""
        content = {
            name: json.dumps(value) if name in WRITTEN else value for name, value in values.items()
        }
        content |= {"status": status, "finished": time.time()}
        sets = ", ".join(f'"{name}" = :{name}' for name in content)
        self.check_file()
        with self._explained():
            done = self._db.execute(
                f"UPDATE runs SET {sets} WHERE key = :_key AND claim = :_claim AND status = 'running'",
                content | {"_key": key, "_claim": self.claim_token},
            )
            return done.rowcount == 1

    def release(self) -> None:
        """Give back every run that we hold, as if it had never been started."""
        with self._explained():
            self._db.execute(
                "DELETE FROM runs WHERE claim = ? AND status = 'running'", (self.claim_token,)
            )

    # -- reading ---------------------------------------------------------------------------------

    def get(self, key: str) -> dict[str, Any] | None:
        with self._explained():
            row = self._db.execute("SELECT * FROM runs WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._checked(row)

    def find(self, prefix: str) -> dict[str, Any]:
        """The one run whose key starts with ``prefix``."""
        with self._explained():
            rows = self._db.execute(
                "SELECT * FROM runs WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)
            ).fetchall()
        if len(rows) != 1:
            raise TstarError(f"{len(rows) or 'No'} runs start with {prefix!r}; see tstar runs ls.")
        return self._checked(rows[0])

    def _checked(self, row: sqlite3.Row) -> dict[str, Any]:
        """A row as a dict, if every cell is of its column's kind: another program may have written it."""
        content = {**ADDED, **dict(row)}
        for name, value in content.items():
            if not fits(name, value):
                raise TstarError(
                    f"{self.path}: the run {str(content['key'])[:24]} has {str(value)[:60]!r} as its {name}, "
                    f"which is no {name} of a run; fix or delete that row."
                )
        return content | recovered(content)

    def status(self, keys: Iterable[str]) -> dict[str, str]:
        """The status of each key that is in the store."""
        wanted = set(keys)
        with self._explained():
            rows = self._db.execute("SELECT key, status FROM runs").fetchall()
        return {row["key"]: row["status"] for row in rows if row["key"] in wanted}

    def rows(self, where: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """All rows, or those whose columns have the given values, in the order they were made."""
        where = where or {}
        test = " AND ".join(f'"{name}" IS :{name}' for name in where) or "1"
        with self._explained():
            for row in self._db.execute(f"SELECT * FROM runs WHERE {test} ORDER BY rowid", where):
                yield self._checked(row)

    def asked(self) -> list[tuple[object, object]]:
        """Of every run, the studies that ask for it and when it was started."""
        with self._explained():
            if "studies" not in self._present():  # a store of the first schema
                return []
            rows = self._db.execute("SELECT studies, started FROM runs")
            return [(row["studies"], row["started"]) for row in rows]

    def known_csg(self, checksum: str) -> float | None:
        """The csg of a data set that some run already recorded, not the one that a study gave."""
        with self._explained():
            row = self._db.execute(
                "SELECT csg FROM runs WHERE data_checksum = ? AND csg IS NOT NULL "
                "AND coalesce(spec, '') NOT GLOB '*\"csg\": [0-9]*' LIMIT 1",
                (checksum,),
            ).fetchone()
        return row["csg"] if row is not None and isinstance(row["csg"], float) else None

    def insert(self, row: Mapping[str, Any]) -> None:
        """Put a whole row in place of whatever has its key (for merging)."""
        names = [name for name in COLUMNS if name in row]
        columns = ", ".join(f'"{name}"' for name in names)
        with self._explained():
            self._db.execute(
                f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({', '.join('?' * len(names))})",
                [row[name] for name in names],
            )

    # -- weights of teachers ---------------------------------------------------------------------

    def weights_path(self, key: str) -> Path:
        """Where the weights of a teacher are kept: a folder next to the store."""
        return self.path.with_name(self.path.name + ".weights") / f"{key}.pt"

    def checkpoint_path(self, key: str) -> Path:
        """Where a run under way keeps its state, if it is asked to."""
        return self.path.with_name(self.path.name + ".checkpoints") / f"{key}.pt"

    def save_weights(self, key: str, content: bytes) -> None:
        """Whole or not at all: written under another name, then renamed."""
        path = self.weights_path(key)
        try:
            path.parent.mkdir(exist_ok=True)
            part = path.with_suffix(f".{self.claim_token}.part")
            part.write_bytes(content)
            part.replace(path)
        except OSError as error:
            raise TstarError(
                f"The weights {str(path)!r} could not be written: {error}; free some space or "
                "choose another --store. The runs that were stored are still there."
            ) from error

    def forget(self, key: str) -> None:
        """Drop a run, so that it is done again."""
        with self._explained():
            self._db.execute("DELETE FROM runs WHERE key = ?", (key,))

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _joined(old: str | None, new: str | None) -> str | None:
    """The studies of both."""
    if old is None or new is None:
        return old or new
    return json.dumps({**studies_of(old), **studies_of(new)})
