"""Makes the page of one run from the folder of --report: its log, and the facts that the program has written at its end."""

import html
import json
import math
import pathlib

from logs import LogFault, read_log
from op_times import time_by_op
from page import STYLE as PAGE_STYLE
from page import charts_of, table_of
from pictures import image, is_picture
from table import figure

LOG, FACTS = "log.jsonl", "report.json"
UNFINISHED = "the run has not written it: it is under way, or was killed before its end"
MOST_OPS = 25

STYLE = PAGE_STYLE + """
section { margin-bottom: 2rem; } .pictures { display: flex; flex-wrap: wrap; gap: .8rem; } figure { margin: 0; font-size: .8rem; max-width: 170px; }
img { image-rendering: pixelated; display: block; } .reason { opacity: .75; } .confusion td, .confusion th { text-align: center; min-width: 2.2em; padding: .15rem .4rem; }
.facts td { text-align: left; } .row { display: flex; gap: .4rem; margin-bottom: .4rem; }
"""


def read_facts(folder):
    path = folder / FACTS
    try:
        facts = json.loads(path.read_bytes())
    except OSError as error:
        raise LogFault(f"'{path}' cannot be read: {error.strerror}; name the folder that --report has written") from error
    except (ValueError, RecursionError) as error:
        raise LogFault(f"'{path}' is not JSON; name the folder that --report has written") from error
    if not isinstance(facts, dict) or facts.get("format") != "plexaura report 1":
        raise LogFault(f"'{path}' has no facts of a run; name the folder that --report has written")
    return facts


def page_of_report(folder):
    folder = pathlib.Path(folder)
    facts = read_facts(folder)
    try:
        run = read_log(folder / LOG, folder.resolve().name)
    except OSError as error:
        raise LogFault(f"'{error.filename}' cannot be read: {error.strerror}; name the folder that --report has written") from error
    title = html.escape(run.name)
    try:
        body = body_of(facts, run)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise LogFault(f"'{folder / FACTS}' has facts that no program writes ({error!r}); run the training again with --report") from error
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<div class="scroll">{table_of([run])}</div>
{body}
</body></html>
"""


def body_of(facts, run):
    parts = [("Curves", curves(run)), ("Run", figures(facts)), ("Confusion matrix", confusion(facts)), ("Worst samples of validation", worst(facts)),
             ("Augmentation", examples(facts)), ("Time by op", times(facts)), ("Memory", memory(facts)), ("Ranks", ranks(facts, run))]
    return "\n".join(f"<section><h2>{name}</h2>\n{content}</section>" for name, content in parts)


def reason(facts, part):
    text = (facts.get("missing") or {}).get(part) or UNFINISHED
    return f'<p class="reason">Left out: {html.escape(str(text))}.</p>'


def rows(pairs):
    lines = "".join(f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(str(value))}</td></tr>" for name, value in pairs)
    return f'<div class="scroll"><table class="facts">{lines}</table></div>'


def curves(run):
    drawn = "\n".join(f"<div><h2>{html.escape(chart.title)}</h2>\n{chart.svg()}</div>" for chart in charts_of([run]))
    return f'<div class="charts">{drawn}</div>'


def figures(facts):
    if not isinstance(facts.get("run"), dict):
        return reason(facts, "run")
    return rows((name.replace("_", " "), f"{value:,}" if type(value) is int else f"{value:.4g}" if isinstance(value, float) else value)
                for name, value in facts["run"].items() if value not in (None, "") and not (name == "signal" and value == 0))


def class_name(facts, number):
    names = facts.get("classes") or []
    return str(names[number]) if 0 <= number < len(names) else str(number)


def confusion(facts):
    counts = facts.get("confusion")
    size = math.isqrt(len(counts)) if counts else 0
    if not size:
        return reason(facts, "confusion")
    names = [html.escape(class_name(facts, i)) for i in range(size)]
    lines = ["<tr><th>true \\ predicted</th>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
    for i, name in enumerate(names):
        row = counts[i * size:(i + 1) * size]
        cells = "".join(f'<td style="background:{"#009e73" if i == j else "#d55e00"}{round(200 * count / max(sum(row), 1)):02x}">{count:,}</td>'
                        for j, count in enumerate(row))
        lines.append(f"<tr><th>{name}</th>{cells}</tr>")
    return f'<p>{html.escape(judged(facts))}</p><div class="scroll"><table class="confusion">{"".join(lines)}</table></div>'


def judged(facts):
    about = facts["judged"]
    text = f"{about['samples']:,} of {about['of']:,} validation samples, predicted with the weights at the end of the run."
    return text + (f" {about['unreadable']:,} could not be read." if about["unreadable"] else "")


def worst(facts):
    samples = facts.get("worst")
    if not samples:
        return reason(facts, "worst")
    shown = []
    for sample in samples:
        text = html.escape(f"sample {sample['index']}: {class_name(facts, sample['label'])}, predicted {class_name(facts, sample['predicted'])} "
                           f"with {number(sample['probability'])}; loss {number(sample['loss'])}")
        picture = image(sample["picture"], text) if is_picture(sample.get("picture")) else ""
        shown.append(f"<figure>{picture}<figcaption>{text}</figcaption></figure>")
    note = "" if facts["judged"]["pictures"] else '<p class="reason">The samples are no images of bytes, so that no pictures are shown.</p>'
    return f'<p>The highest loss first.</p>{note}<div class="pictures">{"".join(shown)}</div>'


def number(value):
    return "an unknown value" if value is None else figure(value)


def examples(facts):
    if not facts.get("examples"):
        return reason(facts, "examples")
    lines = "".join(f'<div class="row">{"".join(image(one, f"epoch {epoch + 1}") for epoch, one in enumerate(row) if is_picture(one))}</div>'
                    for row in facts["examples"])
    return f"<p>Each row is a training sample as it is read in the first epochs.</p>{lines}"


def times(facts):
    path = facts.get("profile")
    if not path:
        return reason(facts, "profile")
    found = time_by_op(path)
    if not found:
        return f'<p class="reason">Left out: {html.escape(path)} has no times; it was moved, or another run has written it.</p>'
    total = sum(seconds for _, seconds, _ in found)
    lines = "".join(f"<tr><td>{html.escape(name)}</td><td>{seconds:.4g}</td><td>{100 * seconds / total:.1f} %</td><td>{calls:,}</td></tr>"
                    for name, seconds, calls in found[:MOST_OPS])
    rest = f"<p>{len(found) - MOST_OPS} more ops are left out.</p>" if len(found) > MOST_OPS else ""
    return f"<p>Over all ranks and all steps.</p><table><tr><th>op</th><th>seconds</th><th>share</th><th>calls</th></tr>{lines}</table>{rest}"


def memory(facts):
    if not isinstance(facts.get("memory"), dict):
        return reason(facts, "memory")
    return rows((name.replace("_", " "), f"{value / 2**20:,.1f} MiB") for name, value in facts["memory"].items())


def ranks(facts, run):
    count = (facts.get("run") or {}).get("ranks")
    if count is None:
        return reason(facts, "ranks")
    keys = [key for key in (run.epochs[-1] if run.epochs else {}) if key.startswith(("exchange_", "waited_", "straggler"))]
    if count == 1 or not keys:
        return f'<p class="reason">{"One rank trained" if count == 1 else f"{count} ranks trained, and the log has no figures of their exchange"}.</p>'
    return f"<p>{count} ranks trained. Figures of the last epoch:</p>" + rows((key.replace("_", " "), number(run.epochs[-1][key])) for key in keys)
