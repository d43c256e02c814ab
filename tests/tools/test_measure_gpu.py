#!/usr/bin/env python3
"""tools/measure_gpu.sh on the simulated CUDA driver: it builds alone, runs every part, and its output has its shape.

No figure is compared with a time: the driver is simulated and the machine may be busy.

usage: test_measure_gpu.py SOURCE_FOLDER BUILD_FOLDER CUDA_SIMULATED NVML_SIMULATED SPIN_GPU
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, CUDA, NVML, SPIN_GPU = sys.argv[1:6]
SCRIPT = os.path.join(SOURCE, "tools", "measure_gpu.sh")
PROGRAM = os.path.join(BUILD, "measure_gpu")
PARTS = ["host-cost", "boundary-cost", "visibility", "order", "queue-depth", "timers", "helper", "graphs", "nvml"]
WAYS = ["write-value", "host-function", "polling"]


class MeasureGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-measure-")
        cls.addClassCleanup(cls.folder.cleanup)
        gpu = os.path.join(cls.folder.name, "gpu")
        subprocess.run([SPIN_GPU, gpu], check=True)
        cls.gpu_state = gpu
        # The sanitizers of this build's driver must be loaded first, but not into the compiler.
        preload = os.environ.get("PERSEUS_PRELOAD", "")
        compiler = f"{os.environ.get('CMAKE_CXX_COMPILER_LAUNCHER', '')} {os.environ.get('CXX', 'g++')}".strip()
        build = subprocess.run(
            [SCRIPT, "--build", BUILD, "--no-torch", "--out", os.path.join(cls.folder.name, "none")],
            env={**os.environ, "CXX": compiler, "CXXFLAGS": "-O1", "PERSEUS_CUDA": "/no/such/libcuda.so.1"},
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        if build.returncode != 69:
            raise AssertionError(f"exit code {build.returncode} where no GPU is\n{build.stderr}")
        cls.environment = {
            **os.environ,
            **({"LD_PRELOAD": preload} if preload else {}),
            "PERSEUS_CUDA": CUDA,
            "PERSEUS_NVML": NVML,
            "PERSEUS_SIMULATED_GPUS": gpu,
        }
        out = os.path.join(cls.folder.name, "figures")
        cls.done = cls.run_script("--quick", "--no-torch", "--out", out)
        if cls.done.returncode != 0:
            raise AssertionError(f"exit code {cls.done.returncode}\n{cls.done.stdout}\n{cls.done.stderr}")
        with open(os.path.join(out, "gpu.json"), encoding="utf-8") as file:
            cls.answer = json.load(file)
        with open(os.path.join(out, "gpu.md"), encoding="utf-8") as file:
            cls.page = file.read()
        cls.parts = {part["name"]: part for part in cls.answer["parts"]}

    @classmethod
    def run_script(cls, *arguments, **changes):
        return subprocess.run(
            [SCRIPT, "--build", BUILD, *arguments],
            env={**cls.environment, **changes}, cwd=cls.folder.name, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip

    def facts(self, part):
        return self.parts[part]["facts"]

    def test_reports_a_simulated_driver(self):
        self.assertTrue(self.answer["run"]["driver"].startswith("SIMULATED"), self.answer["run"])
        self.assertIn("SIMULATED: no figure here is one of a GPU", self.page)
        self.assertIn("figures are meaningless", self.answer["run"]["samples"])

    def test_measures_every_part(self):
        self.assertEqual([part["name"] for part in self.answer["parts"]], PARTS)
        for part in self.answer["parts"]:
            self.assertIsNone(part["failure"])
            self.assertIn("## " + part["title"], self.page)
            self.assertTrue(part["figures"] or part["facts"], part["name"])
            for figure in part["figures"]:
                self.assertLessEqual(figure["p50"], figure["p90"], figure)
                self.assertLessEqual(figure["p90"], figure["p99"], figure)
                self.assertLessEqual(figure["p99"], figure["max"], figure)
                self.assertGreater(figure["samples"], 0, figure)
                self.assertIn(figure["what"], self.page)

    def test_measures_every_way_of_reporting_progress(self):
        for part in ["host-cost", "boundary-cost", "visibility"]:
            named = " ".join(figure["what"] for figure in self.parts[part]["figures"])
            for way in WAYS:
                self.assertIn(way, named, part)
        seen = [figure["what"] for figure in self.parts["visibility"]["figures"]]
        self.assertIn("write-value: seen by another process", seen)

    def test_costs_are_measured_at_every_run_ahead(self):
        named = [figure["what"] for figure in self.parts["host-cost"]["figures"]]
        for ahead in ["stream idle", "1 ahead", "8 ahead", "64 ahead", "1000 ahead"]:
            self.assertIn("cuEventRecord, " + ahead, named)

    def test_positions_are_in_order(self):
        for way, boundaries in zip(WAYS, [500, 250, 250]):
            self.assertEqual(self.facts("order")[way + ", boundaries"], str(boundaries))
            self.assertEqual(self.facts("order")[way + ", went back"], "0")
            self.assertEqual(self.facts("order")[way + ", ahead of its event"], "0")
            self.assertGreater(float(self.facts("order")[way + ", positions looked at"]), 0)

    def test_the_helper_is_driven_for_every_length_of_computation(self):
        named = [figure["what"] for figure in self.parts["helper"]["figures"]]
        for milliseconds in [5, 20, 40]:
            for way in ["write-value", "host-function"]:
                self.assertIn(f"{milliseconds} ms computations, {way}: boundary to device call", named)

    def test_finds_the_launch_queue_of_the_simulated_driver(self):
        queue = self.facts("queue-depth")
        self.assertEqual(len(queue), 2)
        for answer in queue.values():
            self.assertRegex(answer, r"^(\d+$|none blocked within)")

    def test_captured_graphs_are_described(self):
        self.assertIn("STREAM_CAPTURE_UNSUPPORTED", self.facts("graphs")["cuStreamWriteValue32"])
        self.assertEqual(self.facts("graphs")["cuEventRecordWithFlags, external"], "captured; each replay records anew")
        done = self.run_script(
            "--quick", "--part", "graphs", "--out", "captured", PERSEUS_SIMULATED_CUDA="capture_memory_operations=1"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("captured; written in 2 of 2 replays", done.stdout)

    def test_a_driver_without_stream_memory_operations_is_an_answer(self):
        done = self.run_script(
            "--quick", "--part", "order", "--out", "without", PERSEUS_SIMULATED_CUDA="stream_memory_operations=0"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"write-value: not possible: .*cuStreamWriteValue32")
        self.assertIn("host-function, went back: 0", done.stdout)

    def test_a_part_that_fails_is_named_and_the_others_run(self):
        done = self.run_script(
            "--quick", "--part", "nvml", "--part", "queue-depth", "--out", "failed", PERSEUS_NVML="/no/such/library"
        )
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("not measured: no NVML: /no/such/library", done.stdout)
        self.assertIn("first launch that blocked the host", done.stdout)

    def test_looks_up_no_function_that_sets_anything(self):
        with open(PROGRAM, "rb") as file:
            program = file.read()
        names = set(re.findall(rb"nvml[A-Z][A-Za-z_0-9]+", program))
        self.assertIn(b"nvmlDeviceGetPowerUsage", names)
        self.assertEqual([name for name in names if b"Set" in name or b"Reset" in name], [])
        self.assertIn("Not touched:\n- clocks:", self.page)
        self.assertTrue(any(text.startswith("clocks:") for text in self.answer["not_touched"]))
        self.assertIn("no clock, power limit or mode was changed", self.done.stderr)

    def test_a_missing_gpu_is_reported_in_one_line(self):
        done = self.run_script("--no-torch", PERSEUS_CUDA="/no/such/libcuda.so.1")
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("no GPU: no CUDA: /no/such/libcuda.so.1", done.stderr)
        done = self.run_script("--no-torch", "--gpu", "7")
        self.assertEqual(done.returncode, 69)
        self.assertIn("no GPU 7; GPUs visible to CUDA: 1", done.stderr)

    def test_torch_is_skipped_where_it_is_missing(self):
        done = self.run_script("--part", "torch", "--out", "torch", PYTHON="/no/such/python3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("- skipped: no /no/such/python3", done.stdout)

    def test_help_and_wrong_usage(self):
        done = self.run_script("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("usage: tools/measure_gpu.sh", done.stdout)
        for arguments, message in [
            (["--fast"], "unknown option: --fast; allowed: --out"),
            (["--part"], "--part needs a value"),
            (["--part", "clocks"], "--part: clocks; allowed: host-cost, boundary-cost"),
            (["--gpu", "first"], "--gpu: first; allowed: 0 to 1023"),
        ]:
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
