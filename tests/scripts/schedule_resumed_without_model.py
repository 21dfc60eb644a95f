r"""A resumed schedule that was not given its model again.

packages: torch
outcome: refuses "must be given its model before it steps: drive\(model\)"
"""

import toy

import tstar

model = tstar.temper(toy.mlp(), 8.0)
schedule = tstar.Schedule.warmup(8.0, steps=10).drive(model)
schedule.step()
saved = {"model": model.state_dict(), "schedule": schedule.state_dict()}

schedule = tstar.Schedule.warmup(8.0, steps=10)
schedule.load_state_dict(saved["schedule"])
schedule.step()
