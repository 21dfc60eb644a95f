"""The figure shows what the record holds."""

import numpy as np
import pytest

from tstar.difficulty import csg

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("classes", [3, 40])
def test_panels(classes, tmp_path, helpers):
    x, y = helpers.blobs(40 * classes, classes, 4, 0.8)
    result = csg(x, [f"class number {i} with a $long$ name" for i in y])
    figure = result.plot(tmp_path / "csg.png")
    assert (tmp_path / "csg.png").stat().st_size > 10_000
    spectrum, heatmap, pairs, *_ = figure.axes
    np.testing.assert_array_equal(spectrum.lines[0].get_ydata(), result.spectrum)
    shown = heatmap.images[0].get_array()
    off = ~np.eye(classes, dtype=bool)
    np.testing.assert_array_equal(np.asarray(shown)[off], result.similarity[off])
    widths = [bar.get_width() for bar in pairs.patches]
    assert widths == [pair.similarity for pair in result.hardest_pairs(12)]
    assert f"{result.value:.4g}" in figure.get_suptitle()


def test_separated_classes_can_be_drawn():
    x = np.repeat(np.eye(3), 10, axis=0)
    csg(x, np.repeat(range(3), 10)).plot()
