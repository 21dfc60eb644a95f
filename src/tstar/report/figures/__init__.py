"""One file per figure: ``x_data(…)`` computes, ``draw_x(data)`` draws. The list is in ``catalogue``."""
