"""Tests that dev/check_kernels finds what exceeds a budget, in machine code that a script prints in place of
cuobjdump."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
NAME = "_ZN8plexaura4cuda10run_kernelINS0_11ClearKernelINS_8bfloat16EEEEEvT_"
COLUMNS = "source kernel registers stack doubles elements instructions loads stores"
CODE = ["MOV R1, c[0x0][0x28]", "LDG.E.128 R4, desc[UR4][R2.64]", "FADD R4, R4, R5", "STG.E.128 desc[UR4][R2.64], R4",
        "@P0 BRA 0x10", "EXIT"]


class CheckKernels(unittest.TestCase):
    def check(self, budget, code=CODE, registers=32, stack=0):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            usage = f" Function {NAME}:\n  REG:{registers} STACK:{stack} SHARED:0 LOCAL:0 CONSTANT[0]:8 TEXTURE:0"
            lines = "\n".join(f"        /*{16 * i:04x}*/    {text} ;   /* 0x0 */" for i, text in enumerate(code))
            (folder / "cuobjdump").write_text(f"#!/bin/sh\ncase $* in *-res-usage*) cat << E\n{usage}\nE\n;;\n"
                                              f"*) cat << E\n\t\tFunction : {NAME}\n{lines}\nE\n;; esac\n")
            (folder / "cuobjdump").chmod(0o755)
            (folder / "copies.o").touch()
            (folder / "budgets").write_text(f"{COLUMNS}\n{budget}\n")
            done = subprocess.run([ROOT / "dev/check_kernels", folder, "--cuobjdump", folder / "cuobjdump", "--budgets",
                                   folder / "budgets"], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def finds(self, sentence, *given, **named):
        status, output = self.check(*given, **named)
        self.assertIn(sentence, output)
        self.assertEqual(status, 1)

    def test_a_kernel_within_its_budget_passes(self):
        self.assertEqual(self.check("copies Clear 32 - - 8 1 1 1"), (0, "check_kernels: 1 kernels for sm_90, 0 faults\n"))

    def test_what_exceeds_a_budget_is_found(self):
        kernel = "copies.cu: ClearKernel<bfloat16> "
        self.finds(kernel + "needs 40 registers; its budget is 32", "copies Clear 32 - - - - - -", registers=40)
        self.finds(kernel + "needs 8 bytes of stack; its budget is 0", "copies Clear - - - - - - -", stack=8)
        self.finds(kernel + "needs 1 instructions in double; its budget is 0", "copies Clear - - - - - - -",
                   [*CODE[:2], "F2F.F64.F32 R4, R4", *CODE[2:]])
        self.finds(kernel + "needs 4 instructions an element; its budget is 3", "copies Clear - - - 1 3 - -")
        narrow = [text.replace("E.128", "E.U16") for text in CODE]
        self.finds(kernel + "has 0 16-byte loads in its loop in place of 1", "copies Clear - - - 8 9 1 -", narrow)
        self.finds(kernel + "has 0 16-byte stores in its loop in place of 1", "copies Clear - - - 8 9 - 1", narrow)

    def test_a_line_without_a_kernel_is_found(self):
        self.finds("no kernel matches 'Move' (line 2 of the budgets)", "copies Move - - - - - - -")

    def test_later_lines_replace_earlier_ones(self):
        self.assertEqual(self.check("copies . 16 - - - - - -\ncopies Clear 32 - - - - - -")[0], 0)

    def test_a_table_that_cannot_be_read_ends_with_status_2(self):
        for line in ("copies Clear 32", "copies Clear many - - - - - -", "copies ( - - - - - - -", "moves . - - - - - - -"):
            status, output = self.check(line)
            self.assertEqual((status, len(output.splitlines())), (2, 1), output)


if __name__ == "__main__":
    unittest.main()
