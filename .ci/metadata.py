"""Check what a package index will show: python .ci/metadata.py DIST. It unpacks the sdist beside itself."""

import re
import sys
import tarfile
import zipfile
from datetime import date
from email import message_from_string
from pathlib import Path

dist = Path(sys.argv[1])
(wheel,) = dist.glob("*.whl")
with zipfile.ZipFile(wheel) as file:
    (name,) = (n for n in file.namelist() if n.endswith("METADATA"))
    metadata = message_from_string(file.read(name).decode())
readme = metadata.get_payload()
assert len(readme) > 2000, "the README is not in the metadata"
links = re.findall(r'\]\(([^)]*)\)|(?:src|href)="([^"]*)"', readme)
broken = [link for link in map("".join, links) if not re.match(r"https?://|#", link)]
assert not broken, f"links that an index cannot follow: {broken}"

(sdist,) = dist.glob("*.tar.gz")
with tarfile.open(sdist) as file:
    file.extractall(dist, filter="data")
version = metadata["Version"]
changelog = Path("CHANGELOG.md").read_text(encoding="utf-8")
assert f"\n## {version} " in changelog, f"CHANGELOG.md has no entry for {version}"
for entry, when in re.findall(r"^## (\S+) \((.*)\)$", changelog, re.MULTILINE):
    assert when == "unreleased" or date.fromisoformat(when), entry
size = sdist.stat().st_size / 2**20
print(f"tstar {version}: metadata, README and CHANGELOG are sound; sdist {size:.1f} MB")
