"""Draws curves as SVG."""

import html
import math

WIDTH, HEIGHT = 620, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 34
MOST_POINTS = 600  # of a drawn curve; see thinned()


def thinned(points):
    """Divides a longer curve into MOST_POINTS ranges of points, and returns the mean of each. A range without a finite value becomes a gap."""
    if len(points) <= MOST_POINTS:
        return points
    pieces = []
    for piece in range(MOST_POINTS):
        part = points[piece * len(points) // MOST_POINTS:(piece + 1) * len(points) // MOST_POINTS]
        values = [y for _, y in part if math.isfinite(y)]
        pieces.append((part[len(part) // 2][0], sum(values) / len(values) if values else math.nan))
    return pieces


def ticks(low, high):
    """Returns some round numbers from low to high."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 5)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def bounds(values):
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-288):
        margin = abs(low) / 2 or 1
        return low - margin, high + margin
    return low, high


class Chart:
    """Curves over one axis: a list of (name, colour, points) with points (x, y) in the order of x."""

    def __init__(self, title, x_name, curves):
        self.title, self.x_name = title, x_name
        self.curves = [(name, colour, thinned(points)) for name, colour, points in curves]
        finite = [(x, y) for _, _, points in self.curves for x, y in points if math.isfinite(y)]
        self.is_empty = not finite
        if finite:
            self.x_low, self.x_high = bounds([x for x, _ in finite])
            self.y_low, self.y_high = bounds([y for _, y in finite])

    def x(self, value):
        return LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (HEIGHT - TOP - BOTTOM)

    def svg(self):
        parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(self.title)}">']
        parts += [self.horizontal(value) for value in ticks(self.y_low, self.y_high)]
        parts += [self.vertical(value) for value in ticks(self.x_low, self.x_high)]
        parts += [self.curve(*curve) for curve in self.curves]
        parts.append(f'<text class="axis" x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{html.escape(self.x_name)}</text></svg>')
        return "\n".join(parts)

    def horizontal(self, value):
        y = f"{self.y(value):.1f}"
        return (f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
                f'<text class="axis" x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{value:g}</text>')

    def vertical(self, value):
        return f'<text class="axis" x="{self.x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:g}</text>'

    def curve(self, name, colour, points):
        """Draws a line between gaps. A single point between two gaps is drawn as a dot."""
        pieces, piece = [], []
        for x, y in [*points, (0, math.nan)]:
            if math.isfinite(y):
                piece.append(f"{self.x(x):.1f},{self.y(y):.1f}")
            elif piece:
                pieces.append(piece)
                piece = []
        drawn = []
        for piece in pieces:
            if len(piece) > 1:
                drawn.append(f'<polyline points="{" ".join(piece)}" stroke="{colour}"/>')
            else:
                x, y = piece[0].split(",")
                drawn.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        return f'<g><title>{html.escape(name)}</title>{"".join(drawn)}</g>'
