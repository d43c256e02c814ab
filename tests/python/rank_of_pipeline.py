#!/usr/bin/env python3
"""One rank of a training job: a stand-in for torch's schedules, whose computations sleep, with the adapter installed.

usage: rank_of_pipeline.py SERVER RANK RANKS MICROBATCHES JOB DEVICE [TABLE.csv]
The schedule is 1F1B, or that of the table, with two stages a rank; the profile is called sample, or PROFILE in the
environment says how, where empty is none. Prints "job ID", then "planned" when a plan is in force and one of its clocks
was set; ends when its standard input does, and prints its statistics as JSON.
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
    torch_pipelining.install(
        schedule, server=server, rank=rank, job=job or None, profile=os.environ.get("PROFILE", "sample"), device=device, report_interval_s=0.2,
        start_limit_s=60, facts={"model": "sample"},
    )  # fmt: skip
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    reported = False
    while not over.is_set():
        schedule.step()
        started = client.current()
        statistics = started.statistics()
        if statistics["iteration"] == 1:
            say(f"job {started.job}")
        if not reported and statistics["plan_version"] > 0 and (device == "none" or statistics["clocks_applied"] > 0):
            reported = True
            say("planned")
    statistics = started.statistics()
    client.stop()
    say(json.dumps(statistics))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
