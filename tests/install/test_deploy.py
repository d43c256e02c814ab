#!/usr/bin/env python3
"""deploy/: manifests refer to what exists, and the epilog reports a clock that stays locked. 77: no python3-yaml here.

usage: test_deploy.py VERSION [unittest's arguments]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
VERSION = ""


class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = DEPLOY / "kubernetes"
        cls.kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
        cls.objects = {(one["kind"], one["metadata"]["name"]): one for file in folder.glob("*.yaml")
                       if file.name != "kustomization.yaml" for one in yaml.safe_load_all(file.read_text())}
        cls.folder = folder

    def test_every_resource_exists(self):
        for name in self.kustomization["resources"]:
            self.assertTrue((self.folder / name).exists(), name)

    def test_selectors_select(self):
        labels = {kind: one["spec"]["template"]["metadata"]["labels"] for (kind, _), one in self.objects.items()
                  if kind in ("Deployment", "DaemonSet")}
        for kind in labels:
            self.assertEqual(next(one for (k, _), one in self.objects.items() if k == kind)["spec"]["selector"]["matchLabels"],
                             labels[kind])
        server = labels["Deployment"]
        service = self.objects["Service", "perseus-server"]
        self.assertEqual(service["spec"]["selector"], server)
        self.assertEqual(self.objects["NetworkPolicy", "perseus-server"]["spec"]["podSelector"]["matchLabels"], server)
        monitor = self.objects["ServiceMonitor", "perseus-server"]["spec"]
        self.assertEqual(monitor["selector"]["matchLabels"], service["metadata"]["labels"])
        self.assertEqual(monitor["endpoints"][0]["port"], service["spec"]["ports"][0]["name"])

    def test_containers(self):
        for kind in ("Deployment", "DaemonSet"):
            (pod,) = [one["spec"]["template"]["spec"] for (k, _), one in self.objects.items() if k == kind]
            (container,) = pod["containers"]
            self.assertTrue(container["image"].endswith(":" + VERSION), container["image"])
            self.assertEqual(container["securityContext"]["capabilities"]["drop"], ["ALL"])
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            self.assertEqual(mounted, {volume["name"] for volume in pod.get("volumes", [])})
        server = self.objects["Deployment", "perseus-server"]["spec"]["template"]["spec"]
        self.assertTrue(server["securityContext"]["runAsNonRoot"])
        self.assertNotIn("add", server["containers"][0]["securityContext"]["capabilities"])


class Slurm(unittest.TestCase):
    def epilog(self, restored):
        """The exit code, with a perseus-clockd that exits with `restored`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("perseus-clockd", f"[ \"$1\" = --restore ] && exit {restored}"), ("logger", "exit 0")):
                program = pathlib.Path(folder) / name
                program.write_text(f"#!/bin/sh\n{text}\n")
                program.chmod(0o755)
            environment = {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_UID": "4000000", "SLURM_JOB_ID": "7"}
            return subprocess.run(["sh", str(DEPLOY / "slurm/epilog.sh")], env=environment, check=False).returncode

    def test_a_clock_that_stays_locked_drains_the_node(self):
        self.assertEqual(self.epilog(0), 0)
        self.assertEqual(self.epilog(69), 1)

    @unittest.skipUnless(shutil.which("shellcheck"), "no shellcheck here")
    def test_shellcheck(self):
        scripts = [*DEPLOY.rglob("*.sh"), *DEPLOY.rglob("*.sbatch"), *(ROOT / "packaging/deb").rglob("p*")]
        self.assertGreater(len(scripts), 10)
        done = subprocess.run(["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    VERSION = sys.argv.pop(1)
    unittest.main()
