"""Reports: store → records → figures and tables → one page.

``load`` reads a store, ``FIGURES`` lists what can be drawn, ``write_report`` makes the folder that
``tstar report`` makes. Records are data; drawing computes nothing.
"""

from tstar.report.catalogue import FIGURES, get_figure
from tstar.report.headline import headline
from tstar.report.records import Records, load
from tstar.report.style import save
from tstar.report.write import Written, write_report

__all__ = [
    "FIGURES",
    "Records",
    "Written",
    "get_figure",
    "headline",
    "load",
    "save",
    "write_report",
]
