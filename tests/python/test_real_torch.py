"""With torch, any version: the job's id goes from rank 0 to the others through its store. 77: torch is not here."""

import importlib.util
import os
import socket
import subprocess
import sys
import unittest

PROGRAM = """
import torch.distributed
from perseus import client
torch.distributed.init_process_group("gloo")
started = client.start(server="http://host", device="none", start_limit_s=600)
print(started.reason or f"rank {torch.distributed.get_rank()} of job {started.job}", flush=True)
torch.distributed.barrier()
"""


class RealTorch(unittest.TestCase):
    def test_job_id(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        ranks = []
        for rank in range(3):
            environment = {"RANK": rank, "WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            ranks.append(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM],
                    env={**os.environ, **{name: str(value) for name, value in environment.items()}},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            self.addCleanup(ranks[-1].stdout.close)
            self.addCleanup(ranks[-1].kill)
        for rank, process in enumerate(ranks):
            output, _ = process.communicate()
            self.assertEqual((process.returncode, output), (0, f"rank {rank} of job job-1\n"))


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("torch is not here")
        sys.exit(77)
    unittest.main()
