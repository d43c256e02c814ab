#!/usr/bin/env python3
"""perseus doctor on simulated machines of every kind: its output, its exit codes, and that it changes nothing else.

usage: test_doctor.py PERSEUS FOLDER_OF_NVML_LOOK_ALIKE SAMPLE_GPU NVML_STAND_IN
"""

import fcntl
import http.server
import json
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PERSEUS, FOLDER, SAMPLE_GPU, STAND_IN = sys.argv[1:5]


class Zeusd(socketserver.ThreadingUnixStreamServer):
    """zeusd 0.5 as far as doctor asks it, with one GPU; its token is valid for `valid` commands."""

    daemon_threads = True

    def __init__(self, path, pci_address, name="", valid=1000):
        self.offer = {
            "gpus": [{"id": 0, "name": name, "pci_address": pci_address, "cumulative_energy_available": True}],
            "cpus": [], "enabled_api_groups": ["gpu-control", "gpu-read"], "auth_required": True,
        }  # fmt: skip
        self.valid = valid
        super().__init__(path, ZeusdAnswer)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class ZeusdAnswer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    readings = {
        "/gpu/get_cumulative_energy": {"0": {"energy_mj": 5000}},
        "/gpu/get_power": {"timestamp_ms": 1, "power_mw": {"0": 120000}},
        "/gpu/get_power_limit": {"0": {"power_limit_mw": 750000}},
        "/gpu/get_power_limit_constraints": {"0": {"min_power_limit_mw": 100000, "max_power_limit_mw": 750000}},
    }

    def log_message(self, *_):
        pass

    def answer(self, code, content=None):
        body = json.dumps(content).encode() if content is not None else b""
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        self.answer(200, self.server.offer if path == "/discover" else self.readings[path])

    def do_POST(self):
        self.server.valid -= 1
        if self.server.valid < 0:
            self.answer(401, {"error": "Token has expired."})
        else:
            self.answer(200)


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="perseus-doctor-")
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.environment = {
            **{key: value for key, value in os.environ.items() if key not in ("PERSEUS_SIMULATED_GPUS", "ZEUSD_TOKEN")},
            "PERSEUS_NVML": "/no/such/libnvidia-ml.so.1",
            "ZEUSD_SOCK_PATH": self.path + "/no-zeusd",
            "PERSEUS_RUNTIME_DIR": os.path.join(self.path, "leases"),
            "PERSEUS_CLOCKD_SOCKET": "none",
        }

    def gpu(self, name="gpu"):
        path = os.path.join(self.path, name)
        subprocess.run([SAMPLE_GPU, path], check=True)
        return path

    def inject(self, path, function, code, times=-1):
        subprocess.run([SAMPLE_GPU, path, function, str(code), str(times)], check=True)

    def lease(self):
        """Returns the only lease file and its content."""
        folder = self.environment["PERSEUS_RUNTIME_DIR"]
        names = os.listdir(folder) if os.path.isdir(folder) else []
        if not names:
            return None, ""
        path = os.path.join(folder, names[0])
        return path, self.lease_at(path)

    def lease_at(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def control_test(self, path):
        done = self.doctor("--device", f"simulated:{path}", "--test-control", "--json")
        return done.returncode, json.loads(done.stdout)["gpus"][0]["control_test"]

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

    def test_a_simulated_gpu_is_marked(self):
        path = self.gpu()
        self.environment["PERSEUS_SIMULATED_GPUS"] = path
        done = self.doctor()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"simulated:{path}   SIMULATED", done.stdout)
        self.assertIn("3, from 350 to 1400 MHz", done.stdout)
        self.assertIn("not run: it changes clocks", done.stdout)
        self.assertIn("Perseus can measure and set the clocks of this GPU", done.stdout)

    def test_each_getter_that_is_not_supported_is_named(self):
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=self.path + "/gpus", PERSEUS_NVML=os.path.join(FOLDER, "libnvidia-ml.so.1")
        )
        os.mkdir(self.path + "/gpus")
        path = self.gpu("gpus/0")
        for functions, words in (
            (["nvmlDeviceGetClockInfo"], "clock now       not known: nvmlDeviceGetClockInfo"),
            (["nvmlDeviceGetCurrentClocksEventReasons"], "held down by    not known: "),
            (["nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage"], "power now       not known: nvmlDeviceGetPowerUsage"),
            (["nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"], "power limit     not known: "),
            (["nvmlDeviceGetTotalEnergyConsumption"], "energy counter  none: nvmlDeviceGetTotalEnergyConsumption"),
            (["nvmlDeviceGetSupportedMemoryClocks"], "the driver lists no clocks: these are steps of 15 MHz"),
        ):
            with self.subTest(functions):
                for function in functions:
                    self.inject(path, function, 3)
                done = self.doctor()
                self.assertIn(words, done.stdout)
                self.assertEqual(done.returncode, 0, done.stdout)
                for function in functions:
                    self.inject(path, function, 0, 0)

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

    def test_the_exit_code_reports_the_control_test(self):
        path = self.gpu()
        self.inject(path, "nvmlDeviceSetGpuLockedClocks", 4)
        code, test = self.control_test(path)
        self.assertEqual((code, test["done"], test["touched"]), (1, False, False), test)
        self.assertIn("no permission", test["why"])
        self.assertEqual(self.lease()[1], "")

        self.inject(path, "nvmlDeviceSetGpuLockedClocks", 0, 0)
        self.inject(path, "nvmlDeviceResetGpuLockedClocks", 16)
        code, test = self.control_test(path)
        self.assertEqual((code, test["done"], test["restored"]), (69, False, False), test)
        self.assertIn("must be reset", test["why"])
        self.assertNotEqual(self.lease()[1], "")

        self.inject(path, "nvmlDeviceResetGpuLockedClocks", 0, 0)
        code, test = self.control_test(path)  # first restores the clocks left locked
        self.assertEqual((code, test["done"]), (0, True), test)
        self.assertEqual(self.lease()[1], "")

        self.inject(path, "nvmlDeviceSetGpuLockedClocks", 15)
        code, test = self.control_test(path)
        self.assertEqual((code, test["done"]), (1, False), test)
        self.assertIn("lost", test["why"])

    def test_the_control_test_does_not_run_beside_a_job(self):
        path = self.gpu()
        self.assertEqual(self.control_test(path)[0], 0)
        lease, _ = self.lease()
        with open(lease, "r+", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # like a running helper
            held.write("perseus clock lease\npid 4711\n")
            held.flush()
            code, test = self.control_test(path)
        self.assertEqual((code, test["touched"]), (1, False), test)
        self.assertIn("process 4711", test["why"])

    def test_a_lock_of_perseus_is_named(self):
        path = self.gpu()
        self.assertEqual(self.control_test(path)[0], 0)
        lease, _ = self.lease()
        gpu = json.loads(self.doctor("--device", f"simulated:{path}", "--json").stdout)["gpus"][0]
        self.assertEqual(gpu["lock_holder"], "")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        with open(lease, "r+", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # like a running helper
            held.write(f"perseus clock lease\nboot {boot}\ngpu simulated:{path}\nuuid {gpu['uuid']}\npid 4711\n")
            held.flush()
            said = self.doctor("--device", f"simulated:{path}").stdout
        self.assertRegex(said, "Perseus's lock +the clock of .* process 4711")

    def test_leases_that_nobody_holds_are_named_with_what_to_do(self):
        path = self.gpu()
        self.inject(path, "nvmlDeviceResetGpuLockedClocks", 16)
        self.assertEqual(self.control_test(path)[0], 69)
        lease, record = self.lease()
        broken = os.path.join(os.path.dirname(lease), "clock-lease-GPU-z")
        with open(broken, "w", encoding="ascii") as file:
            file.write("\0" * 64)
        warnings = json.loads(self.doctor("--device", f"simulated:{path}", "--json").stdout)["warnings"]
        said = [warning for warning in warnings if "lease" in warning]
        self.assertEqual(len(said), 2, warnings)
        self.assertRegex(said[1], f"^{broken}: not a lease .*nvidia-smi -rgc -i GPU-z .*delete the file")
        self.assertRegex(said[0], f"^{lease}: .* has ended; perseus-clockd --restore gives it back")
        self.assertEqual(self.lease_at(lease), record)
        self.assertRegex(self.doctor("--device", f"simulated:{path}").stdout, "Perseus's lock +of a process that has ended")

    def test_a_relative_folder_of_leases_is_named(self):
        self.environment["PERSEUS_RUNTIME_DIR"] = "leases"
        said = self.doctor("--device", "simulated:" + self.gpu()).stdout
        self.assertIn("WARNING  leases: the leases of this folder are not used: not an absolute path", said)

    def test_a_control_test_that_is_killed_leaves_nothing_locked(self):
        path = self.gpu()
        doctor = subprocess.Popen(
            [PERSEUS, "doctor", "--seconds", "0", "--device", f"simulated:{path}", "--test-control"],
            env=self.environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while doctor.poll() is None and "gpu " not in self.lease()[1]:
            time.sleep(0.001)
        doctor.kill()
        doctor.wait()
        until = time.monotonic() + 60
        while self.lease()[1] != "" and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(self.lease()[1], "")
        answer = json.loads(self.doctor("--device", f"simulated:{path}", "--json").stdout)
        self.assertEqual(answer["gpus"][0]["clock_mhz"], 1400)

    def test_gpus_that_the_driver_counts_but_does_not_open_are_listed(self):
        self.gpu("0")
        with open(os.path.join(self.path, "1"), "w", encoding="ascii") as file:
            file.write("not a GPU")
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=f"{self.path}/0:{self.path}/1", PERSEUS_NVML=os.path.join(FOLDER, "libnvidia-ml.so.1")
        )
        done = self.doctor()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("the GPU is lost", done.stdout)
        self.assertIn("1 of 2 GPUs", done.stdout)

    def zeusd(self, *arguments, **options):
        self.environment.update(ZEUSD_SOCK_PATH=self.path + "/zeusd", ZEUSD_TOKEN="a.b.c")
        server = Zeusd(self.environment["ZEUSD_SOCK_PATH"], *arguments, **options)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def test_a_token_of_zeusd_that_expires_leaves_a_lease_and_69(self):
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=self.gpu("0"), PERSEUS_NVML=os.path.join(FOLDER, "libnvidia-ml.so.1")
        )
        bus = json.loads(self.doctor("--device", "nvml:0", "--json").stdout)["gpus"][0]["pci_bus_id"]
        self.zeusd(bus, valid=2)
        done = self.doctor("--device", "zeusd:0", "--test-control")
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        self.assertIn("NOT given back", done.stdout)
        self.assertIn("Token has expired", done.stdout)
        self.assertIn("perseus-clockd --restore", done.stdout)
        self.assertNotEqual(self.lease()[1], "")

    def test_an_amd_gpu_is_read_through_zeusd(self):
        for path, text in {
            "bus/pci/devices/0000:43:00.0/vendor": "0x1002\n",
            "bus/pci/devices/0000:43:00.0/pp_dpm_sclk": "0: 500Mhz\n1: 2100Mhz *\n",
            "bus/pci/devices/0000:43:00.0/hwmon/hwmon1/freq1_input": "2050000000\n",
            "class/kfd/kfd/topology/nodes/1/properties": f"simd_count 1216\nlocation_id {0x4300}\ndomain 0\n",
        }.items():
            os.makedirs(os.path.dirname(os.path.join(self.path, "sys", path)), exist_ok=True)
            with open(os.path.join(self.path, "sys", path), "w", encoding="ascii") as file:
                file.write(text)
        self.environment["PERSEUS_SYS"] = os.path.join(self.path, "sys")
        self.zeusd("0000:43:00.0", "AMD Instinct MI300X")
        done = self.doctor()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for words in ("zeusd:0000:43:00.0", "AMD Instinct MI300X", "from 525 to 2100 MHz", "2050 MHz", "120.0 W", "PyTorch"):
            self.assertIn(words, done.stdout)
        self.assertNotIn("locked its clock", done.stdout)  # it is a limit, below which the clock swings

    def look_alike(self, *names):
        for name in names:
            self.gpu(name)
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=self.path, PERSEUS_NVML=os.path.join(FOLDER, "libnvidia-ml.so.1")
        )

    def test_a_gpu_whose_getters_fail_does_not_vanish(self):
        self.look_alike("0", "1")
        for function in ("nvmlDeviceGetUUID", "nvmlDeviceGetIndex"):
            self.inject(os.path.join(self.path, "1"), function, 15)
        done = self.doctor()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("nvml:1\n  cannot be opened  nvmlDeviceGetUUID of nvml:1: the GPU is lost (NVML 15)", done.stdout)
        self.assertIn("1 of 2 GPUs", done.stdout)

    def test_a_driver_that_does_not_count_its_gpus_is_not_no_gpu(self):
        self.look_alike("0")
        self.inject(os.path.join(self.path, "0"), "nvmlDeviceGetCount_v2", 999)
        done = self.doctor()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot be opened  nvmlDeviceGetCount_v2 of this machine: unknown error (NVML 999)", done.stdout)
        self.assertIn("no GPU here can be opened", done.stdout)

    def test_processes_without_a_number_here_may_be_oneself(self):
        # The stand-in lists a process of the host, as NVML does in a container.
        self.environment["PERSEUS_NVML"] = STAND_IN
        arguments = ("--device", "nvml:0", "--test-control", "--json")
        gpu = json.loads(self.doctor(*arguments).stdout)["gpus"][0]
        self.assertGreater(gpu["conditions"]["unknown_processes"], 0)
        if os.geteuid() != 0:
            self.skipTest("needs root, for a control path")
        self.assertFalse(gpu["control_test"]["touched"])
        self.assertIn("this may be your own job", gpu["control_test"]["why"])
        self.assertIn("--beside-others", gpu["control_test"]["why"])
        gpu = json.loads(self.doctor(*arguments, "--beside-others").stdout)["gpus"][0]
        self.assertTrue(gpu["control_test"]["touched"], gpu)

    def test_without_rights_the_clock_daemon_sets_clocks(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to give it up")
        self.gpu("0")
        socket = os.path.join(self.path, "clockd.sock")
        os.chmod(self.path, 0o755)
        os.chmod(os.path.join(self.path, "0"), 0o666)
        self.environment.update(
            PERSEUS_SIMULATED_GPUS=self.path + "/0", PERSEUS_CLOCKD_SOCKET=socket,
        )  # fmt: skip
        # Copies: the build may be below a folder that only root may enter.
        perseus = shutil.copy(PERSEUS, self.path)
        self.environment["PERSEUS_NVML"] = shutil.copy(os.path.join(FOLDER, "libnvidia-ml.so.1"), self.path)
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", perseus, "doctor", "--seconds", "0"]

        def doctor():
            return subprocess.run(unprivileged, env=self.environment, capture_output=True, text=True, timeout=300, check=False)

        without = doctor()
        if "setpriv" in without.stderr:
            self.skipTest(without.stderr)
        self.assertEqual(without.returncode, 1, without.stdout)
        self.assertIn("advice only", without.stdout)
        daemon = subprocess.Popen(
            [os.path.join(os.path.dirname(PERSEUS), "perseus-clockd"), "--daemon", "--socket", socket],
            env=self.environment, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until = time.monotonic() + 60
            while not os.path.exists(socket) and time.monotonic() < until:
                time.sleep(0.01)
            done = doctor()
        finally:
            daemon.terminate()
            daemon.wait()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("clock daemon: through " + socket, done.stdout)

    def test_in_a_container_without_a_daemon_it_warns(self):
        path = self.gpu()
        inside = subprocess.run(
            ["unshare", "--pid", "--fork", PERSEUS, "doctor", "--seconds", "0", "--device", f"simulated:{path}"],
            env=self.environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if "unshare" in inside.stderr:
            self.skipTest(inside.stderr)
        self.assertIn("WARNING  this is a container", inside.stdout)

    def test_a_device_that_is_not_there_is_an_error(self):
        done = self.doctor("--device", "simulated:/no/such/gpu")
        self.assertEqual(done.returncode, 66)
        self.assertIn("perseus: /no/such/gpu: No such file or directory", done.stderr)
        done = self.doctor("--device", "cuda:0")
        self.assertEqual(done.returncode, 64)
        self.assertIn("allowed: nvml:WHICH", done.stderr)
        done = self.doctor("--device", "nvml:0", "--json")
        self.assertEqual(json.loads(done.stdout)["error"]["exit_code"], done.returncode)

    def test_a_broken_file_among_the_gpus_is_reported_and_the_others_are_examined(self):
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
