"""Options from arguments, the environment and torchrun."""

import tempfile
import unittest
from pathlib import Path

from perseus import library
from perseus.options import collect, fill, is_set


class Options(unittest.TestCase):
    def test_arguments_come_before_the_environment(self):
        options = collect({"server": "http://a", "chunks": None}, {"PERSEUS_SERVER": "http://b", "PERSEUS_CHUNKS": "2"})
        self.assertEqual((options["server"], options["chunks"]), ("http://a", 2))

    def test_types(self):
        options = collect({"facts": {"model": "gpt3", "layers": 24}, "helper": Path("/x/y"), "blocking_power_w": 90}, {})
        self.assertEqual(options["facts"], "model=gpt3\nlayers=24")
        self.assertEqual(collect({"labels": {"team": "vision", "model": "gpt3"}}, {})["labels"], "team=vision,model=gpt3")
        self.assertEqual(collect({}, {"PERSEUS_LABELS": "team=vision"})["labels"], "team=vision")
        self.assertEqual((options["helper"], options["blocking_power_w"]), ("/x/y", 90.0))
        for name, value in {"server": 7, "microbatches": "many", "chunks": 1.5, "start_limit_s": "soon", "job": "a\0b"}.items():
            with self.assertRaisesRegex(TypeError, f"option {name}: "):
                collect({name: value}, {})
        with self.assertRaisesRegex(TypeError, "unknown option: sever; allowed: server"):
            collect({"sever": "x"}, {})

    def test_flags(self):
        self.assertTrue(collect({"advice_only": True}, {})["advice_only"])
        self.assertFalse(collect({}, {"PERSEUS_ADVICE_ONLY": "0"})["advice_only"])
        self.assertTrue(collect({}, {"PERSEUS_NO_ENERGY": "1"})["no_energy"])

    def test_switches_read_as_flags_do(self):
        for text in ("", "0", "false", "No", "OFF"):
            self.assertFalse(is_set("PERSEUS_STRICT", {"PERSEUS_STRICT": text}), text)
        for text in ("1", "true", "anything"):
            self.assertTrue(is_set("PERSEUS_STRICT", {"PERSEUS_STRICT": text}), text)
        self.assertFalse(is_set("PERSEUS_STRICT", {}))

    def test_a_rank_of_torchrun_that_is_no_number_is_named(self):
        remarks = []
        options = collect({}, {"RANK": "abc", "WORLD_SIZE": "2x"}, remarks.append)
        self.assertNotIn("rank", options)
        self.assertEqual(remarks, [f"{name}, ignored: no whole number" for name in ("RANK is 'abc'", "WORLD_SIZE is '2x'")])

    def test_action_table_of_the_environment_is_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("0F0,0B0\n")
            file.flush()
            self.assertEqual(collect({}, {"PERSEUS_ACTION_TABLE": file.name})["action_table"], "0F0,0B0\n")
        with self.assertRaisesRegex(ValueError, "action_table: .*nowhere"):
            collect({}, {"PERSEUS_ACTION_TABLE": "/nowhere.csv"})

    def test_a_wrong_variable_costs_only_itself(self):
        for variable, text, allowed in (
            ("PERSEUS_MICROBATCHES", "many", "whole number of at most 2147483647"),
            ("PERSEUS_MICROBATCHES", "99999999999", "whole number of at most 2147483647"),
            ("PERSEUS_RANK", "1.5", "whole number"),
            ("PERSEUS_DP_DEGREE", "0", "0 is below 1"),
            ("PERSEUS_BLOCKING_POWER_W", "90 W", "is no number"),
            ("PERSEUS_NO_ENERGY", "maybe", "one of 1, true, yes, on, 0, false, no, off"),
            ("PERSEUS_ACTION_TABLE", "/nowhere.csv", "No such file or directory"),
            ("PERSEUS_ACTION_TABLE", "/", "Is a directory"),
        ):
            ignored = []
            options = collect({}, {variable: text, "PERSEUS_CHUNKS": "2"}, ignored.append)
            self.assertEqual((options, len(ignored)), (collect({}, {"PERSEUS_CHUNKS": "2"}), 1), variable)
            self.assertTrue(ignored[0].startswith(f"{variable} is {text!r}, ignored: "), ignored[0])
            self.assertIn(allowed, ignored[0])
            with self.assertRaises((TypeError, ValueError)):  # PERSEUS_STRICT
                collect({}, {variable: text})

    def test_the_library_reads_some_variables_itself(self):
        for name in ("plan_tolerance", "domain", "least_rate", "priority"):
            self.assertNotIn(name, collect({}, {"PERSEUS_" + name.upper(): "abc"}))

    def test_the_tier(self):
        options = collect({"domain": "row-a", "least_rate": 0, "priority": "2"}, {})
        struct = library.Options()
        fill(struct, options)
        self.assertEqual((struct.domain, struct.least_rate, struct.priority), (b"row-a", 0.0, 2.0))

    def place(self, arguments, rank, world):
        options = collect(arguments, {"RANK": str(rank), "WORLD_SIZE": str(world)})
        return [options[f"{kind}_{what}"] for what in ("degree", "rank") for kind in ("dp", "pp", "tp")]

    def test_torchrun(self):
        self.assertEqual(self.place({}, 3, 4), [1, 4, 1, 0, 3, 0])
        # Stages outermost, tensor parallel ranks innermost: rank = tp + 2 * (dp + 3 * pp).
        self.assertEqual(self.place({"dp_degree": 3, "tp_degree": 2}, 17, 24), [3, 4, 2, 2, 2, 1])
        self.assertEqual(self.place({"pp_degree": 4, "tp_degree": 2}, 17, 24), [3, 4, 2, 2, 2, 1])
        self.assertEqual(self.place({"pp_degree": 4, "tp_degree": 2, "pp_rank": 0}, 17, 24), [3, 4, 2, 2, 0, 1])

    def test_impossible_places(self):
        for arguments, message in (
            ({"dp_degree": 3}, "dp_degree 3 x pp_degree 1 x tp_degree 1 is not the world's size, 4"),
            ({"rank": 4}, "rank: 4 is not below dp_degree x pp_degree x tp_degree, 4"),
            ({"dp_degree": 0}, "option dp_degree: 0 is below 1"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                collect(arguments, {"WORLD_SIZE": "4"})


if __name__ == "__main__":
    unittest.main()
