"""The table of the registers, bytes and instructions that kernels may use, and its comparison with those that they use."""

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
    doubles: int | None
    elements: int | None
    bytes: float | None
    instructions: float | None
    loads: int | None
    stores: int | None

    def matches(self, kernel: Kernel):
        return re.search(self.kernel, kernel.name) is not None


COLUMNS = [field.name for field in dataclasses.fields(Budget)][1:]


@dataclasses.dataclass
class Limits:
    """The limits of one kernel: for each column those of the last line that matches it and has a number there."""

    kernel: Kernel
    budgets: list

    def of(self, column, other=None):
        numbers = [getattr(budget, column) for budget in self.budgets if budget.matches(self.kernel)]
        return next((number for number in reversed(numbers) if number is not None), other)

    def loop(self):
        return self.kernel.loop(128 if self.of("loads") or self.of("stores") else 0)

    def text(self):
        loop, elements = self.loop(), self.of("elements")
        return "\t".join((self.kernel.name, f"{len(loop.instructions) / elements:.1f} instructions an element",
                          f"{loop.moved() / elements:g} bytes", f"{self.kernel.registers} registers",
                          f"occupancy {self.kernel.occupancy:.0%}"))

    def faults(self):
        name = self.kernel.name
        needs = [("registers", self.kernel.registers, self.of("registers")),
                 ("bytes of stack", self.kernel.stack, self.of("stack", 0)),
                 ("instructions in double", self.kernel.count(DOUBLES),
                  self.of("doubles", 0 if "float16" in name else None))]
        faults = []
        if elements := self.of("elements"):
            loop = self.loop()
            needs.append(("instructions an element", len(loop.instructions) / elements, self.of("instructions")))
            if loop.moved() != self.of("bytes") * elements:
                faults.append(f"{name} moves {loop.moved()} bytes in a round of its loop in place of {self.of('bytes'):g} "
                              f"for each of {elements} elements, so its loop computes another number of elements")
            for what, found in (("loads", loop.loads), ("stores", loop.stores)):
                if found.get(128, 0) < self.of(what, 0):
                    faults.append(f"{name} has {found.get(128, 0)} 16-byte {what} in its loop in place of {self.of(what)}")
        return faults + [f"{name} needs {found:g} {what}; its budget is {most:g}" for what, found, most in needs
                         if most is not None and found > most]


def read_budgets(path):
    budgets, names = [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if names is None:
                names = line.split()
                if names != COLUMNS:
                    raise ValueError(f"the columns are {' '.join(names)}; write {' '.join(COLUMNS)}")
            else:
                budgets.append(budget_of(number, line.split()))
        except (ValueError, re.error) as error:
            raise ValueError(f"{path}:{number}: {error}") from None
    if not budgets:
        raise ValueError(f"{path}: the table has no line; write a header and a line for each source of kernels")
    return budgets


def budget_of(line, cells):
    if len(cells) != len(COLUMNS):
        raise ValueError(f"the line has {len(cells)} words; the table has {len(COLUMNS)} columns")
    re.compile(cells[1])
    budget = Budget(line, *cells[:2], *map(number_of, COLUMNS[2:], cells[2:]))
    has_limit = any(limit is not None for limit in (budget.instructions, budget.loads, budget.stores))
    if (budget.elements is not None) != has_limit:
        raise ValueError("elements have no effect without instructions, loads or stores, which need elements; write both or neither")
    if (budget.bytes is not None) != has_limit:
        raise ValueError("bytes have no effect without elements, which need bytes; write both or neither")
    if budget.elements == 0:
        raise ValueError("a round of a loop computes no element; write a number of elements from 1 on")
    return budget


def number_of(column, cell):
    if cell == "-":
        return None
    try:
        number = float(cell) if column in ("bytes", "instructions") else int(cell)
    except ValueError:
        raise ValueError(f"{column} is '{cell}'; write a number or '-'") from None
    if not 0 <= number < 1e6:
        raise ValueError(f"{column} is {cell}; write a number from 0 to 999999")
    return number


def faults_of(kernels, budgets):
    """Returns a sentence for each limit that a kernel exceeds, and for each line that no kernel matches."""
    faults = [f"no kernel matches '{budget.kernel}' (line {budget.line} of the budgets)" for budget in budgets
              if not any(budget.matches(kernel) for kernel in kernels)]
    for kernel in kernels:
        faults += Limits(kernel, budgets).faults()
    return faults
