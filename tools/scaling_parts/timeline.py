"""Draws a step of several runs below each other: when the first training rank computes, and when it exchanges
data."""

import statistics

from plot import COLOURS, line, text
from recording import EXCHANGES, steps_with_events

WIDTH, LEFT, RIGHT, TOP, LANE, GAP = 900, 170, 20, 60, 18, 22
PARTS = {"forward": COLOURS[0], "backward": COLOURS[5], "update": COLOURS[2], "exchange": COLOURS[1]}
FROM_GRADIENTS = " of gradient of "


def of_step(events):
    """Returns the typical step of the lowest rank in the trace as pairs of a part and a span, in seconds
    since the step began. Returns None if there are no steps."""
    first = min((event["pid"] for event in events if event["ph"] == "X"), default=None)
    steps = list(steps_with_events([event for event in events if event["pid"] == first]))
    if not steps:
        return None
    typical = statistics.median_low(step["dur"] for step, _ in steps)
    step, inside = next(found for found in steps if found[0]["dur"] == typical)
    spans = [*computed(inside), *exchanged(inside)]
    return {"seconds": step["dur"] / 1e6,
            "spans": [(part, (begin - step["ts"]) / 1e6, (end - step["ts"]) / 1e6) for part, begin, end in spans]}


def computed(inside):
    """Returns the spans of computation. Consecutive instructions form one span."""
    found = sorted((event for event in inside if event["cat"] == "instruction"), key=lambda event: event["ts"])
    gradients = [i for i, event in enumerate(found) if FROM_GRADIENTS in event["name"]]
    begin, end = (gradients[0], gradients[-1] + 1) if gradients else (len(found), len(found))
    for part, events in (("forward", found[:begin]), ("backward", found[begin:end]), ("update", found[end:])):
        yield from ((part, *span) for span in joined(events))


def joined(events, gap=50):
    """Joins spans in microseconds whose gaps are too small to be seen."""
    spans = []
    for event in events:
        begin, end = event["ts"], event["ts"] + event["dur"]
        if spans and begin - spans[-1][1] <= gap:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([begin, end])
    return spans


def exchanged(inside):
    """Returns the spans of exchanges, or of the strategy's calls if it names no exchanges."""
    found = [event for event in inside if event["name"] == "exchange"] or [event for event in inside if event["name"] in EXCHANGES]
    yield from (("exchange", event["ts"], event["ts"] + event["dur"]) for event in found)


def draw(steps):
    """Returns the text of an SVG picture. `steps` maps a name to a result of of_step()."""
    longest = max(max([step["seconds"], *(end for _, _, end in step["spans"])]) for step in steps.values())
    height = TOP + len(steps) * (2 * LANE + GAP) + 20

    def at(seconds):
        return LEFT + seconds / longest * (WIDTH - LEFT - RIGHT)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', text(LEFT, 20, "A step of the first rank that trains", "start", ' font-size="15"')]
    for number, (part, colour) in enumerate(PARTS.items()):
        parts.append(f'<rect x="{LEFT + 110 * number}" y="32" width="12" height="12" fill="{colour}"/>')
        parts.append(text(LEFT + 110 * number + 18, 42, part, "start"))
    for number, (name, step) in enumerate(steps.items()):
        y = TOP + number * (2 * LANE + GAP)
        parts.append(text(LEFT - 8, y + LANE + 4, name, "end"))
        for part, begin, end in step["spans"]:
            lane = y + (LANE if part == "exchange" else 0)
            parts.append(f'<rect x="{at(begin):.1f}" y="{lane}" width="{max(at(end) - at(begin), 0.5):.1f}" height="{LANE - 2}" fill="{PARTS[part]}"/>')
        parts.append(line(at(step["seconds"]), y - 2, at(step["seconds"]), y + 2 * LANE, 'stroke="#000"'))
        parts.append(text(min(at(step["seconds"]), WIDTH - RIGHT - 30), y + 2 * LANE + 12, f"{step['seconds'] * 1e3:.4g} ms"))
    return "\n".join([*parts, "</svg>"]) + "\n"
