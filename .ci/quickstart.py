"""Run the first block of Python in a README as a stranger would: python .ci/quickstart.py README.md.

Hidden blocks of set-up (<!-- setup … -->) before it stand for the reader's own model and data, and run first.
"""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
block = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
if block is None:
    sys.exit(f"{sys.argv[1]} has no block of Python.")
setup = re.findall(r"^<!-- setup\n(.*?)^-->", text[: block.start()], re.DOTALL | re.MULTILINE)
code = "\n".join([*setup, block[1]])
exec(compile(code, sys.argv[1], "exec"), {"__name__": "__main__"})
print(f"The first block of {Path(sys.argv[1]).name} ran.")
