"""Runs the ranks of a job on this machine as torchrun would, and gives what each says as JSON in its last line."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

_LIMIT_S = 120


def run(program, ranks, *arguments, limit_s=_LIMIT_S):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-B", Path(__file__).parent / program, *map(str, arguments)]
    processes = []
    try:
        for rank in range(ranks):
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            environment = {**os.environ, **{name: str(value) for name, value in place.items()}}
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            processes.append(subprocess.Popen(command, env=environment, **pipes))
        try:
            outputs = [process.communicate(timeout=limit_s) for process in processes]
        except subprocess.TimeoutExpired:
            for process in processes:
                process.kill()
            errors = "\n".join(process.communicate()[1][-4000:] for process in processes)
            raise AssertionError(f"{command} took more than {limit_s} s:\n{errors}") from None
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for rank, (process, (_, errors)) in enumerate(zip(processes, outputs)):
        if process.returncode != 0:
            raise AssertionError(f"rank {rank} of {command} ended with {process.returncode}:\n{errors[-4000:]}")
    return [json.loads(output.splitlines()[-1]) for output, _ in outputs]
