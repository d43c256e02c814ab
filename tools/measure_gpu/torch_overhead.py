#!/usr/bin/env python3
"""Overhead of begin and end per computation in a PyTorch training loop: one pipeline stage on one GPU, advice only.

Blocks of iterations with and without the client's calls alternate, so that clocks and temperature are the same for
both. The client starts no helper and sets no clock (PERSEUS_ADVICE_ONLY).

usage: torch_overhead.py MARKDOWN JSON [--quick]
"""

import json
import os
import statistics
import sys
import time

import torch
from perseus import client
from perseus.client import profiler

MICROBATCHES, LAYERS, WIDTH, TOKENS = 8, 8, 4096, 4096


def quantiles(samples):
    cuts = sorted(samples)

    def at(share):
        return cuts[min(int(share * len(cuts)), len(cuts) - 1)]

    return {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": cuts[-1], "samples": len(cuts)}


class Stage:
    def __init__(self):
        layers = []
        for _ in range(LAYERS):
            layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU()]
        self.model = torch.nn.Sequential(*layers).to(device="cuda", dtype=torch.bfloat16)
        self.input = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
        self.calls_us = []

    def call(self, function, name, microbatch):
        began = time.perf_counter_ns()
        function(name, microbatch, 0)
        self.calls_us.append(1e-3 * (time.perf_counter_ns() - began))

    def iteration(self, with_client):
        """Time on the GPU in ms."""
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if with_client:
            client.on_step_begin()
        first.record()
        for microbatch in range(MICROBATCHES):
            if with_client:
                self.call(profiler.begin, "forward", microbatch)
            output = self.model(self.input)
            if with_client:
                self.call(profiler.end, "forward", microbatch)
                self.call(profiler.begin, "backward", microbatch)
            output.sum().backward()
            if with_client:
                self.call(profiler.end, "backward", microbatch)
        last.record()
        self.model.zero_grad(set_to_none=True)
        if with_client:
            client.on_step_end()
        last.synchronize()
        return first.elapsed_time(last)


def main():
    markdown, json_file = sys.argv[1:3]
    quick = "--quick" in sys.argv[3:]
    if os.environ.get("PERSEUS_ADVICE_ONLY") != "1":
        sys.exit("torch_overhead.py: PERSEUS_ADVICE_ONLY must be 1; this program sets no clock")
    torch.cuda.init()
    started = client.start(rank=0, advice_only=True)
    if not started.active:
        sys.exit(f"torch_overhead.py: {started.reason}")
    timed = started.time_with_cuda(torch.cuda.current_stream().cuda_stream)
    stage = Stage()
    for _ in range(3):
        stage.iteration(with_client=False)
    without_ms, with_ms = [], []
    for _ in range(2 if quick else 15):
        without_ms += [stage.iteration(with_client=False) for _ in range(5)]
        with_ms += [stage.iteration(with_client=True) for _ in range(5)]
    computations = 2 * MICROBATCHES
    per_computation_us = 1e3 * (statistics.median(with_ms) - statistics.median(without_ms)) / computations
    figures = {
        "iteration without the client, ms": quantiles(without_ms),
        "iteration with the client, ms": quantiles(with_ms),
        "one call of begin or end on the host, us": quantiles(stage.calls_us),
    }
    facts = {
        "GPU": torch.cuda.get_device_name(),
        "PyTorch": torch.__version__,
        "timed by CUDA events": timed,
        "computations in an iteration": computations,
        "difference of the medians per computation, us": per_computation_us,
        "clocks requested": started.statistics().get("clocks_requested"),
    }
    client.stop()
    with open(json_file, "w", encoding="utf-8") as file:
        json.dump({"figures": figures, "facts": facts}, file, indent=1)
    lines = ["## PyTorch", "", "| figure | p50 | p90 | p99 | max | samples |", "| --- | --: | --: | --: | --: | --: |"]
    for name, figure in figures.items():
        cells = [f"{figure[key]:.4g}" for key in ("p50", "p90", "p99", "max")]
        lines.append(f"| {name} | {' | '.join(cells)} | {figure['samples']} |")
    lines += ["", *(f"- {name}: {value}" for name, value in facts.items()), ""]
    with open(markdown, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
