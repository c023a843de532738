"""A set of periodic tasks for SimSo: `tasks.py SECONDS PERIOD:WORK...`, ms, the first of the highest priority.

Prints of each task how many jobs it has released, and their longest response, ms.
"""

import sys

from simso.configuration import Configuration
from simso.core import Model

MS = 1_000_000


def main():
    seconds, *tasks = sys.argv[1:]
    wanted = Configuration()
    wanted.cycles_per_ms = MS
    wanted.duration = int(seconds) * 1000 * MS
    for number, task in enumerate(tasks, 1):
        period, work = map(float, task.split(":"))
        wanted.add_task(
            name=f"task{number}",
            identifier=number,
            period=period,
            activation_date=0,
            wcet=work,
            deadline=period,
            abort_on_miss=False,
        )
    wanted.add_processor(name="CPU 0", identifier=1)
    # Rate monotonic: the shorter the period, the higher the priority.
    wanted.scheduler_info.clas = "simso.schedulers.RM"
    wanted.check_all()
    model = Model(wanted)
    model.run_model()
    for task in model.results.tasks.values():
        responses = [job.response_time for job in task.jobs if job.response_time is not None]
        print(task.name, len(task.jobs), max(responses, default=0) / MS)


main()
