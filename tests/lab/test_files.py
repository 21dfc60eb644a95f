"""Files are written whole or not at all; what is no regular file is not read."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tstar.errors import TstarError
from tstar.lab.files import written
from tstar.lab.sweep.study import load_study
from tstar.lab.sweep.transfer import load_runs


def test_a_file_is_replaced_at_the_end_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError), written(path) as part:
        part.with_name("nowhere").read_bytes()
    assert path.read_bytes() == b"old"
    with written(path) as part:
        part.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_many_threads_may_write_one_file(tmp_path):
    path = tmp_path / "a.txt"

    def write(i):
        with written(path) as part:
            part.write_bytes(b"%d" % (i % 10) * 10_000)
        return len(set(path.read_bytes())) == 1 and path.stat().st_size == 10_000

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(200)))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
@pytest.mark.parametrize(("read", "name"), [(load_study, "a.toml"), (load_runs, "a.csv")])
def test_a_pipe_is_refused_and_not_waited_for(read, name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(TstarError, match="must be a regular file"):
        read(tmp_path / name)
