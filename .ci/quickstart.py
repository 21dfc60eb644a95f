"""Run the first training of a README as a stranger would paste it: python .ci/quickstart.py README.md."""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
block = re.search(r"^## A first training.*?^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
if block is None:
    sys.exit(f"{sys.argv[1]} has no first training.")
above = "\n" * text.count("\n", 0, block.start(1))  # lines as in the file
exec(compile(above + block[1], sys.argv[1], "exec"), {"__name__": "__main__"})
print(f"The first training of {Path(sys.argv[1]).name} ran.")
