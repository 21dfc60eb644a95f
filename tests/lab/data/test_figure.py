"""The picture of a csg result shows what the record holds."""

import numpy as np
import pytest

from tstar import csg
from tstar.lab.data.figure import draw_csg

pytest.importorskip("matplotlib")


def test_three_panels_of_the_record(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    result = csg(rng.normal(size=(90, 4)) + y[:, None], np.array(["$a$", "b" * 30, "c"])[y])
    spectrum, heatmap, bars, _ = draw_csg(result, tmp_path / "csg.svg").axes
    assert spectrum.lines[0].get_ydata().tolist() == result.spectrum.tolist()
    shown = np.asarray(heatmap.images[0].get_array().filled(np.nan))
    np.testing.assert_allclose(shown[0, 1:], result.similarity[0, 1:])
    widths = [bar.get_width() for bar in bars.patches]
    assert widths == [alike for *_, alike in result.hardest_pairs()]
    assert (tmp_path / "csg.svg").stat().st_size > 1000
