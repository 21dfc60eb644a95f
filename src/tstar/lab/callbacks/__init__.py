"""An advice, a temperature schedule and a monitor in a trainer that owns the loop.

Lightning's and transformers'. Each module has the same three callbacks:

- ``AdviceCallback(advice)`` applies an advice at the start (``advice.apply``), and folds it away at
  the end, unless ``fold=False``.
- ``TemperatureCallback(schedule, every)`` sets the tempered heads to the schedule's T before each
  ``"epoch"`` or ``"step"``, and logs it. The step is the trainer's own count of optimizer steps, so
  that accumulated gradients count once and a resumed run goes on at the right temperature.
- ``WatchCallback()`` looks at the tempered heads after each epoch (:func:`tstar.watch`).
"""
