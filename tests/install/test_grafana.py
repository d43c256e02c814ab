#!/usr/bin/env python3
"""The Grafana dashboard fits its model, no two panels overlap, and all names of data sources exist.

77: no python3-jsonschema here. usage: test_grafana.py [unittest's arguments]
"""

import copy
import json
import pathlib
import sys
import unittest

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
DASHBOARD = json.loads((HERE.parent.parent / "deploy/grafana/perseus.json").read_text())
MODEL = jsonschema.Draft7Validator(json.loads((HERE / "grafana_dashboard.schema.json").read_text()))


class Dashboard(unittest.TestCase):
    def test_it_fits_the_model(self):
        jsonschema.Draft7Validator.check_schema(MODEL.schema)
        self.assertEqual([f"{list(error.path)}: {error.message}" for error in MODEL.iter_errors(DASHBOARD)], [])

    def test_what_does_not_fit_is_found(self):
        def is_wrong(change):
            dashboard = copy.deepcopy(DASHBOARD)
            change(dashboard, dashboard["panels"][0])
            return any(MODEL.iter_errors(dashboard))
        self.assertFalse(is_wrong(lambda dashboard, panel: None))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel.update(type="graf")))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel.update(datasource="Prometheus")))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel["targets"][0].update(datasource={"uid": "x"})))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel["targets"][0].update(query="up")))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel["targets"][0].pop("expr")))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel["fieldConfig"]["defaults"].update(unit="W")))
        self.assertTrue(is_wrong(lambda dashboard, panel: panel["gridPos"].update(w=25)))
        self.assertTrue(is_wrong(lambda dashboard, panel: dashboard.update(rows=[])))

    def test_panels_and_queries_have_names_of_their_own(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in DASHBOARD["panels"]:
            queries = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(queries), len(set(queries)), panel["title"])

    def test_no_two_panels_overlap(self):
        taken = {}
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']}, {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_every_data_source_is_a_variable(self):
        variables = {"${" + one["name"] + "}" for one in DASHBOARD["templating"]["list"] if one["type"] == "datasource"}
        for panel in DASHBOARD["panels"]:
            for one in [panel, *panel["targets"]]:
                self.assertIn(one["datasource"]["uid"], variables)


if __name__ == "__main__":
    unittest.main()
