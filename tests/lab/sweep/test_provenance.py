"""What a result was made with."""

import subprocess

from tstar.lab.sweep import provenance


def test_the_commit_is_marked_where_there_are_changes_and_none_where_there_is_no_git(
    monkeypatch, tmp_path
):
    commit, git = provenance.commit.__wrapped__, ["git", "-c", "user.name=x", "-c", "user.email=x"]
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "file.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit() is None
    (tmp_path / "file.py").write_text("1", encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], cwd=tmp_path, encoding="utf-8")
    assert commit() == head[:12]
    (tmp_path / "file.py").write_text("2", encoding="utf-8")
    assert commit() == f"{head[:12]}+"
