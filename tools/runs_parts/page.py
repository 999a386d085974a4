"""Writes a page that shows runs side by side. It is one file, and refers to nothing outside it."""

import html

from chart import Chart
from logs import metrics_of, number_of
from table import columns

# The colours of Okabe and Ito, which colour-blind people can tell apart, too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1320px; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); gap: 1.5rem 2rem; }
svg { width: 100%; height: auto; } polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.grid { stroke: #8883; } .axis { font-size: 12px; fill: currentColor; opacity: .75; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
"""


def charts_of(runs):
    def chart(title, events, key):
        curves = [(run.name, colour_of(i), [(entry["step"], number_of(entry.get(key))) for entry in getattr(run, events)])
                  for i, run in enumerate(runs)]
        return Chart(title, "updates", curves)

    wanted = [("loss of each step", "steps", "loss"), ("loss of each epoch", "epochs", "train_loss"), ("validation loss", "epochs", "val_loss")]
    wanted += [(f"validation {name}", "epochs", f"val_{name}") for name in metrics_of(runs, "epochs", "val_")]
    wanted += [(f"{name} of each step", "steps", name) for name in metrics_of(runs, "steps")]
    wanted += [("learning rate", "steps", "learning_rate"), ("samples per second", "steps", "images_per_second")]
    return [made for made in (chart(*words) for words in wanted) if not made.is_empty]


def colour_of(index):
    return COLOURS[index % len(COLOURS)]


def page_of(runs):
    title = runs[0].name if len(runs) == 1 else f"{len(runs)} runs"
    figures = "\n".join(f"<section><h2>{html.escape(chart.title)}</h2>\n{chart.svg()}</section>" for chart in charts_of(runs))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{STYLE}</style></head>
<body><h1>{html.escape(title)}</h1>
<div class="scroll">{table_of(runs)}</div>
<div class="charts">
{figures}
</div></body></html>
"""


def table_of(runs):
    head, rows = columns(runs)
    lines = ["<table><thead><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr></thead><tbody>"]
    for i, row in enumerate(rows):
        name = f'<td><span class="key" style="background:{colour_of(i)}"></span>{html.escape(row[0])}</td>'
        lines.append(f"<tr>{name}{''.join(f'<td>{html.escape(cell)}</td>' for cell in row[1:])}</tr>")
    return "\n".join([*lines, "</tbody></table>"])
