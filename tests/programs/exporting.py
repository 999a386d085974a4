"""Tests tools/onnx: it exports models to ONNX files, runs these, and checks them."""

import array
import math
import re
import struct
import subprocess

import support
from support import BUILD, SOURCE, ProgramTest

SAMPLES = [[0.5, -1.0, 0.25, 2.0], [-0.5, 0.0, 1.5, -2.0]]


def field(number, value):
    """Returns one field of a message in the format of ONNX files."""
    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(rows):
    elements = struct.pack(f"<{sum(map(len, rows))}f", *(x for row in rows for x in row))
    return field(1, len(rows)) + field(1, len(rows[0])) + field(2, 1) + field(9, elements)


def npy(rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{sum(map(len, rows))}f", *(x for row in rows for x in row))


def read_npy(path):
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    shape = [int(n) for n in re.search(rb"'shape': \((\d+), (\d+)\)", data[10:10 + size]).groups()]
    elements = array.array("f", data[10 + size:])
    return [list(elements[i * shape[1]:(i + 1) * shape[1]]) for i in range(shape[0])]


class Exporting(ProgramTest):
    def onnx(self, *arguments, status=0):
        done = subprocess.run([BUILD / "tools/onnx", *map(str, arguments)], cwd=self.folder, env=support.environment(),
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if status:
            self.assertRegex(done.stderr, r"\Aonnx: [^\n]*\n\Z")
        return done.stderr if status else done.stdout

    def perceptron(self, row, weights):
        """Computes what the model of iris.yaml computes for a row."""
        for layer in (1, 2, 3):
            weight, bias = weights[f"fc{layer}.weight"], weights[f"fc{layer}.bias"]
            width = len(row)
            row = [sum(x * w for x, w in zip(row, weight[i * width:(i + 1) * width])) + bias[i] for i in range(len(bias))]
            row = row if layer == 3 else [math.tanh(x) for x in row]
        return row

    def test_a_trained_model_computes_the_same_in_its_file(self):
        arguments = self.iris("training.epochs=1", "output.dir=run")
        self.run_one("mlp", *arguments)
        self.assertEqual(self.onnx("export", *arguments, "iris.onnx", "--batch", 2),
                         "iris.onnx: samples float32[2,4] -> outputs float32[2,3]\n")
        (self.folder / "samples.npy").write_bytes(npy(SAMPLES))
        said = self.onnx("run", "iris.onnx", "--input", "samples=samples.npy", "--save", "out")
        self.assertRegex(said, r"\Ainput samples float32\[2,4\]: given\noutput outputs float32\[2,3\]:( \S+){6}\n\Z")
        found = read_npy(self.folder / "out/outputs.npy")
        weights = {name: list(values) for name, values in self.weights("run").items()}
        self.onnx("export", *arguments, "one.onnx", "--batch", 1)
        refused = self.onnx("run", "one.onnx", "--input", "samples=samples.npy", status=2)
        self.assertIn("the input samples must be [1,4] and is [2,4]; give that shape, or export with --open-batch", refused)
        for row, outputs in zip(SAMPLES, found):
            for expected, output in zip(self.perceptron(row, weights), outputs):
                self.assertAlmostEqual(expected, output, delta=1e-5)
        self.onnx("export", *self.iris(), "named.onnx", "--batch", 2, "--weights", self.checkpoint("run") / "weights.safetensors")
        self.assertEqual((self.folder / "named.onnx").read_bytes(), (self.folder / "iris.onnx").read_bytes())

    def test_a_file_for_any_number_of_samples(self):
        cnn = [SOURCE / "models/mnist_cnn.yaml", "--sample", "1,28,28", "--classes", 10, "--untrained"]
        self.assertEqual(self.onnx("export", *cnn, "cnn.onnx", "--open-batch"),
                         "cnn.onnx: samples float32[N,1,28,28] -> outputs float32[N,10]\n")
        for samples in (1, 3):
            self.assertIn(f"output outputs float32[{samples},10]: ", self.onnx("run", "cnn.onnx", "--open", samples))
        lstm = [SOURCE / "models/mnist_lstm.yaml", "--sample", "1,28,28", "--classes", 10, "--untrained"]
        self.onnx("export", *lstm, "lstm.onnx", "--open-batch")
        self.assertIn("output outputs float32[3,10]: ", self.onnx("run", "lstm.onnx", "--open", 3))

    def test_weights_in_a_file_beside_the_model(self):
        iris = [SOURCE / "models/iris.yaml", "--sample", 4, "--classes", 3, "--untrained"]
        self.onnx("export", *iris, "inside.onnx", "--open-batch")
        self.onnx("export", *iris, "out.onnx", "--open-batch", "--external")
        self.assertLess((self.folder / "out.onnx").stat().st_size, (self.folder / "inside.onnx").stat().st_size)
        [weights] = self.folder.glob("out.onnx.*.data")
        self.assertEqual(weights.stat().st_size % 4096, 3 * 4)  # the last bias
        self.assertEqual(list(self.folder.glob("inside.onnx.*.data")), [])
        self.assertEqual(self.onnx("run", "out.onnx", "--open", 5), self.onnx("run", "inside.onnx", "--open", 5))
        weights.unlink()
        self.assertRegex(self.onnx("run", "out.onnx", status=2), f"out.onnx: the tensor 'fc1.weight': .*{weights.name}")

    def test_weights_of_another_model_are_refused(self):
        self.run_one("mlp", *self.iris("training.epochs=1", "output.dir=run"))
        said = self.onnx("export", *self.iris("output.dir=run", "model.activation=relu"), "iris.onnx", status=2)
        self.assertRegex(said, 'was made with model.activation "tanh" and now it is "relu"; give the same')
        self.assertFalse((self.folder / "iris.onnx").exists())
        said = self.onnx("export", *self.iris("model.hidden=[3]"), "iris.onnx", "--weights", self.checkpoint("run") / "weights.safetensors", status=2)
        self.assertNotIn("skip", said)

    def test_files_that_are_no_models_or_say_too_little(self):
        def relu(value_type, output="y"):
            """A file with one node. `value_type` is the type of its input x."""
            node = field(1, "x") + field(2, "y") + field(4, "Relu")
            graph = field(1, node) + field(11, field(1, "x") + field(2, field(1, value_type))) + field(12, field(1, output))
            return field(7, graph) + field(8, field(2, 13))

        def check(content, says, *arguments):
            (self.folder / "odd.onnx").write_bytes(content)
            for command in (["run", "odd.onnx", *arguments], ["check", "odd.onnx"]):
                self.assertIn(says, self.onnx(*command, status=2))

        check(b"", "odd.onnx: it is no ONNX model, for it has no graph; name another file")
        check(b"hello", "odd.onnx: it is damaged, incomplete, or of another format: field 13 is of an unknown kind; copy or export it again")
        whole = relu(field(1, 1) + field(2, field(1, field(1, 3))))
        check(whole[:-20], "odd.onnx: it is damaged, incomplete, or of another format: it ends within a field; copy or export it again")
        (self.folder / "odd.onnx").write_bytes(relu(field(1, 1) + field(2, field(1, field(1, 3))), "z"))
        self.assertIn("odd.onnx: the outputs: the value 'z' is not made by any node before", self.onnx("run", "odd.onnx", status=2))
        (self.folder / "odd.onnx").write_bytes(relu(field(1, 1)))
        self.assertIn("odd.onnx: it does not say the shape of the input 'x', so no random value can be made; give a value with --input x=FILE.npy",
                      self.onnx("run", "odd.onnx", status=2))
        (self.folder / "x.npy").write_bytes(npy(SAMPLES))
        self.assertIn("output y float32[2,4]: 0.5 0 0.25 2 0 0 1.5 0\n", self.onnx("run", "odd.onnx", "--input", "x=x.npy"))
        drawn = subprocess.run([BUILD / "tools/graph", "odd.onnx"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual((drawn.returncode, drawn.stdout), (2, ""))
        self.assertIn("graph: odd.onnx: it does not say the shape of the input 'x', for which the graph would be built; export it with shapes", drawn.stderr)
        (self.folder / "odd.onnx").write_bytes(relu(field(1, 1) + field(2, b"")))
        self.assertIn("input x float32[]: random", self.onnx("run", "odd.onnx"))

    def test_a_sample_has_elements(self):
        said = self.onnx("export", SOURCE / "models/mnist_cnn.yaml", "--sample", "0,28,28", "--classes", 10, "--untrained", "cnn.onnx", status=2)
        self.assertIn("--sample: '0' must be a whole number from 1 to 1000000000", said)
        self.assertFalse((self.folder / "cnn.onnx").exists())

    def test_stored_results_are_compared(self):
        iris = [SOURCE / "models/iris.yaml", "--sample", 4, "--classes", 3]
        folder = self.folder / "case/test_data_set_0"
        folder.mkdir(parents=True)
        self.onnx("export", *iris, "case/model.onnx", "--untrained", "--batch", 2)
        (folder / "input_0.pb").write_bytes(tensor(SAMPLES))
        self.onnx("run", "case/model.onnx", "--input", f"samples={folder}/input_0.pb", "--save", "out")
        outputs = read_npy(self.folder / "out/outputs.npy")
        (folder / "output_0.pb").write_bytes(tensor(outputs))
        self.assertEqual(self.onnx("check", "case"), "ops: Add 3, Gemm 3, Tanh 2\nall of them are supported\n"
                         "test_data_set_0: the outputs are those that are stored; the largest difference is 0\n")
        outputs[1][2] += 0.5
        (folder / "output_0.pb").write_bytes(tensor(outputs))
        self.assertRegex(self.onnx("check", "case", status=1), r"case/test_data_set_0: output 0 \('outputs'\): element 5 is \S+, not ")

    def test_ops_that_are_missing(self):
        nodes = [field(1, field(1, "x") + field(2, "y") + field(3, "first") + field(4, "Sinus")),
                 field(1, field(1, "y") + field(2, "z") + field(3, "second") + field(4, "Cosinus"))]
        value = field(2, field(1, field(1, 1) + field(2, field(1, field(1, 4)))))
        graph = b"".join(nodes) + field(11, field(1, "x") + value) + field(12, field(1, "z") + value)
        (self.folder / "odd.onnx").write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 18)))
        said = self.onnx("check", "odd.onnx", status=2)
        self.assertEqual(said, "onnx: odd.onnx: these ops are not supported: Cosinus (node 'second'); Sinus (node 'first'); replace them before the export\n")

    def test_random_inputs_are_the_same_again(self):
        self.onnx("export", SOURCE / "models/throws.yaml", "throws.onnx", "--sample", 3, "--classes", 3, "--untrained")
        said = self.onnx("run", "throws.onnx")
        self.assertEqual(self.onnx("run", "throws.onnx", "--seed", 1), said)
        self.assertNotEqual(self.onnx("run", "throws.onnx", "--seed", 2).splitlines()[1], said.splitlines()[1])

    def test_what_is_wrong(self):
        iris = [SOURCE / "models/iris.yaml", "--sample", 4, "--classes", 3]
        self.onnx("export", *iris, "iris.onnx", "--untrained")
        (self.folder / "samples.npy").write_bytes(npy([[1.0, 2.0]]))
        (self.folder / "cut.npy").write_bytes(npy(SAMPLES)[:-1])
        (self.folder / "huge.npy").write_bytes(npy(SAMPLES).replace(b"(2, 4)", b"(2000000000, 400000000)"))
        (self.folder / "bare.npy").write_bytes(b"\x93NUMPY\x01\x00\x09\x00{'descr':")
        (self.folder / "samples.txt").write_text("1 2 3 4")
        (self.folder / "empty").mkdir()
        run = ["run", "iris.onnx", "--input"]
        for command, says in (
                ([], "A subcommand is required; see --help"),
                (["export"], "FILE.yaml is required; see --help"),
                (["export", *iris], "OUT.onnx is required; see --help"),
                (["export", *iris, "out.onnx", "--set", "output.dir=none"], "there are no weights to export; name a file with --weights, or in "
                 "output.dir a folder with a checkpoint, or export initial values with --untrained"),
                (["export", *iris, "out.onnx", "--weights", "w", "--untrained"], "--untrained exports initial values, and --weights names others; give one of them"),
                (["export", *iris, "out.onnx", "--weights", "none.safetensors"], "none.safetensors"),
                (["export", *iris, "none/out.onnx", "--untrained"], "none/out.onnx"),
                (["export", *iris, "out.onnx", "--untrained", "--batch", 2, "--open-batch"], "batch excludes --"),
                (["run", "none.onnx"], "cannot read 'none.onnx'"),
                (["run", "samples.txt"], "samples.txt: "),
                ([*run, "samples"], "--input: 'samples' must be NAME=FILE, such as samples=samples.npy"),
                ([*run, "samples=samples.txt"], "samples.txt: its name must end in .npy (numpy) or .pb (a tensor of ONNX)"),
                ([*run, "samples=cut.npy"], "cut.npy: it has 31 bytes of elements, but float32[2,4] needs 32"),
                ([*run, "samples=huge.npy"], "huge.npy: "),
                ([*run, "samples=bare.npy"], "bare.npy: its header is not one of numpy"),
                ([*run, "sampels=samples.npy"], "iris.onnx: there is no input 'sampels'"),
                ([*run, "samples=samples.npy"], "the input samples must be [1,4] and is [1,2]; give that shape, or export with --open-batch"),
                (["run", "iris.onnx", "--backend", "none"], "none"),
                (["run", "iris.onnx", "--save", "samples.txt/out"], "samples.txt/out: the folder cannot be made: "),
                (["check", "empty"], "empty: it has 0 files whose names end in .onnx; a folder to check has one, or name the file"),
                (["check", "none"], "cannot read 'none'")):
            self.assertIn(says, self.onnx(*command, status=2))


if __name__ == "__main__":
    support.main()
