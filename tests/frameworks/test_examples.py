"""Runs the examples as users do, on simulated GPUs, and checks the savings they print. Runs in the root that make_root.sh
makes."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

from run_job import printed
from server import Server

EXAMPLES = Path(__file__).parents[2] / "examples" / "torch"


class Examples(unittest.TestCase):
    def run_example(self, name):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_frameworks.")))
        server = Server(self, folder / "data")
        # Debian's torchrun needs libuv and was built without it.
        environment = {"PERSEUS_SERVER": server.url, "PERSEUS_PLAN_TOLERANCE": "-1"}  # the machine may be busy with other tests
        output, _ = printed(EXAMPLES / name, 2, environment=environment)
        print(output, file=sys.stderr)
        said = re.search(r"2 simulated GPUs: .* expected; (-?[0-9.]+) % saved", output)
        self.assertTrue(said, output)
        return float(said.group(1))

    def test_pipeline(self):
        self.assertGreater(self.run_example("train_pipeline.py"), 1)

    def test_fsdp(self):
        self.assertGreater(self.run_example("train_fsdp.py"), -1)


if __name__ == "__main__":
    unittest.main()
