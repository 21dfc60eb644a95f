"""Tables: records → cells with marks (``own``, ``measured``) → HTML, Markdown, LaTeX, CSV, terminal (``markup``)."""
