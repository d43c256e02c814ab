"""Runs the ranks of a job on this machine as torchrun would, and returns the JSON in the last line of each."""

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_LIMIT_S = 600  # of a job that hangs; after 360 s ranks of Megatron and DeepSpeed print where they are


def run(program, ranks, *arguments, **more):
    return [json.loads(output.splitlines()[-1]) for output in printed(program, ranks, *arguments, **more)]


def printed(program, ranks, *arguments, limit_s=_LIMIT_S, environment=None):
    port = free_port()
    command = [sys.executable, "-B", Path(__file__).parent / program, *map(str, arguments)]
    processes, files = [], []
    try:
        for rank in range(ranks):
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            of_rank = {**os.environ, **(environment or {}), **{name: str(value) for name, value in place.items()}}
            out, error = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
            files.append((out, error))
            processes.append(subprocess.Popen(command, env=of_rank, stdout=out, stderr=error))
        deadline = time.monotonic() + limit_s
        # One that fails ends the others, which wait for it.
        while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
            if any(process.poll() for process in processes):
                break
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
        codes = [process.wait() for process in processes]
    outputs = [[_text(file) for file in pair] for pair in files]
    if any(codes):
        errors = "\n".join(f"rank {rank}:\n{error[-4000:]}" for rank, (_, error) in enumerate(outputs))
        raise AssertionError(f"{command} ended with {codes} (-9: stopped after {limit_s} s, or after another):\n{errors}")
    for _, error in outputs if os.environ.get("PERSEUS_FRAMEWORKS_VERBOSE") else ():
        sys.stderr.write(error)
    return [output for output, _ in outputs]


def free_port():
    """Below those that the system gives to connections, which could take it before the job does."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def _text(file):
    with file:
        file.seek(0)
        return file.read()
