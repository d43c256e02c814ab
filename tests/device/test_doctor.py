#!/usr/bin/env python3
"""perseus doctor on machines of every kind, all of them simulated: what it says, its exit codes, what it leaves alone.

usage: test_doctor.py PERSEUS FOLDER_OF_NVML_LOOK_ALIKE SAMPLE_GPU
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PERSEUS, FOLDER, SAMPLE_GPU = sys.argv[1:4]


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="perseus-doctor-")
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("PERSEUS_SIMULATED_GPUS", "ZEUSD_TOKEN")},
            "PERSEUS_NVML": "/no/such/libnvidia-ml.so.1",
            "ZEUSD_SOCK_PATH": self.path + "/no-zeusd",
        }

    def gpu(self, name="gpu"):
        path = os.path.join(self.path, name)
        subprocess.run([SAMPLE_GPU, path], check=True)
        return path

    def doctor(self, *arguments):
        return subprocess.run(
            [PERSEUS, "doctor", "--seconds", "1", *arguments],
            env=self.environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def test_no_gpu_is_an_answer(self):
        done = self.doctor()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("NVML      none: no NVML: /no/such/libnvidia-ml.so.1", done.stdout)
        self.assertIn("no GPU here", done.stdout)
        self.assertEqual(json.loads(self.doctor("--json").stdout)["gpus"], [])

    def test_a_simulated_gpu_says_so(self):
        path = self.gpu()
        self.environment["PERSEUS_SIMULATED_GPUS"] = path
        done = self.doctor()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"simulated:{path}   SIMULATED", done.stdout)
        self.assertIn("3, from 350 to 1400 MHz", done.stdout)
        self.assertIn("not run: it changes clocks", done.stdout)
        self.assertIn("Perseus can measure and set the clocks of this GPU", done.stdout)

    def test_through_the_look_alike_of_nvml(self):
        self.gpu("0")
        self.gpu("1")
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=self.path, PERSEUS_NVML=os.path.join(FOLDER, "libnvidia-ml.so.1")
        )
        answer = json.loads(self.doctor("--json").stdout)
        self.assertTrue(answer["drivers"][0]["present"], answer)
        self.assertEqual(len(answer["gpus"]), 2)
        gpu = answer["gpus"][0]
        self.assertTrue(gpu["simulated"] and gpu["device"].startswith("nvml:GPU-"), gpu)
        self.assertEqual(gpu["clocks"], {"count": 3, "maximum_mhz": 1400, "minimum_mhz": 350, "step_mhz": 350})
        self.assertEqual(gpu["power_w"], 50)
        self.assertTrue(gpu["clock_events"]["idle"])
        self.assertGreater(gpu["energy_counter"]["changes"], 0)
        self.assertIsNone(gpu["control_test"])

    def test_the_control_test_gives_the_clock_back(self):
        path = self.gpu()
        done = self.doctor("--device", f"simulated:{path}", "--test-control", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        test = json.loads(done.stdout)["gpus"][0]["control_test"]
        self.assertTrue(test["done"] and test["restored"], test)
        self.assertGreater(test["switches"], 0)
        self.assertEqual(test["clock_after_mhz"], 1400)

    def test_a_device_that_is_not_there_is_an_error(self):
        done = self.doctor("--device", "simulated:/no/such/gpu")
        self.assertEqual(done.returncode, 66)
        self.assertIn("perseus: /no/such/gpu: No such file or directory", done.stderr)
        done = self.doctor("--device", "cuda:0")
        self.assertEqual(done.returncode, 64)
        self.assertIn("allowed are nvml:WHICH", done.stderr)
        done = self.doctor("--device", "nvml:0", "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["exit_code"], done.returncode)

    def test_a_broken_file_among_the_gpus_is_told_and_the_others_are_examined(self):
        good, broken = self.gpu("good"), os.path.join(self.path, "broken")
        with open(broken, "w", encoding="ascii") as file:
            file.write("not a GPU")
        self.environment["PERSEUS_SIMULATED_GPUS"] = f"{broken}:{good}"
        done = self.doctor()
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be opened", done.stdout)
        self.assertIn("Perseus can set the clocks of 1 of 2 GPUs", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
