#!/usr/bin/env python3
"""The manifests and the Helm chart's objects have the fields of Kubernetes' API, and the chart makes the manifests.

77: a package is missing. usage: test_kubernetes.py [unittest's arguments]
"""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
    import yaml

    import kubernetes_objects
except ImportError as missing:
    print(missing)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy/helm/perseus"
MANIFESTS = ROOT / "deploy/kubernetes"
# Of Debian's packages: golang-go, golang-github-masterminds-sprig-dev, golang-gopkg-yaml.v3-dev.
LIBRARIES = pathlib.Path("/usr/share/gocode")
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def merged(base, changes):
    """As helm merges values: objects member by member."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def without_nulls(value):
    """As helm: null removes a default."""
    return {key: without_nulls(one) for key, one in value.items() if one is not None} if isinstance(value, dict) else value


def manifests():
    return [one for file in sorted(MANIFESTS.glob("*.yaml")) if file.name != "kustomization.yaml"
            for one in yaml.safe_load_all(file.read_text())]


def rendered(changes=None, release="perseus"):
    """The chart's objects by kind, and its notes."""
    values = merged(VALUES, changes or {})
    jsonschema.validate(without_nulls(values), SCHEMA)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    root = {"Values": values, "Chart": {key[:1].upper() + key[1:]: value for key, value in chart.items()},
            "Release": {"Name": release, "Namespace": "perseus", "Service": "Helm"}}
    templates = {file.name: file.read_text() for file in (CHART / "templates").iterdir()}
    done = subprocess.run([Chart.renderer], text=True, input=json.dumps({"root": root, "templates": templates}),
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    texts = json.loads(done.stdout)
    objects = {}
    for name, text in texts.items():
        if name.endswith(".yaml"):
            for one in filter(None, yaml.safe_load_all(text)):
                assert one["kind"] not in objects, one["kind"]
                objects[one["kind"]] = one
    return objects, texts["NOTES.txt"]


class Objects(unittest.TestCase):
    def test_the_manifests_have_the_fields_of_the_api(self):
        self.assertGreater(len(manifests()), 5)
        for one in manifests():
            self.assertEqual(kubernetes_objects.wrong_in(one), [])

    def test_wrong_fields_are_found(self):
        (deployment,) = [one for one in manifests() if one["kind"] == "Deployment"]

        def wrong_after(change):
            one = copy.deepcopy(deployment)
            change(one["spec"], one["spec"]["template"]["spec"])
            return " ".join(kubernetes_objects.wrong_in(one))
        self.assertIn("replicas: '2' is no int", wrong_after(lambda spec, pod: spec.update(replicas="2")))
        self.assertIn("V1PodSpec has no such field", wrong_after(lambda spec, pod: pod.update(hostPids=True)))
        self.assertIn("selector", wrong_after(lambda spec, pod: spec.pop("selector")))
        self.assertIn("`containers`", wrong_after(lambda spec, pod: pod.pop("containers")))
        self.assertIn("is no list", wrong_after(lambda spec, pod: pod.update(containers={})))


class Values(unittest.TestCase):
    def test_the_defaults_are_valid(self):
        jsonschema.Draft7Validator.check_schema(SCHEMA)
        jsonschema.validate(VALUES, SCHEMA)

    def test_every_value_has_a_schema_and_wrong_ones_are_refused(self):
        for section, values in VALUES.items():
            self.assertEqual(set(values), set(SCHEMA["properties"][section]["properties"]), section)
        for wrong in ({"server": {"replica": 3}}, {"server": {"replicas": 0}}, {"service": {"port": 70000}},
                      {"database": {"secret": "Not A Name"}}, {"clockd": {"ceilingMHz": "1200"}}, {"sever": {}}):
            with self.assertRaises(jsonschema.ValidationError, msg=wrong):
                jsonschema.validate(merged(VALUES, wrong), SCHEMA)


@unittest.skipUnless(shutil.which("go") and (LIBRARIES / "src/github.com/Masterminds/sprig").exists(),
                     "no Go with the template library sprig here")
class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.renderer = cls.folder.name + "/render_chart"
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(LIBRARIES), "GOFLAGS": "",
                       "GOCACHE": cls.folder.name + "/cache"}
        source = pathlib.Path(__file__).resolve().parent / "render_chart.go"
        subprocess.run(["go", "build", "-o", cls.renderer, str(source)], env=environment, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_defaults_make_the_manifests(self):
        objects, notes = rendered()
        self.assertEqual(set(objects), {"Deployment", "Service", "DaemonSet", "NetworkPolicy"})
        for one in objects.values():
            self.assertEqual(kubernetes_objects.wrong_in(one), [])
        wanted = {one["kind"]: one for one in manifests()}
        for kind, one in objects.items():
            self.assertEqual(one["metadata"]["name"], wanted[kind]["metadata"]["name"])
        for kind in ("Deployment", "DaemonSet"):
            ours, theirs = (side[kind]["spec"]["template"]["spec"] for side in (objects, wanted))
            container = ours["containers"][0]
            self.assertEqual(container.pop("imagePullPolicy"), "IfNotPresent")
            if kind == "Deployment":
                theirs["containers"][0]["args"][3] = "perseus-server,perseus-server.perseus.svc"
            self.assertEqual(ours, theirs)
        for kind in ("Service", "NetworkPolicy"):
            ours, theirs = (json.dumps(side[kind]["spec"], sort_keys=True) for side in (objects, wanted))
            ours = ours.replace('"app.kubernetes.io/instance": "perseus", ', "").replace('"type": "ClusterIP"', '"type": 0')
            self.assertEqual(ours.replace(', "type": 0', ""), theirs)
        self.assertIn("http://perseus-server.perseus.svc:7787", notes)

    def test_selectors_select(self):
        objects, _ = rendered({"serviceMonitor": {"enabled": True}}, "gpu-energy")
        pods = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
        for labels in (objects["Deployment"]["spec"]["selector"]["matchLabels"], objects["Service"]["spec"]["selector"],
                       objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(labels, {key: pods[key] for key in labels})
        daemon = objects["DaemonSet"]["spec"]
        labels = daemon["selector"]["matchLabels"]
        self.assertEqual(labels, {key: daemon["template"]["metadata"]["labels"][key] for key in labels})
        monitor, service = objects["ServiceMonitor"]["spec"], objects["Service"]
        labels = monitor["selector"]["matchLabels"]
        self.assertEqual(labels, {key: service["metadata"]["labels"][key] for key in labels})
        self.assertEqual(monitor["endpoints"][0]["port"], service["spec"]["ports"][0]["name"])
        self.assertEqual(service["metadata"]["name"], "gpu-energy-perseus-server")
        for one in objects.values():
            self.assertEqual(kubernetes_objects.wrong_in(one), [])

    def test_values_change_the_objects(self):
        objects, _ = rendered({"clockd": {"ceilingMHz": 1410, "runtimeClassName": "", "nodeSelector": None},
                               "server": {"replicas": 3, "hosts": ["perseus.example"], "arguments": ["--workers", "4"],
                                          "image": {"tag": "1.2"}, "nodeSelector": {"pool": "cpu"}},
                               "database": {"secret": "pg", "port": 6432}, "service": {"port": 80}})
        pod = objects["DaemonSet"]["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["args"], ["--ceiling", "1410"])
        self.assertNotIn("runtimeClassName", pod)
        self.assertNotIn("nodeSelector", pod)
        spec = objects["Deployment"]["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        self.assertEqual(spec["replicas"], 3)
        self.assertEqual(container["image"], "perseus-server:1.2")
        self.assertTrue(container["args"][3].endswith(",perseus.example"))
        self.assertEqual(container["args"][4:], ["--workers", "4"])
        self.assertEqual(container["env"][0]["valueFrom"]["secretKeyRef"], {"name": "pg", "key": "url"})
        self.assertEqual(spec["template"]["spec"]["nodeSelector"], {"pool": "cpu"})
        self.assertEqual(objects["NetworkPolicy"]["spec"]["egress"][0]["ports"][-1]["port"], 6432)
        self.assertEqual(objects["Service"]["spec"]["ports"][0]["port"], 80)

    def test_the_servers_speak_https(self):
        objects, _ = rendered({"server": {"tlsSecret": "perseus-tls"}, "serviceMonitor": {"enabled": True}})
        pod = objects["Deployment"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        self.assertEqual(container["args"][4:], ["--tls-certificate", "/etc/perseus/tls/tls.crt", "--tls-key", "/etc/perseus/tls/tls.key"])
        self.assertEqual(container["volumeMounts"][0]["mountPath"], "/etc/perseus/tls")
        self.assertEqual(pod["volumes"], [{"name": "tls", "secret": {"secretName": "perseus-tls"}}])
        self.assertEqual({container[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")}, {"HTTPS"})
        self.assertEqual(objects["ServiceMonitor"]["spec"]["endpoints"][0]["scheme"], "https")
        for one in objects.values():
            self.assertEqual(kubernetes_objects.wrong_in(one), [])

    def test_parts_can_be_left_out(self):
        objects, _ = rendered({"clockd": {"enabled": False}, "networkPolicy": {"enabled": False}})
        self.assertEqual(set(objects), {"Deployment", "Service"})


if __name__ == "__main__":
    unittest.main()
