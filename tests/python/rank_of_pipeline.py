#!/usr/bin/env python3
"""One rank of a training job: a stand-in for torch's schedules, whose computations sleep, with the adapter installed.

usage: rank_of_pipeline.py SERVER RANK RANKS MICROBATCHES JOB DEVICE [TABLE.csv]
The schedule is 1F1B, or that of the table, with two stages a rank; the profile is called sample, or PROFILE in the
environment says how, where empty is none. Prints "job ID", then "planned" when a plan is in force and one of its clocks
was set; ends when its standard input does, and prints its statistics as JSON. With ALTERNATES=M in the environment, every
second step then has M microbatches; "both planned" and the planned times follow once steps of either kind have a plan, and
"alternated" 40 steps later.
"""

import json
import logging
import os
import re
import sys
import threading
import time
from pathlib import Path

from stand_ins import pipelining

from perseus import client
from perseus.adapters import torch_pipelining


class SleepingStage(pipelining.PipelineStage):
    def _do(self, kind, microbatch):
        time.sleep(0.002)
        self.done.clear()
        return super()._do(kind, microbatch)


def say(text):
    print(text, flush=True)


def make_schedule(rank, ranks, microbatches, table):
    if table is None:
        return pipelining.Schedule1F1B(SleepingStage(rank, ranks, rank, ranks), microbatches, lambda *_: 0)
    mine = table.splitlines()[rank]
    stages = [index for index in range(2 * ranks) if re.search(rf"\b{index}F", mine)]
    stages = [SleepingStage(index, 2 * ranks, rank, ranks) for index in stages]
    schedule = pipelining._PipelineScheduleRuntime(stages, microbatches, lambda *_: 0)
    schedule._load_csv(table)
    return schedule


def main(server, rank, ranks, microbatches, job, device, table=None):
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    schedule = make_schedule(rank, ranks, microbatches, table and Path(table).read_text())
    options = dict(
        server=server, rank=rank, job=job or None, profile=os.environ.get("PROFILE", "sample"), device=device, report_interval_s=0.2,
        start_limit_s=60, facts={"model": "sample"},
    )  # fmt: skip
    torch_pipelining.install(schedule, **options)
    schedules, planned, both_from = [schedule], {}, None
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    reported = False
    while not over.is_set():
        schedules[0].step()
        started = client.current()
        statistics = started.statistics()
        if statistics["iteration"] == 1:
            say(f"job {started.job}")
        if not reported and statistics["plan_version"] > 0 and (device == "none" or statistics["clocks_applied"] > 0):
            reported = True
            say("planned")
            if "ALTERNATES" in os.environ:
                schedules.append(pipelining.Schedule1F1B(schedule._stage, int(os.environ["ALTERNATES"]), lambda *_: 0))
                torch_pipelining.install(schedules[-1], **options)
        if len(schedules) > 1:
            planned[schedules[0]._n_microbatches] = statistics["planned_iteration_time_s"]
            if both_from is None and len(planned) == 2 and all(planned.values()):
                say(f"both planned {json.dumps(planned)}")
                both_from = statistics["iteration"]
            if both_from is not None and statistics["iteration"] == both_from + 40:
                say("alternated")
            schedules.reverse()
    statistics = started.statistics()
    client.stop()
    say(json.dumps(statistics))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
