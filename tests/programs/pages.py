"""Tests the pages that show a graph or a run: their contents, and what they show in a browser."""

import base64
import json
import re
import subprocess
import unittest
import zlib

import support
from browser import CHROMIUM, REASON, open_page
from support import BUILD, SOURCE, ProgramTest, draw_images

IRIS = [SOURCE / "models/iris.yaml", "--sample", 4, "--classes", 3]

# Uses each part of the page, and writes what it has found at the end of the page.
VISIT = """
const found = {}, click = (query, from = document) => from.querySelector(query).dispatchEvent(new MouseEvent("click", { bubbles: true }));
for (const button of [...document.querySelectorAll("#stages button")].map(one => one.textContent)) {
  [...document.querySelectorAll("#stages button")].find(one => one.textContent === button).click();
  found[button] = document.querySelectorAll("main svg [data-item], main svg [data-use]").length;
}
const use = document.querySelector("main svg [data-use]"), place = use.getBoundingClientRect();
use.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: place.left + place.width / 2 }));
found.memory_row = document.querySelector("main table tr:nth-child(2)").textContent;
[...document.querySelectorAll("#stages button")].find(one => one.textContent === "as built").click();
found.labels = [...document.querySelectorAll("main .edge text")].map(text => text.textContent);
const ends = [...document.querySelectorAll("main .edge text")].map(text => ({ left: +text.getAttribute("x"), row: text.getAttribute("y"), length: text.textContent.length }));
found.overlaps = ends.filter(one => ends.some(other => other !== one && other.row === one.row && other.left >= one.left && other.left < one.left + 4 * one.length)).length;
click("main .scope");
found.opened = document.querySelectorAll("main .scope [data-item]").length;
click("main .scope");
found.closed = document.querySelectorAll("main .scope [data-item]").length;
const search = document.getElementById("search");
search.value = "matmul [1,3]";
search.oninput();
found.rows = [...document.querySelectorAll("#list .row")].map(row => row.textContent);
click("#list .row a");
found.details = document.getElementById("details").textContent;
[...document.querySelectorAll("#stages button")].find(one => one.textContent === "program").click();
click("#list .row a");
found.kernel = document.getElementById("details").textContent;
document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify(found) }));
"""


class GraphPages(ProgramTest):
    def graph(self, *arguments, status=0):
        done = subprocess.run([BUILD / "tools/graph", *map(str, arguments), "--format", "html"], cwd=self.folder, env=support.environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def data(self, page):
        """The data of a page, with the texts of its nodes in place of their numbers: (op, label, scope, types, inputs)."""
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        text = data["texts"].__getitem__
        for stage in data["stages"]:
            stage["nodes"] = [(text(op), text(label), text(scope), [text(one) for one in types], inputs)
                              for op, label, scope, _, _, types, inputs, _, _ in stage["nodes"]]
        return data

    def test_a_page_has_the_graph_after_each_pass_and_the_plan(self):
        page = self.graph(*IRIS, "--mode", "training")
        self.assertNotRegex(page, r"https?:|<link|\bsrc=|@import|url\((?!#)")
        data = self.data(page)
        self.assertEqual([stage["name"] for stage in data["stages"]], ["as built", "prune", "merge", "fold", "program"])
        built, *_, program = (stage["nodes"] for stage in data["stages"])
        self.assertIn(("parameter", "fc1.weight", "fc1", ["float32[30,4]"], []), built)
        text = subprocess.run([BUILD / "tools/graph", *map(str, IRIS), "--mode", "training"], capture_output=True, text=True, check=True).stdout
        self.assertEqual([f"%{id}" for id in range(len(built))], re.findall(r"^(%\d+) =", text, re.M))
        self.assertEqual([op for op, *_ in built], re.findall(r"^%\d+ = (\w+)\(", text, re.M))
        for first, last in ((first, last) for _, _, _, first, last in data["program"]["memory"]):
            self.assertTrue(0 <= first <= last < len(data["program"]["instructions"]))
        self.assertEqual(max(offset + size for _, offset, size, _, _ in data["program"]["memory"]) // 64, (data["program"]["arena"] - 1) // 64)
        uses = {tuple(value): (first, last) for value, _, _, first, last in data["program"]["memory"] if value}
        reads = 0
        for index, (_, ids) in enumerate(data["program"]["instructions"], -data["program"]["prologue"]):
            # the gradients of some ops name inputs that no kernel reads
            for value in (tuple(value) for id in ids if not program[id][0].endswith("_grad") for value in program[id][4]):
                if value in uses and value[0] not in ids:
                    self.assertTrue(uses[value][0] <= index <= uses[value][1], (value, index))
                    reads += uses[value][0] < index
        self.assertGreater(reads, 10)

    def test_a_node_of_the_plan_is_not_overwritten_while_it_is_read(self):
        data = self.data(self.graph(SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28", "--classes", 10, "--mode", "training"))
        uses = [use for use in data["program"]["memory"] if use[2]]
        for i, (a, start, size, first, last) in enumerate(uses):
            for b, other_start, other_size, other_first, other_last in uses[i + 1:]:
                # an instruction may write its output to the memory of an input that it reads last
                if max(first, other_first) < min(last, other_last):
                    self.assertTrue(start + size <= other_start or other_start + other_size <= start, (a, b))

    def test_an_onnx_file_is_shown(self):
        subprocess.run([BUILD / "tools/onnx", "export", *map(str, IRIS), "iris.onnx", "--untrained", "--open-batch"], cwd=self.folder, check=True,
                       env=support.environment(), capture_output=True)
        nodes = self.data(self.graph("iris.onnx", "--batch", 7))["stages"][0]["nodes"]
        self.assertIn(("input", "samples", "", ["float32[7,4]"], []), nodes)
        for option in (["--mode", "training"], ["--set", "model.depth=1"], ["--sample", 4], ["--classes", 3]):
            self.assertRegex(self.graph("iris.onnx", *option, status=2), rf"\Agraph: {option[0]}: an ONNX file .*; leave it out\n\Z")

    @unittest.skipUnless(CHROMIUM, REASON)
    def test_a_browser_shows_all_parts(self):
        page, console = open_page(self.graph(*IRIS, "--mode", "training", "--set", "model.hidden=[30,20,20,20,20,20,20]"), VISIT)
        self.assertEqual(console, [])
        found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', page, re.S)[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        for stage in ("as built", "prune", "merge", "fold", "program", "memory"):
            self.assertGreater(found[stage], 3, stage)
        self.assertIn("[1,30]", found["labels"])
        self.assertEqual(found["overlaps"], 0)
        self.assertGreater(found["opened"], 0)
        self.assertEqual(found["closed"], 0)
        self.assertTrue(found["rows"] and all("matmul" in row and "[1,3]" in row for row in found["rows"]), found["rows"])
        self.assertRegex(found["details"], r"made at: .*iris\.yaml:\d+.*output 0: float32\[1,3\].*inputs.*readers")
        self.assertRegex(found["kernel"], r"kernel: \w+")
        self.assertIn("MiB", found["memory_row"])

    @unittest.skipUnless(CHROMIUM, REASON)
    def test_a_reader_of_two_outputs_is_listed_once(self):
        layers = "[{type: linear, units: 4}, {type: batch_norm}, {type: linear}]"
        page = self.graph(self.write("norm.yaml", f"model: {{name: convnet, layers: {layers}}}\n"), "--sample", 4, "--classes", 3, "--mode", "training")
        page, console = open_page(page, 'choose(stage.nodes.find(node => node.op === "moments"));')
        self.assertEqual(console, [])
        readers = re.findall(r">(\w+ %\d+)</a>", page[page.index("<h2>readers</h2>"):])
        self.assertTrue(any(reader.startswith("normalise %") for reader in readers), readers)
        self.assertEqual(sorted(set(readers)), sorted(readers))

    def test_names_cannot_become_elements_of_the_page(self):
        page = self.graph(self.write("<b>.yaml", "model: {name: mlp, hidden: [3]}\n"), "--sample", 4, "--classes", 3)
        self.assertIn("\\u003cb>.yaml", page)
        self.assertNotIn("<b>", page)


class RunPages(ProgramTest):
    def report(self, folder, status=0):
        done = subprocess.run([SOURCE / "tools/runs", "report", folder], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else (self.folder / folder / "report.html").read_text()

    def facts(self, folder):
        return json.loads((self.folder / folder / "report.json").read_text())

    def test_samples_are_judged_as_evaluate_does(self):
        """The worst samples are all 13 of validation, so that their mean loss is the validation loss."""
        config = self.cnn()
        self.run_one("convnet", *config, "--report", "seen")
        said = self.run_one("convnet", *config, "--evaluate").out
        facts = self.facts("seen")
        losses = [sample["loss"] for sample in facts["worst"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual(sorted(sample["index"] for sample in facts["worst"]), list(range(13)))
        self.assertAlmostEqual(sum(losses) / 13, float(re.search(r"validation loss +(\S+)", said)[1]), delta=1e-4)
        table = [[int(count) for count in line.split()[1:]] for line in said.splitlines()[-3:]]
        self.assertEqual(facts["confusion"], [count for row in table for count in row])
        self.assertEqual(len(self.log("seen/log.jsonl")), 2 * 5 + 2)
        pixels = (self.folder / "digits/t10k-images-idx3-ubyte").read_bytes()[16:]
        for sample in facts["worst"]:
            self.assertEqual(sample["label"], sample["index"] % 3)
            self.assertEqual(bytes.fromhex(sample["picture"]["pixels"]), pixels[100 * sample["index"]:100 * sample["index"] + 100])
        picture = re.search(r'src="data:image/png;base64,([^"]*)"', self.report("seen"))[1]
        png = base64.b64decode(picture)
        rows = zlib.decompress(png[png.index(b"IDAT") + 4:png.index(b"IEND") - 8])
        first = facts["worst"][0]["index"]
        self.assertEqual(b"".join(rows[11 * y + 1:11 * y + 11] for y in range(10)), pixels[100 * first:100 * first + 100])

    @unittest.skipUnless(CHROMIUM, REASON)
    def test_a_browser_shows_a_run_on_augmented_images(self):
        draw_images(self.folder / "shapes")
        self.run_one("convnet", *self.cnn("data={format: image_folder, path: shapes, image_size: 32}", "training.batch_size=6"),
                     "--report", "seen", "--profile", "trace.json")
        page = self.report("seen")
        self.assertNotRegex(page, r"https?:|<link|@import|url\(|Left out")
        shown, console = open_page(page, "document.body.append([...document.images].filter(one => one.naturalWidth !== 32).length + ' broken pictures')")
        self.assertEqual(console, [])
        self.assertIn("0 broken pictures", shown)
        self.assertEqual(len(re.findall("<img", shown)), 6 + 6 * 5)
        for part in ("validation loss", "true \\ predicted", "conv2d", "MiB", "One rank trained"):
            self.assertIn(part, shown)

    def test_parts_without_data_are_left_out_with_the_reason(self):
        self.run_one("mlp", *self.iris("training.epochs=1"), "--report", "seen", "--set", "output.dir=")
        page = self.report("seen")
        for reason in ("the samples are no images of bytes", "the run was started without --profile FILE", "no pictures are shown"):
            self.assertIn(reason, page)
        (self.folder / "seen/report.json").write_text('{"format":"plexaura report 1"}')  # as at the start of a run
        self.assertEqual(self.report("seen").count("it is under way, or was killed before its end"), 7)

    def test_two_ranks_make_one_report(self):
        if not support.HAS_MPI:
            self.skipTest("this build has no MPI")
        self.run_ranks(2, "convnet", *self.cnn(), "--report", "seen")
        self.assertEqual(self.facts("seen")["run"]["ranks"], 2)
        self.assertIn("2 ranks trained", self.report("seen"))

    def test_mistakes(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine/report.json").write_text("{}")
        for words, says in ((["--report", "mine"], "'mine/report.json' exists and contains something other than what --report writes"),
                            (["--report", "seen", "--log", "log"], "--report writes the log to seen/log.jsonl; leave out --log"),
                            (["--report", "seen", "--evaluate"], "--evaluate does not train; leave out --report"),
                            (["--report", "cnn.yaml"], "the folder 'cnn.yaml' cannot be made")):
            self.assertIn(says, self.run_one("convnet", *self.cnn(), *words, status=2).err)

    def test_a_full_disk_is_reported_after_the_last_checkpoint(self):
        said = self.run_one("convnet", *self.cnn("output.dir="), "--report", "seen", status=2, limit="-f 4").err
        self.assertRegex(said, r"cannot write '[^\n]*report.json[^\n]*'")
        self.assertEqual(self.report("seen").count("Left out"), 7)


if __name__ == "__main__":
    support.main()
