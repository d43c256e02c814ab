#!/usr/bin/env python3
"""Installs a build, moves the result, and uses it there: the program, the demo, and a C program that finds the library by
CMake and by pkg-config.

usage: test_prefix.py CMAKE BUILD [unittest's arguments]
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CMAKE = BUILD = ""

C_PROGRAM = """
#include <perseus/perseus.h>
#include <stdio.h>
int main(void) { return puts(perseus_version()) < 0; }
"""

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(uses_perseus LANGUAGES C)
find_package(perseus 0.1 REQUIRED)
add_executable(uses_perseus main.c)
target_link_libraries(uses_perseus PRIVATE perseus::perseus)
"""


def run(*command, **named):
    done = subprocess.run(command, capture_output=True, text=True, **named)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.scratch = pathlib.Path(cls.folder.name)
        run(CMAKE, "--install", BUILD, "--prefix", str(cls.scratch / "first"))
        cls.prefix = cls.scratch / "moved"
        (cls.scratch / "first").rename(cls.prefix)
        cls.program = str(cls.prefix / "bin/perseus")
        # With sanitizers, libperseus needs their runtime in the program that loads it.
        cls.preloaded = {**os.environ, "LD_PRELOAD": os.environ.get("PERSEUS_PRELOAD", ""), "ASAN_OPTIONS": "detect_leaks=0"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_it_contains_each_kind_of_file(self):
        for name in ("bin/perseus", "bin/perseus-clockd", "lib/libperseus.so.1", "lib/perseus/perseus-replay",
                     "lib/perseus/libcuda-simulated.so", "lib/perseus/simulated/libnvidia-ml.so.1", "include/perseus/perseus.hpp",
                     "lib/systemd/system/perseus-server.service", "lib/sysusers.d/perseus-server.conf", "etc/perseus/server.toml",
                     "share/doc/perseus/docs/serve.md", "share/perseus/slurm/job_submit.lua", "share/perseus/helm/perseus/values.yaml",
                     "share/perseus/kubernetes/kustomization.yaml", "share/perseus/prometheus/perseus.rules.yml",
                     "share/perseus/grafana/perseus.json",
                     "share/doc/perseus/examples/megatron_gpt.py", "share/man/man1/perseus-plan.1",
                     "share/man/man8/perseus-clockd.8", "share/bash-completion/completions/perseus", "share/licenses/perseus/LICENSE"):
            self.assertTrue((self.prefix / name).exists(), name)
        self.assertTrue(os.access(self.prefix / "share/perseus/slurm/epilog.sh", os.X_OK))
        unit = (self.prefix / "lib/systemd/system/perseus-clockd.service").read_text()
        self.assertIn(f"ExecStart={self.scratch}/first/bin/perseus-clockd --daemon", unit)

    def test_the_installed_settings_are_the_defaults(self):
        shipped = run(self.program, "serve", "--config", str(self.prefix / "etc/perseus/server.toml"), "--print-config")
        self.assertEqual(shipped, run(self.program, "serve", "--print-config"))

    def test_no_file_needs_the_build(self):
        for file in [*self.prefix.glob("bin/*"), *self.prefix.rglob("*.so*"), self.prefix / "lib/perseus/perseus-replay"]:
            self.assertNotIn(BUILD, run("readelf", "-d", str(file)), file)

    def test_a_plan_of_the_sample(self):
        sample = self.prefix / "share/doc/perseus/data/sample_profile.csv"
        out = str(self.scratch / "plans")
        run(self.program, "plan", str(sample), "--schedule", "1f1b", "--microbatches", "4", "--blocking-power", "90",
            "--effort", "low", "--out", out, env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
        run(self.program, "verify", out)
        origin = json.loads((self.scratch / "plans/plans.json").read_text())["metadata"]
        self.assertEqual(origin["Perseus"], run(self.program, "--version").strip().removeprefix("perseus "))
        self.assertEqual(origin["written"], "1970-01-02T00:00:00Z")
        self.assertTrue(origin["command"].startswith(f"{self.program} plan {sample} "), origin)
        self.assertEqual(origin["SHA-256 of sample_profile.csv"], hashlib.sha256(sample.read_bytes()).hexdigest())
        page = (self.scratch / "plans/report.html").read_text()
        for name in ("Perseus", "written", "SHA-256 of sample_profile.csv"):
            self.assertIn(origin[name], page)

    def test_the_demo_finds_its_programs(self):
        # Iterations of 0.67 s: on a machine with ten times its cores' load, a plan of much shorter ones comes late and is dropped.
        run(self.program, "demo", "--known-profile", "--iterations", "2",
            "--dp", "1", "--out", str(self.scratch / "demo"), "--scratch", str(self.scratch / "work"), cwd=self.scratch)
        self.assertTrue(json.loads((self.scratch / "demo/summary.json").read_text()))

    def test_a_program_built_with_cmake(self):
        project = self.scratch / "cmake"
        project.mkdir()
        (project / "main.c").write_text(C_PROGRAM)
        (project / "CMakeLists.txt").write_text(PROJECT)
        run(CMAKE, "-S", str(project), "-B", str(project / "build"), f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", str(project / "build"))
        self.check_version_of(project / "build/uses_perseus", self.preloaded)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_a_program_built_with_pkg_config(self):
        source = self.scratch / "main.c"
        source.write_text(C_PROGRAM)
        flags = run("pkg-config", "--cflags", "--libs", "perseus",
                    env={**os.environ, "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}).split()
        program = self.scratch / "with_pkg_config"
        run("cc", str(source), "-o", str(program), *flags)
        self.check_version_of(program, {**self.preloaded, "LD_LIBRARY_PATH": str(self.prefix / "lib")})

    def check_version_of(self, program, environment):
        self.assertEqual(run(str(program), env=environment).strip(), run(self.program, "--version").split()[1])


if __name__ == "__main__":
    CMAKE, BUILD = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
