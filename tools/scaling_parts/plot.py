"""Draws line plots over numbers of ranks or over time, as SVG."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 70, 210, 40, 50
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
DASHES = ("none", "6 3", "2 2")


class Axis:
    """Converts values to pixels."""

    def __init__(self, values, begin, end, logarithmic=False, from_zero=False):
        self.begin, self.end, self.logarithmic = begin, end, logarithmic
        self.low, self.high = 0 if from_zero else min(values), max(values)
        if self.low == self.high:
            self.low, self.high = (self.low / 2, self.high * 2) if self.low > 0 else (0, 1)

    def scaled(self, value):
        return math.log(value) if self.logarithmic else value

    def at(self, value):
        low, high = self.scaled(self.low), self.scaled(self.high)
        return self.begin + (self.scaled(value) - low) / (high - low) * (self.end - self.begin)

    def ticks(self):
        if self.logarithmic:
            decades = [10.0**e for e in range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)]
            return decades if len(decades) > 1 else [self.low, self.high]
        extent = self.high - self.low
        unit = 10 ** math.floor(math.log10(extent))
        step = next(unit * part for part in (0.1, 0.2, 0.25, 0.5, 1, 2) if extent / (unit * part) <= 8)
        return [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def frame(title, unit, across, x, y, places):
    yield text(LEFT, 22, title, "start", ' font-size="15"')
    yield text(16, HEIGHT / 2, unit, extra=f' transform="rotate(-90 16 {HEIGHT / 2})"')
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across)
    last = -math.inf
    for value in places:
        if x.at(value) - last >= 28:  # the width that a number needs
            yield text(x.at(value), HEIGHT - BOTTOM + 18, f"{value:,.6g}")
            last = x.at(value)
    for value in y.ticks():
        yield line(LEFT, y.at(value), WIDTH - RIGHT, y.at(value), 'stroke="#ddd"')
        yield text(LEFT - 6, y.at(value) + 4, f"{value:,.6g}", "end")
    yield line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, 'stroke="#000"')


def curve(number, name, points, x, y):
    style = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{DASHES[number // len(COLOURS) % len(DASHES)]}"'
    places = [(x.at(place), y.at(value)) for place, value in points]
    yield f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}" fill="none" stroke-width="2" {style}/>'
    yield from (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{COLOURS[number % len(COLOURS)]}"/>' for a, b in places)
    beside = TOP + 10 + 18 * number
    yield line(WIDTH - RIGHT + 14, beside, WIDTH - RIGHT + 38, beside, f'stroke-width="2" {style}')
    yield text(WIDTH - RIGHT + 44, beside + 4, name, "start")


def draw(title, unit, curves, logarithmic=False, from_zero=True, across="ranks"):
    """Returns the text of an SVG picture. `curves` maps a name to pairs (x, y). Numbers of ranks are on a
    logarithmic axis with a tick each; other x axes begin at zero. A logarithmic axis of values does not
    begin at zero."""
    curves = {name: sorted(points) for name, points in curves.items() if points}
    points = [point for found in curves.values() for point in found]
    of_ranks = across == "ranks"
    places = sorted({place for place, _ in points})
    x = Axis(places, LEFT, WIDTH - RIGHT, logarithmic=of_ranks, from_zero=not of_ranks)
    y = Axis([value for _, value in points], HEIGHT - BOTTOM, TOP, logarithmic, from_zero and not logarithmic)
    height = max(HEIGHT, TOP + 30 + 18 * len(curves))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', *frame(title, unit, across, x, y, places if of_ranks else x.ticks())]
    for number, (name, found) in enumerate(curves.items()):
        parts += curve(number, name, found, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"
