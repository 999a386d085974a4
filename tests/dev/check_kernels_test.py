"""Tests that dev/check_kernels finds what exceeds a budget, in machine code that a script prints in place of
cuobjdump."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
NAME = "_ZN8plexaura4cuda10run_kernelINS0_11ClearKernelINS_8bfloat16EEEEEvT_"
COLUMNS = "source kernel registers stack doubles elements bytes instructions loads stores"
CODE = ["MOV R1, c[0x0][0x28]", "LDG.E.128 R4, desc[UR4][R2.64]", "FADD R4, R4, R5", "STG.E.128 desc[UR4][R2.64], R4",
        "@P0 BRA 0x10", "EXIT"]
DOUBLES = [*CODE[:2], "F2F.F64.F32 R4, R4", *CODE[2:]]
KERNEL = "copies.cu: ClearKernel<bfloat16> "


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class CheckKernels(unittest.TestCase):
    def check(self, budget, code=CODE, registers=32, stack=0, columns=COLUMNS, names=(NAME, NAME), demangler=None,
              sources=("copies",), options=()):
        """Returns the status and the output. `names` are those of the kernels whose resources and whose code are printed."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            usage = f" Function {names[0]}:\n  REG:{registers} STACK:{stack} SHARED:0 LOCAL:0 CONSTANT[0]:8 TEXTURE:0"
            lines = "\n".join(f"        /*{16 * i:04x}*/    {text} ;   /* 0x0 */" for i, text in enumerate(code))
            script(folder / "cuobjdump", f"case $* in *-res-usage*) cat << E\n{usage}\nE\n;;\n"
                                         f"*) cat << E\n\t\tFunction : {names[1]}\n{lines}\nE\n;; esac")
            if demangler:
                script(folder / "c++filt", demangler)
            (folder / "copies.o").touch()
            for source in sources:
                (folder / f"{source}.cu").touch()
            (folder / "budgets").write_text(f"{columns}\n{budget}\n")
            done = subprocess.run([ROOT / "dev/check_kernels", folder, "--cuobjdump", folder / "cuobjdump", "--budgets",
                                   folder / "budgets", "--kernels", folder, *options], capture_output=True, text=True,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            return done.returncode, done.stdout + done.stderr

    def finds(self, sentence, *given, **named):
        status, output = self.check(*given, **named)
        self.assertIn(sentence, output)
        self.assertEqual(status, 1)

    def stops(self, sentence, *given, **named):
        status, output = self.check(*given, **named)
        self.assertIn(sentence, output)
        self.assertEqual((status, len(output.splitlines())), (2, 1), output)

    def test_a_kernel_within_its_budget_passes(self):
        self.assertEqual(self.check("copies Clear 32 - - 8 4 0.5 1 1"), (0, "check_kernels: 1 kernels for sm_90, 0 faults\n"))

    def test_what_exceeds_a_budget_is_found(self):
        self.finds(KERNEL + "needs 40 registers; its budget is 32", "copies Clear 32 - - - - - - -", registers=40)
        self.finds(KERNEL + "needs 8 bytes of stack; its budget is 0", "copies Clear - - - - - - - -", stack=8)
        self.finds(KERNEL + "needs 4 instructions an element; its budget is 3", "copies Clear - - - 1 32 3 - -")
        narrow = [text.replace("E.128", "E.U16") for text in CODE]
        self.finds(KERNEL + "has 0 16-byte loads in its loop in place of 1", "copies Clear - - - 1 4 9 1 -", narrow)
        self.finds(KERNEL + "has 0 16-byte stores in its loop in place of 1", "copies Clear - - - 1 4 9 - 1", narrow)

    def test_doubles_are_found_where_the_name_or_the_table_excludes_them(self):
        fault = KERNEL + "needs 1 instructions in double; its budget is 0"
        self.finds(fault, "copies Clear - - - - - - - -", DOUBLES)
        self.finds(fault, "copies . - - 1 - - - - -\ncopies Clear - - 0 - - - - -", DOUBLES)
        self.assertEqual(self.check("copies Clear - - 1 - - - - -", DOUBLES)[0], 0)
        wide = NAME.replace("NS_8bfloat16E", "f")
        self.assertEqual(self.check("copies Clear - - - - - - - -", DOUBLES, names=(wide, wide))[0], 0)
        self.finds("ClearKernel<float> needs 1 instructions in double", "copies Clear - - 0 - - - - -", DOUBLES,
                   names=(wide, wide))

    def test_another_number_of_elements_than_the_loop_computes_is_found(self):
        self.finds(KERNEL + "moves 32 bytes in a round of its loop in place of 4 for each of 16 elements",
                   "copies Clear - - - 16 4 9 - -")

    def test_lines_without_a_kernel_and_sources_without_a_line_are_found(self):
        self.finds("no kernel matches 'Move' (line 2 of the budgets)", "copies Move - - - - - - - -")
        self.finds("gather.cu has no line in the budgets", "copies . - - - - - - - -", sources=("copies", "gather"))

    def test_later_lines_replace_earlier_ones(self):
        self.assertEqual(self.check("copies . 16 - - 8 4 0.1 2 2\ncopies Clear 32 - - 8 4 0.5 1 1")[0], 0)
        self.finds(KERNEL + "needs 0.5 instructions an element; its budget is 0.1",
                   "copies . 32 - - 8 4 0.5 1 1\ncopies Clear - - - 8 4 0.1 - -")

    def test_the_least_time_is_that_of_what_limits_a_kernel(self):
        def last_cell(device, code=CODE, registers=32, budget="8 4"):
            status, output = self.check(f"copies Clear - - - {budget} 99 - -", code, registers, options=("--device", device))
            self.assertEqual(status, 0, output)
            return output.splitlines()[0].split("\t")[-1]

        # 32 bytes for 8 elements, at 3.0 and 4.3 TB/s.
        self.assertEqual(last_cell("h100"), "1.33 ms by memory")
        self.assertEqual(last_cell("h200"), "0.93 ms by memory")
        # 304 instructions for 8 elements, at 132 * 128 in a clock of 1.755 GHz.
        self.assertEqual(last_cell("h200", [*CODE[:3], *["FADD R4, R4, R5"] * 300, *CODE[3:]]), "1.28 ms by issue")
        # One element in a round of 256 threads on a multiprocessor, each of which waits for 650 ns.
        narrow = [text.replace("E.128", "E.U8") for text in CODE]
        self.assertEqual(last_cell("h200", narrow, 255, "1 2"), "19.24 ms by waiting")

    def test_a_device_of_another_architecture_ends_with_status_2(self):
        self.stops("--device is 'a100'; the machine code is that of sm_90, so write one of: h100, h200", "copies Clear - - - - - - - -",
                   options=("--device", "a100"))

    def test_a_table_that_cannot_be_read_ends_with_status_2(self):
        for line in ("copies Clear 32", "copies ( - - - - - - - -", "moves . - - - - - - - -"):
            self.stops("", line)
        self.stops("budgets:2: registers is 'many'; write a number or '-'", "copies Clear many - - - - - - -")
        self.stops("budgets:2: registers is -1; write a number from 0 to 999999", "copies Clear -1 - - - - - - -")
        self.stops("budgets:2: elements have no effect", "copies Clear - - - 8 4 - - -")
        self.stops("budgets:2: elements have no effect", "copies Clear - - - - - 3 - -")
        self.stops("budgets:2: bytes have no effect", "copies Clear - - - 8 - 3 - -")
        self.stops("budgets:2: bytes have no effect", "copies Clear - - - - 4 - - -")
        self.stops("budgets:2: a round of a loop computes no element", "copies Clear - - - 0 4 3 - -")
        self.stops("budgets:1: the columns are source kernel", "", columns="source kernel")
        self.stops("budgets:1: the columns are", "", columns=COLUMNS.replace("loads", "lods"))
        self.stops("the table has no line", "")

    def test_code_that_cannot_be_read_ends_with_status_2(self):
        line = "copies Clear - - - - - - - -"
        self.stops("has 0 instructions and no EXIT", line, [])
        self.stops("has 5 instructions and no EXIT", line, CODE[:-1])
        self.stops("cuobjdump -res-usage printed nothing about the kernel", line, names=("other", NAME))
        self.stops("c++filt printed 2 names for 1 kernels", line, demangler="echo a; echo b")
        self.stops("cuobjdump -sass printed no code", line, names=(f"other:\n  REG:1 STACK:0 SHARED:0 LOCAL:0\n Function {NAME}", NAME))


if __name__ == "__main__":
    unittest.main()
