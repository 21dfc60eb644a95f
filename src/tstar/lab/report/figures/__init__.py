"""One file per figure: ``x_data(records)`` is a DataFrame, ``draw_x(frame)`` a drawing of it.

A column ``panel`` says which rows belong to one panel. The list of figures is in ``catalogue``.
"""
