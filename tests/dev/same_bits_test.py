#!/usr/bin/env python3
"""Tests which differences dev/same_bits finds, with fake programs in place of those of two builds, and with
the programs of one build.

usage: same_bits_test.py ROOT BUILD
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

# A fake program: trains nothing, and writes what "behaviour.json" beside it says.
STAND_IN = '''#!{python}
import json, os, pathlib, sys, time

says = json.loads(pathlib.Path(__file__).with_name("behaviour.json").read_text())
if says["fails"]:
    sys.exit(says["fails"])
if "--dry-run" in sys.argv:
    print(f"0 {{says['op']}} %1 of core/a.cpp:{{says['line']}} [fast]")
    sys.exit()
value = os.urandom(4) if says["weight"] == "random" else bytes([says["weight"]] * 4)
header = {{"__metadata__": {{"kernel_times": str(time.time()), "optimizer": "sgd"}}, "fc1.weight": {{"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}}}
text = json.dumps(header).encode()
folder = pathlib.Path("out/checkpoint-000001")
folder.mkdir(parents=True)
(folder / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + value)
with open("log", "a") as log:
    print(json.dumps({{"event": "step", "loss": says["loss"], "images_per_second": time.time(), "waited_share": time.time()}}), file=log)
with open(os.environ["PLEXAURA_CALLS"] + "/rank-0", "w") as calls:
    print("event 0 1 0 ", "event 0 3 1 ", "event 0 4 0 samples", *says["calls"], sep="\\n", file=calls)
'''
BEHAVIOUR = {"fails": "", "op": "add", "line": 7, "weight": 1, "loss": 0.5,
             "calls": ["event 0 6 0 bucket 0 of step 1", "message 0 1 MPI_Isend 1 4 64", "message 0 1 MPI_Irecv 1 3 8"]}


class SameBitsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plexaura-same-bits-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        source = self.folder / "source"
        for name in ("core/events.h", "models/iris.yaml", "models/iris.csv"):
            self.write(source / name, "")
        self.compiler = self.write(self.folder / "compiler", '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho > "$2"\n')
        for name in ("old", "new"):
            self.write(self.folder / name / "CMakeCache.txt", f"CMAKE_PROJECT_NAME:STATIC=Plexaura\nCMAKE_HOME_DIRECTORY:INTERNAL={source}\n"
                                                              f"CMAKE_CXX_COMPILER:FILEPATH={self.compiler}\nPLEXAURA_MPI:BOOL=OFF\n")
            self.write(self.folder / name / "models/mlp", STAND_IN.format(python=sys.executable))
            self.behave(name)

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def behave(self, name, **changes):
        self.write(self.folder / name / "models/behaviour.json", json.dumps(BEHAVIOUR | changes))

    def run_tool(self, status, *words, table="1 iris train all\n"):
        path = self.write(self.folder / "table", table)
        done = subprocess.run([ROOT / "dev/same_bits", *map(str, words or (self.folder / "old", self.folder / "new")), "--table", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_times_and_places_in_sources_do_not_count(self):
        self.behave("new", line=8)
        said = self.run_tool(0, table="1 iris train all\n1 iris train checkpoint,program training.seed=2\n")
        self.assertEqual(said, "equal     1 iris train all\nequal     1 iris train checkpoint,program training.seed=2\n2 configurations: 2 equal\n")

    def test_each_aspect_that_differs_is_named_with_its_first_difference(self):
        calls = [*BEHAVIOUR["calls"][:1], "message 0 1 MPI_Isend 1 4 65"]
        for changes, lines in (({"weight": 2}, ("checkpoint: they differ", "weights.safetensors: fc1.weight F32[1] sha256 ")),
                               ({"loss": 0.25}, ("results: they differ", 'NEW   {"event": "step", "loss": 0.25}')),
                               ({"op": "sub"}, ("program: they differ", "NEW   0 sub %1 of SOURCE [fast]")),
                               ({"calls": calls}, ("calls: they differ", "NEW   start 1, rank-0, thread 0: together 'bucket 0 of step 1': MPI_Isend in communicator 1, peer 1, tag 4: 65 bytes")),
                               ({"calls": BEHAVIOUR["calls"][:2]}, ("calls: they differ", "NEW   start 1, rank-0, thread 0: together 'bucket 0 of step 1': MPI_Isend"))):
            with self.subTest(changes):
                self.behave("new", **changes)
                said = self.run_tool(1)
                self.assertTrue(said.startswith("differs   1 iris train all\n"), said)
                self.assertEqual(said.count("they differ"), 1)
                for line in lines:
                    self.assertIn(line, said)

    def test_what_is_not_compared_may_differ(self):
        self.behave("new", loss=0.25, weight=2)
        self.run_tool(0, table="1 iris train calls,program\n")

    def test_messages_within_a_call_and_those_that_are_compared_as_such_have_no_order(self):
        first, *messages = BEHAVIOUR["calls"]
        self.behave("new", calls=[first, *reversed(messages)])
        self.run_tool(0)
        self.behave("new", calls=[messages[0], first, messages[1]])
        self.run_tool(1)
        self.run_tool(0, table="1 iris train messages\n")

    def test_threads_are_found_again_under_other_numbers(self):
        for name, thread in (("old", 41), ("new", 39)):
            self.behave(name, calls=[f"event {thread} 6 0 bucket 0", "event 40 6 0 bucket 1"])
        self.run_tool(0)

    def test_a_build_that_differs_from_itself_shows_nothing(self):
        for name in ("old", "new"):
            with self.subTest(name):
                self.behave("old")
                self.behave("new")
                self.behave(name, weight="random")
                said = self.run_tool(1)
                self.assertTrue(said.startswith("unsteady  1 iris train all\n"), said)
                self.assertIn(f"checkpoint: {name.upper()} differs from itself", said)

    def test_a_run_that_fails(self):
        self.behave("new", fails="the disk is full")
        said = self.run_tool(1)
        self.assertIn("failed    1 iris train all\n          returns 1; its last line is: the disk is full\n", said)

    def test_nothing_is_not_equal_to_nothing(self):
        for name in ("old", "new"):
            self.write(self.folder / name / "models/mlp", "#!/bin/sh\n")
        for aspect in ("checkpoint", "calls", "results", "program", "messages"):
            said = self.run_tool(1, table=f"1 iris train {aspect}\n")
            self.assertIn(f"          OLD leaves nothing behind that can be compared as {aspect}\n", said)

    def test_what_this_machine_or_build_lacks_is_skipped(self):
        said = self.run_tool(0, table="1 iris train all --backend far\n2 iris train all\n1 shapes train all\n1 iris graph all\n")
        for line in ("OLD has not built the backend far", "OLD is built without MPI", "OLD has not built draw_shapes", "OLD has not built graph"):
            self.assertIn(line, said)
        self.assertIn("4 configurations: 4 skipped\n", said)

    def test_a_word_after_an_option_is_its_value(self):
        script = '#!/bin/sh\n[ "$*" = "model.yaml --set data.path=data --set output.dir=out --set training.epochs=2 --backend cpu --set training.seed=2 ' \
                 '--dry-run --program" ] && [ "$SOME_NAME" = 3 ] && echo right\n[ "$6" = --log ] || true\n'
        for name in ("old", "new"):
            self.write(self.folder / name / "models/mlp", script)
        self.run_tool(0, table="1 iris train program --backend cpu training.seed=2 SOME_NAME=3\n")

    def test_wrong_use(self):
        old = self.folder / "old"
        self.assertIn("is not a build: it has no CMakeCache.txt; name a folder such as build/", self.run_tool(2, old, self.folder / "source"))
        (self.folder / "new/models/mlp").unlink()
        self.assertIn("has no program mlp; build it", self.run_tool(2))
        for table, sentence in (("x iris train all\n", "'x' is not a number of ranks"), ("1 tulip train all\n", "there is no model 'tulip'; there are iris"),
                                ("1 iris run all\n", "there is no run 'run'"), ("1 iris train most\n", "'most' cannot be compared"), ("1 iris\n", "'1 iris' is not a configuration"),
                                ("1 iris train all 'x\n", "with quotes in pairs"), ("# nothing\n", "has no configuration")):
            self.assertIn(sentence, self.run_tool(2, old, old, table=table))
        self.assertIn("no configuration contains 'ocean'", self.run_tool(2, old, old, "--only", "ocean"))
        self.assertIn("--jobs must be 1 or more", self.run_tool(2, old, old, "--jobs", "0"))

    @unittest.skipUnless((BUILD / "models/mlp").is_file(), "no programs were built")
    def test_a_build_equals_itself(self):
        said = self.run_tool(0, BUILD, BUILD, table="1 iris train all\n2 iris resume@7 all distributed.overlap=on\n")
        self.assertIn("equal     1 iris train all\n", said)

    def test_the_table_can_be_read(self):
        sys.path[:0] = [str(ROOT / "dev/same_bits_parts"), str(ROOT / "tools")]
        from models import MODELS
        from table import read_table

        rows = read_table(ROOT / "dev/same_bits_parts/configurations", MODELS)
        self.assertEqual(len({row.text for row in rows}), len(rows))


if __name__ == "__main__":
    os.environ.pop("PLEXAURA_DATA", None)
    unittest.main(argv=sys.argv[:1], verbosity=2)
