"""Writes tables of results: on the screen, in Markdown and in CSV, and as plots."""

import csv
import pathlib

from inputs import Mistake


def make_folder(folder):
    try:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"cannot make the folder '{folder}': {error.strerror}; name another place") from error


def write(path, text):
    try:
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"cannot write '{error.filename}': {error.strerror}; name another place") from error


def write_csv(path, rows):
    """Writes rows, which are dictionaries with equal keys."""

    class Lines(list):
        def write(self, line):
            self.append(line)

    lines = Lines()
    writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(path, "".join(lines))


def table(head, rows):
    """Returns a table in Markdown whose columns are aligned in the text."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]

    def line(row):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"

    return "\n".join([line(cells[0]), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, cells[1:])]) + "\n"


def seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.4g} {unit}"
    return f"{value * 1e6:.3g} µs"


def duration(value):
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * length:
            return f"{value / length:.3g} {unit}"
    return seconds(value)


def percent(value):
    return f"{value * 100:.1f} %"


def rate(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
