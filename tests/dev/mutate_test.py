#!/usr/bin/env python3
"""Tests which faults dev/mutate makes, and that a source with faults works as before until one is switched
on.

usage: mutate_test.py ROOT CXX
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, COMPILER = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(ROOT / "dev/mutate_parts"))

from build import Copy  # noqa: E402
from faults import faults_of, is_accepted, sow  # noqa: E402
from rooms import is_named_after  # noqa: E402

SAMPLE = r"""#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#define TWICE(x) (2 * (x))
#define FUNCTOR(Name, ...) struct Name { int operator()(int a, int b) const { __VA_ARGS__ } };

FUNCTOR(Difference, return a - b;)

struct Size {
  int h = 0;
  int w = 0;
  Size scaled(int factor) && { return {h * factor, w * factor}; }
};

constexpr int limit = 3 + 4;
template <class T, int Width = 2>
T half(T value) {
  return value / Width;  // a comment with a < b
}

int index_of(const std::vector<int>& values, int wanted) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == wanted) return static_cast<int>(i);
  return -1;
}

int main() {
  std::vector<int> values{5, 1, 4};
  std::sort(values.begin(), values.end());
  const Size size = Size{2, 3}.scaled(2);
  int total = size.h > size.w ? size.h : -size.w;
  total += std::max(values[0], values[2]) -
           half<int, 3>(limit);  // on two lines
  const auto difference = [&, minus = Difference()](int a, int b) { return minus(a, b) + total; };
  const std::string text = std::string("x") + std::to_string(difference(8, 3));
  if (text.empty() || !values.empty()) std::printf("%s %d %d\n", text.c_str(), index_of(values, 5), index_of(values, 9));
}

int sum_of_odd(const std::vector<int>& values, int seed) {
  int sum = std::max(2, seed);
  for (const int value : values) {
    if (value % 2 == 0) continue;
    sum += value;
  }
  for (int i = 0; i < 3; ++i) ++sum;
  return sum;
}

int sum_of_all(const int* values, int count) {
  int sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < count; ++i) {
    sum += values[i];
  }
  return sum;
}
"""

# One fault of each kind, with its line.
EXPECTED = {
    (9, "sign", "a - b → a + b"),
    (14, "factor", "h * factor → h / factor"),
    (20, "dropped term", "value / Width → value"),
    (24, "comparison", "i < values.size() → i <= values.size()"),
    (24, "off by one", "0 → 1"),
    (25, "removed guard", "values[i] == wanted → false"),
    (26, "sign", "-1 → 1"),
    (31, "removed statement", "std::sort(values.begin(), values.end()) → "),
    (33, "axis", "size.h → size.w"),
    (33, "condition", "size.h > size.w → true"),
    (34, "sign", "std::max(values[0], values[2]) - half<int, 3>(limit) → std::max(values[0], values[2]) + half<int, 3>(limit)"),
    (34, "min or max", "std::max(values[0], values[2]) → std::min(values[0], values[2])"),
    (36, "swapped arguments", "minus(a, b) → minus(b, a)"),
    (38, "condition", "text.empty() || !values.empty() → text.empty() && !values.empty()"),
    (38, "condition", "!values.empty() → values.empty()"),
    (42, "off by one", "2 → 1"),
    (42, "ignored argument", "seed → std::remove_cvref_t<decltype(seed)>()"),
    (43, "one turn", "for (const int value : values) → the first turn alone"),
    (44, "removed jump", "continue → "),
    (47, "one turn", "for (int i = 0; i < 3; ++i) → the first turn alone"),
    (54, "comparison", "i < count → i <= count"),
    (54, "one turn", "for (int i = 0; i < count; ++i) → the first turn alone"),
}


class MutateTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = Path(self.scratch.name)
        self.faults = faults_of("sample.cpp", SAMPLE)
        for number, fault in enumerate(self.faults, 1):
            fault.number = number

    def compile(self, text, program):
        (self.folder / "sample.cpp").write_text('#include "sample.cpp.sown"\n', encoding="utf-8")
        (self.folder / "sample.cpp.sown").write_text(text, encoding="utf-8")
        command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-fopenmp-simd", "-I", ROOT, "-I", ".", "sample.cpp", "-o", program]
        return subprocess.run(command, cwd=self.folder, env={**os.environ, "LC_ALL": "C"}, text=True, stderr=subprocess.PIPE).stderr

    def run_sample(self, program, number=0):
        return subprocess.run([self.folder / program], env={"PLEXAURA_MUTANT": str(number)}, text=True, capture_output=True).stdout

    def sown(self, faults):
        return sow(SAMPLE, faults, "sample.cpp")

    def test_faults_of_every_kind_are_found_in_their_lines(self):
        found = {(fault.line, fault.kind, fault.edit()) for fault in self.faults}
        self.assertEqual(set(), EXPECTED - found)

    def test_nothing_is_sown_into_directives_types_constants_and_strings(self):
        lines = {fault.line for fault in self.faults}
        self.assertFalse(lines & {1, 6, 7, 17, 18, 22})
        self.assertFalse([fault.edit() for fault in self.faults if '"x"' in fault.edit() or "3>" == fault.before])

    def test_ids_stay_where_lines_move(self):
        moved = faults_of("sample.cpp", "// one more line\n\n" + SAMPLE)
        self.assertEqual([fault.id for fault in self.faults], [fault.id for fault in moved])
        self.assertEqual(len(self.faults), len({fault.id for fault in self.faults}))

    def test_a_source_with_faults_does_the_same_until_one_is_switched_on(self):
        self.assertEqual("", self.compile(SAMPLE, "original"))
        self.assertEqual("", self.compile(self.sown(self.faults), "sown"))
        expected = self.run_sample("original")
        self.assertEqual("x2 2 -1\n", expected)
        self.assertEqual(expected, self.run_sample("sown"))
        sign = next(fault for fault in self.faults if fault.edit() == "a - b → a + b")
        self.assertEqual("x8 2 -1\n", self.run_sample("sown", sign.number))

    def test_a_loop_takes_one_turn_even_if_that_continues(self):
        for limit, expected in (("", "9"), ("    if (i == 4) break;\n", "4")):
            text = f"""#include <cstdio>
int main() {{
  const int left = 3, turn = 4;
  int sum = 0;
  for (int i = 0; i < 6; ++i) {{
    if (i % 2 == 0 && i != 4) continue;
{limit}    if (i % 2 == 1) sum += i + left + turn - 7;
  }}
  std::printf("%d", sum);
}}
"""
            with self.subTest(limit=limit):
                fault = next(fault for fault in faults_of("sample.cpp", text) if fault.kind == "one turn")
                fault.number = 1
                self.assertEqual("", self.compile(sow(text, [fault], "sample.cpp"), "continued"))
                self.assertEqual(expected, self.run_sample("continued"))
                self.assertEqual("0", self.run_sample("continued", 1))

    def test_a_fault_that_does_not_compile_is_named(self):
        bad = next(fault for fault in self.faults if fault.kind == "min or max")
        bad.after = "std::max(values, values[2])"
        copy = Copy(self.folder, self.faults)
        self.assertEqual([bad], copy.named_in(self.compile(self.sown(self.faults), "refused")))

    def test_a_loop_whose_end_the_compiler_refuses_is_named(self):
        fault = next(fault for fault in self.faults if fault.edit() == "for (const int value : values) → the first turn alone")
        copy = Copy(self.folder, [fault])
        self.compile(self.sown([fault]), "sown")
        end_of_loop = 46
        column = (self.folder / "sample.cpp.sown").read_text(encoding="utf-8").splitlines()[end_of_loop + 2].index("break") + 1
        output = f"sample.cpp:{end_of_loop}:{column}: error: break statement used with OpenMP for loop\n"
        self.assertEqual([fault], copy.named_in(output))

    def test_a_fault_that_the_compiler_sees_in_a_header_is_named_by_the_line_it_came_from(self):
        fault = next(fault for fault in self.faults if fault.edit() == "a - b → a + b")
        copy = Copy(self.folder, [fault])
        self.compile(self.sown([fault]), "sown")
        output = ("    inlined from ‘int main()’ at sample.cpp:9:80:\n"
                  "/usr/include/c++/12/array:61:36: error: array subscript 1 is above array bounds\n")
        self.assertEqual([fault], copy.named_in(output))

    def test_an_accepted_edit_is_accepted_everywhere_in_its_file_and_an_id_once(self):
        alike = [fault for fault in self.faults if fault.edit() == "0 → 1"]
        self.assertGreater(len(alike), 1)
        entry = {"file": "sample.cpp", "edit": "0 → 1"}
        self.assertTrue(all(is_accepted(fault, [entry]) for fault in alike))
        self.assertEqual([alike[1]], [fault for fault in alike if is_accepted(fault, [{**entry, "id": alike[1].id}])])
        self.assertFalse(is_accepted(alike[0], [{**entry, "file": "other.cpp"}]))

    def test_nothing_is_sown_into_the_cost_of_shared_work(self):
        text = "void f(int n) {\n  parallel_for(n + 1, n * 3, [&](int i) { g(i, 2 * n); });\n}\n"
        edits = {fault.edit() for fault in faults_of("sample.cpp", text)}
        self.assertLessEqual({"n + 1 → n - 1", "2 * n → 2 / n"}, edits)
        self.assertFalse(edits & {"n * 3 → n / 3", "n * 3 → n", "3 → 4", "3 → 2"})

    def test_each_accepted_entry_accepts_a_fault(self):
        accepted = json.loads((ROOT / "dev/mutate_parts/accepted.json").read_text(encoding="utf-8"))
        faults = {}
        for file in {entry["file"] for entry in accepted}:
            path = ROOT / file
            faults[file] = faults_of(file, path.read_text(encoding="utf-8")) if path.exists() else []
        dead = [entry for entry in accepted if not any(is_accepted(fault, [entry]) for fault in faults[entry["file"]])]
        self.assertEqual([], dead, "remove these entries, or give them the ids that dev/mutate --list prints")

    def test_a_test_belongs_to_the_source_or_folder_of_its_name(self):
        self.assertTrue(is_named_after("ops_tests ops/slice_test.cpp", "core/ops/slice.cpp"))
        self.assertTrue(is_named_after("backends_tests cpu/pool_test.cpp", "backends/cpu/fast/pool/pool_loops.cpp"))
        self.assertTrue(is_named_after("backends_tests fast/slope_test.cpp", "backends/cpu/fast/slopes/slope_loops.cpp"))
        self.assertFalse(is_named_after("ops_tests ops/pool3d_test.cpp", "core/ops/pool2d.cpp"))

    @unittest.skipUnless((ROOT / ".git").exists(), "the files of the tree are those that git knows")
    def test_faults_are_limited_per_source(self):
        command = [ROOT / "dev/mutate", "--list", "--room", "ops", "--per-source", "2"]
        lines = subprocess.run(command, check=True, text=True, capture_output=True).stdout.splitlines()
        count = collections.Counter(line.split()[1].split(":")[0] for line in lines)
        self.assertGreater(len(count), 10)
        self.assertEqual({2}, set(count.values()))

    @unittest.skipUnless((ROOT / ".git").exists(), "the files of the tree are those that git knows")
    def test_the_tool_tells_a_score(self):
        """Nothing is built for a fault that is accepted."""
        accepted = json.loads((ROOT / "dev/mutate_parts/accepted.json").read_text(encoding="utf-8"))
        file = accepted[0]["file"]
        fault = next(fault for fault in faults_of(file, (ROOT / file).read_text(encoding="utf-8")) if is_accepted(fault, accepted))
        command = [ROOT / "dev/mutate", "--only", fault.id, "--folder", self.folder]
        output = subprocess.run(command, check=True, text=True, capture_output=True).stdout
        self.assertIn("score", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
