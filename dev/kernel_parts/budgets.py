"""The table of what the kernels may need, and the comparison with what they need."""

import dataclasses
import re

from machine_code import Kernel

DOUBLES = r"(D(ADD|MUL|FMA|SETP|MNMX)|[FI]2F\S*\.F64|F2[FI]\S*\.F64)\b"


@dataclasses.dataclass
class Budget:
    """A line of the table. None: the line says nothing about it."""

    line: int
    source: str
    kernel: str
    registers: int | None
    stack: int | None
    doubles: bool | None
    elements: int | None
    instructions: int | None
    loads: int | None
    stores: int | None

    def matches(self, kernel: Kernel):
        return re.search(self.kernel, kernel.name) is not None

    def loop_of(self, kernel: Kernel):
        return kernel.loop(128 if self.loads or self.stores else 0)

    def text_of(self, kernel: Kernel):
        loop = self.loop_of(kernel)
        return "\t".join((kernel.name, f"{len(loop.instructions) / self.elements:.1f} instructions an element",
                          f"{loop.moved() / self.elements:g} bytes", f"{kernel.registers} registers",
                          f"occupancy {kernel.occupancy:.0%}"))


def read_budgets(path):
    budgets = []
    names = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split()
        if names is None:
            names = cells
            continue
        if len(cells) != len(names):
            raise ValueError(f"{path}:{number}: the line has {len(cells)} words; the table has {len(names)} columns")
        values = dict(zip(names, cells))
        try:
            numbers = {name: None if values[name] == "-" else int(values[name]) for name in names[2:]}
            re.compile(values["kernel"])
        except (ValueError, re.error) as error:
            raise ValueError(f"{path}:{number}: {error}") from None
        if numbers["doubles"] is not None:
            numbers["doubles"] = bool(numbers["doubles"])
        budgets.append(Budget(number, values["source"], values["kernel"], **numbers))
    return budgets


def faults_of(kernels, budgets):
    """Returns a sentence for each kernel that needs more than its budget. The last line that matches a kernel and
    has a number in a column is the one that counts."""
    faults = [f"no kernel matches '{budget.kernel}' (line {budget.line} of the budgets)" for budget in budgets
              if not any(budget.matches(kernel) for kernel in kernels)]
    for kernel in kernels:
        own = [budget for budget in budgets if budget.matches(kernel)]

        def limit(column, other=None):
            return next((getattr(budget, column) for budget in reversed(own) if getattr(budget, column) is not None), other)

        needs = [("registers", kernel.registers, limit("registers")), ("bytes of stack", kernel.stack, limit("stack", 0))]
        if "float16" in kernel.name and not limit("doubles", False):
            needs.append(("instructions in double", kernel.count(DOUBLES), 0))
        for budget in own:
            if budget.elements is None:
                continue
            loop = budget.loop_of(kernel)
            needs.append(("instructions an element", len(loop.instructions) / budget.elements, budget.instructions))
            for what, found, wanted in (("loads", loop.loads, budget.loads), ("stores", loop.stores, budget.stores)):
                if found.get(128, 0) < (wanted or 0):
                    faults.append(f"{kernel.name} has {found.get(128, 0)} 16-byte {what} in its loop in place of {wanted}")
        faults += [f"{kernel.name} needs {found:g} {what}; its budget is {most}" for what, found, most in needs
                   if most is not None and found > most]
    return faults
