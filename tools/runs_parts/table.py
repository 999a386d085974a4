"""The table of runs: a row for each, with its best and last figures."""

import math

from logs import metrics_of, number_of
from printing import printable


def columns(runs):
    """Returns the head and the rows, as texts."""
    metrics = metrics_of(runs, "epochs", "val_")
    head = ["run", "epochs", "steps", "train loss", "validation loss", *(f"best {name}" for name in metrics), "samples/s", "seconds"]
    return head, [[run.name, str(len(run.epochs)), str(run.steps[-1]["step"] if run.steps else run.epochs[-1]["step"]),
                   figure(last(run.epochs, "train_loss")), figure(last(run.epochs, "val_loss")), *(best(run, name) for name in metrics),
                   figure(median([number_of(step.get("images_per_second")) for step in run.steps])),
                   figure(sum(number_of(epoch.get("seconds")) for epoch in run.epochs))] for run in runs]


def last(entries, key):
    return number_of(entries[-1].get(key)) if entries else math.nan


def best(run, metric):
    """Returns a text such as "0.9833 (epoch 12)". Returns "–" if the log does not list the metrics of which more is
    better."""
    rising = run.epochs[-1].get("rising") if run.epochs else None
    if not isinstance(rising, list):
        return "–"
    values = [(number_of(entry.get(f"val_{metric}")), entry["epoch"]) for entry in run.epochs]
    values = [(value, epoch) for value, epoch in values if not math.isnan(value)]
    if not values:
        return "–"
    value, epoch = max(values, key=lambda found: found[0]) if metric in rising else min(values, key=lambda found: found[0])
    return f"{figure(value)} (epoch {epoch + 1})"


def figure(value):
    return "–" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def median(values):
    known = sorted(value for value in values if not math.isnan(value))
    return known[len(known) // 2] if known else math.nan


def lines_of(runs):
    """Returns the lines of the table for a terminal."""
    return aligned(*columns(runs))


def aligned(head, rows):
    """Returns the rows, the head first, as lines: the first column to the left, all others to the right."""
    head, rows = [printable(cell) for cell in head], [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return lines
