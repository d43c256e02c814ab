"""The examples run as their users run them, on simulated GPUs, and say what was saved. Runs in the root that make_root.sh
makes."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import Server

EXAMPLES = Path(__file__).parents[2] / "examples" / "torch"


class Examples(unittest.TestCase):
    def run_example(self, name):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_frameworks.")))
        server = Server(self, folder / "data")
        command = [sys.executable, "-B", "-m", "torch.distributed.run", "--nproc-per-node", "2", EXAMPLES / name]
        result = subprocess.run(
            list(map(str, command)), env={**os.environ, "PERSEUS_SERVER": server.url}, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr[-4000:])
        print(result.stdout, file=sys.stderr)
        said = re.search(r"2 simulated GPUs: .* J a step .* (-?[0-9.]+) % saved", result.stdout)
        self.assertTrue(said, result.stdout)
        return float(said.group(1))

    def test_pipeline(self):
        self.assertGreater(self.run_example("train_pipeline.py"), 1)

    def test_fsdp(self):
        self.assertGreater(self.run_example("train_fsdp.py"), -1)


if __name__ == "__main__":
    unittest.main()
