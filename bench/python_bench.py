#!/usr/bin/env python3
"""Measures a call from Python: median and 99th percentile over rounds, in nanoseconds per call, including the loop.

usage: PYTHONPATH=python [PERSEUS_LIBRARY=...] bench/python_bench.py [CALLS_PER_ROUND]

Rounds of 1 call give percentiles of single calls (plus the clock, some 50 ns); rounds of 50 calls give averages.
"""

import statistics
import sys
import time

from perseus import client
from perseus.client import controller, profiler

ROUNDS = 4000


def begin_and_end(name):
    profiler.begin(name)
    profiler.end(name)


def begin_and_end_with_ids(name):
    profiler.begin(name, 3, 0)
    profiler.end(name, 3, 0)


def measure(call, per_round):
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        for _ in range(per_round):
            call("forward")
        times.append((time.perf_counter_ns() - began) / per_round)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def main():
    started = client.start(device="none")
    if not started.active:
        sys.exit(f"python_bench: {started.reason}")
    rounds = [int(argument) for argument in sys.argv[1:]] or [1, 50]
    print(f"{'call':<28} {'calls':>5} {'p50 ns':>8} {'p99 ns':>8}")
    client.on_step_begin()
    for name, call in {
        "set_speed": controller.set_speed,
        "set_speed, ids given": lambda name: controller.set_speed(name, 3, 0),
        "begin + end": begin_and_end,
        "begin + end, ids given": begin_and_end_with_ids,
    }.items():
        for per_round in rounds:
            median, p99 = measure(call, per_round)
            print(f"{name:<28} {per_round:>5} {median:>8.0f} {p99:>8.0f}")
    client.on_step_end()
    client.stop()


if __name__ == "__main__":
    main()
