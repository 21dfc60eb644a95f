"""The store: SQLite, one row per run, on the disk in one transaction once the run has ended.

One sweep at a time owns a store (:func:`owned`); anyone may read it, and other processes of the
machine may :meth:`Store.put` runs into it: each write is a transaction, and the later one stays.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, guarded
from tstar.lab.files import written
from tstar.lab.sweep.spec import COLUMNS, FIELDS, FINAL, WRITTEN, Spec, json_object

SCHEMA = 7  # PRAGMA user_version: another one is another tstar's


@contextmanager
def owned(path: str | Path) -> Iterator[None]:
    """Inside, this process alone sweeps into the store; an error names the owner if there is one.

    The lock is SQLite's on the file ``STORE.owner``, which names the owner. It is dropped when
    the process ends in any way. Between machines it is as good as the file system's own locks.
    """
    lock = Path(f"{real_path(path)}.owner")
    with explained(path), closing(_connected(lock, timeout=0)) as db:
        try:
            db.execute("CREATE TABLE IF NOT EXISTS owner (host TEXT, pid INTEGER)")
            with _transaction(db):
                db.execute("DELETE FROM owner")
                db.execute("INSERT INTO owner VALUES (?, ?)", (socket.gethostname(), os.getpid()))
            db.execute("BEGIN IMMEDIATE")  # never committed: the lock
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            db.execute("PRAGMA busy_timeout = 2000")
            host, pid = db.execute("SELECT host, pid FROM owner").fetchone() or ("?", "?")
            raise TstarError(
                f"One sweep at a time owns a store, and {str(path)!r} is owned by process {pid} on "
                f"{host}; wait for it, or use another --store and then tstar runs merge."
            ) from error
        yield


class Store(AbstractContextManager["Store"]):
    """A file of runs. Opening it for reading creates nothing."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = real_path(path)
        if not create and not self.path.exists():
            raise TstarError(f"The store {str(self.path)!r} does not exist; run tstar sweep first.")
        with explained(self.path):
            self._db = _connected(self.path, timeout=60)
            try:
                self._db.execute("PRAGMA synchronous = FULL")
                self._open(create)
            except BaseException:
                self._db.close()
                raise
        self._finished: list[str] = []  # in the transaction that is open
        self._inode = os.stat(self.path).st_ino

    def _open(self, create: bool) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        tables = [row[0] for row in self._db.execute("SELECT name FROM sqlite_master")]
        known = "runs" in tables and version == SCHEMA
        if not (known or (create and not tables)):
            wrong = "is another SQLite file; choose another --store"
            if "runs" in tables and version:
                wrong = "is of another version of tstar; read it with that one"
            raise TstarError(f"{str(self.path)!r} must be a store of tstar, but it {wrong}.")
        if known:
            return
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        with _transaction(self._db):
            self._db.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns})")
            self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    def put(
        self,
        spec: Spec,
        status: str,
        values: Mapping[str, Any],
        *,
        studies: Mapping[str, str] | None = None,
    ) -> None:
        """Write how a run ended, over an earlier row; ``studies`` that ask for it: name → hash."""
        if not self.path.exists() or os.stat(self.path).st_ino != self._inode:
            raise TstarError(
                f"The store {str(self.path)!r} was deleted or replaced while in use; its results "
                "are lost unless there is a copy."
            )
        described = spec.to_dict()
        row = dict.fromkeys(FIELDS) | described
        row |= {"key": spec.key, "status": status, "spec": json.dumps(described)}
        row |= {n: json.dumps(v) if n in WRITTEN else v for n, v in values.items() if n in COLUMNS}
        row |= {"finished": time.time()}
        with self.together():
            old = self.get(spec.key) or {"attempts": 0, "studies": None}
            row["attempts"] = old["attempts"] + 1
            names = json_object(old["studies"]) | dict(studies or {})
            row["studies"] = json.dumps(names) if names else None
            self.insert(row)
            self._finished += [spec.key] if status in FINAL else []

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is put inside is on the disk at the end, all of it or, after an error, nothing.

        Only then do finished runs lose their checkpoints.
        """
        if self._db.in_transaction:  # a part of a larger one
            yield
            return
        self._finished.clear()
        with explained(self.path), _transaction(self._db):
            yield
        while self._finished:
            self.checkpoint_path(self._finished.pop()).unlink(missing_ok=True)

    def insert(self, row: Mapping[str, Any]) -> None:
        """Put a whole row in place of whatever has its key."""
        names = [name for name in COLUMNS if name in row]
        columns, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" * len(names))
        with explained(self.path):
            self._db.execute(
                f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({marks})",
                [row[name] for name in names],
            )

    def ask(self, keys: Iterable[str], study: tuple[str, str], *, part: bool = False) -> None:
        """Note that a study asks for these runs alone; a ``part`` leaves those of the same hash."""
        asked, (name, digest) = set(keys), study
        with explained(self.path), _transaction(self._db):
            for key, text in self._db.execute("SELECT key, studies FROM runs").fetchall():
                names = json_object(text)
                old = names.get(name)
                if key in asked and old != digest:
                    names[name] = digest
                elif key not in asked and old is not None and not (part and old == digest):
                    names[name] = None
                else:
                    continue
                self._db.execute(
                    "UPDATE runs SET studies = ? WHERE key = ?", (json.dumps(names), key)
                )

    def get(self, key: str) -> dict[str, Any] | None:
        return next(self.rows(key), None)

    def find(self, prefix: str) -> dict[str, Any]:
        """The one run whose key starts with ``prefix``."""
        found = [key for key in self.status() if key.startswith(prefix)]
        if len(found) != 1:
            raise TstarError(f"{len(found) or 'No'} runs start with {prefix!r}; see tstar runs ls.")
        return next(self.rows(found[0]))

    def status(self) -> dict[str, str]:
        """The status of every run."""
        with explained(self.path):
            return {r["key"]: r["status"] for r in self._db.execute("SELECT key, status FROM runs")}

    def rows(self, key: str | None = None) -> Iterator[dict[str, Any]]:
        """All rows in the order they were made, or the one of a key."""
        test, given = ("1", ()) if key is None else ("key = ?", (key,))
        with explained(self.path):
            for row in self._db.execute(f"SELECT * FROM runs WHERE {test} ORDER BY rowid", given):
                yield {name: row[name] for name in COLUMNS}

    def known_csg(self, checksum: str) -> float | None:
        """The csg of a data set that some run already recorded, not the one that a study gave."""
        with explained(self.path):
            row = self._db.execute(
                "SELECT csg FROM runs WHERE data_checksum = ? AND typeof(csg) = 'real' "
                "AND coalesce(spec, '') NOT GLOB '*\"csg\": [0-9]*' LIMIT 1",
                (checksum,),
            ).fetchone()
        return None if row is None else float(row["csg"])

    def weights_path(self, key: str) -> Path:
        return Path(f"{self.path}.weights", f"{key}.pt")

    def checkpoint_path(self, key: str) -> Path:
        return Path(f"{self.path}.checkpoints", f"{key}.pt")

    def has_weights(self, key: str) -> bool:
        """Whether a teacher's weights are there; an empty or broken file counts as none."""
        return zipfile.is_zipfile(self.weights_path(key))

    def save_weights(self, key: str, content: bytes) -> None:
        path = self.weights_path(key)
        path.parent.mkdir(exist_ok=True)
        with written(path) as part:
            part.write_bytes(content)

    def clear_up(self) -> None:
        """Remove what a killed process left: files half written, checkpoints of finished runs."""
        finished = {key for key, status in self.status().items() if status in FINAL}
        for folder in (self.weights_path("").parent, self.checkpoint_path("").parent):
            for path in folder.glob("*"):
                old = folder.name.endswith(".checkpoints") and path.stem in finished
                if path.suffix == ".part" or old:
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        self._db.close()

    def __exit__(self, *_: object) -> None:
        self.close()


@guarded("A store must be given by its path")
def real_path(path: str | Path) -> Path:
    """A store's file, the same one through every symbolic link."""
    real = Path(path).resolve()
    real.exists()  # no name may be too long
    return real


def _connected(path: Path, timeout: float) -> sqlite3.Connection:
    # isolation_level=None: every statement is its own transaction, or we say BEGIN.
    db = sqlite3.connect(path, timeout=timeout, isolation_level=None)
    db.row_factory = sqlite3.Row
    return db


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk rolls back by itself
            db.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """SQLite's errors in the user's terms."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        advice = "its folder must exist, be writable and have room; what was stored is still there"
        if "not a database" in str(error) or "malformed" in str(error):
            advice = "it is not a store of tstar, or damaged: use a copy, or sqlite3 FILE .recover"
        raise TstarError(
            f"The store {str(path)!r} could not be used: {error}; {advice}."
        ) from error
