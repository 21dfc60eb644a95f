"""Reports: store → records → figures and tables → one page.

``load`` reads a store, ``FIGURES`` lists what can be drawn, ``write_report`` makes the folder that
``tstar report`` makes. Data are DataFrames; drawing computes nothing.
"""

from tstar.lab.report.catalogue import FIGURES, get_figure
from tstar.lab.report.records import Records, load
from tstar.lab.report.style import save
from tstar.lab.report.write import Written, write_report

__all__ = ["FIGURES", "Records", "Written", "get_figure", "load", "save", "write_report"]
