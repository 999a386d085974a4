"""The command --predict: reads its options and files, and prints the predictions of step.py."""

import pathlib
from dataclasses import asdict

import plot
import report
from inputs import Mistake, Step, check_above_zero, make_links, make_profile, numbers, read
from step import CHOICES, EXACT, FREE, Setting, check_choices, check_use, fastest, goodput, predict


def add_options(parser):
    group = parser.add_argument_group("predictions")
    group.add_argument("--predict", nargs="+", metavar="PROFILE.json", help="profile of a step; or two, at two batch sizes")
    group.add_argument("--links", metavar="LINKS.json", help="speed of the links, and ranks of a host")
    group.add_argument("--overlap", choices=["yes", "no"], help="whether buckets are exchanged during the backward pass; default: as the profile says")
    group.add_argument("--mtbf", type=float, metavar="HOURS", help="mean time between failures of one rank: adds the expected goodput")
    group.add_argument("--checkpoint-seconds", type=float, metavar="S", help="with --mtbf: what saving takes (5)")
    group.add_argument("--restart-seconds", type=float, metavar="S", help="with --mtbf: from a failure to the next step (60)")
    group.add_argument("--out", metavar="FOLDER", help="writes scaling.csv, scaling.md and plots there")


def check(options):
    if not options.links:
        raise Mistake("--predict needs --links, a file with the speed of the links; docs/reference/scaling.md describes it")
    check_above_zero(options, "mtbf", "checkpoint_seconds", "restart_seconds")
    for name in ("checkpoint_seconds", "restart_seconds"):
        if options.mtbf is None and getattr(options, name) is not None:
            raise Mistake(f"--{name.replace('_', '-')} is for the goodput; give --mtbf, too")


def one(sizes, name):
    if sizes and len(sizes) > 1:
        raise Mistake(f"--predict takes one batch size; write --{name} {sizes[0]:g}")
    return sizes[0] if sizes else None


def run(options):
    check(options)
    ranks = numbers(options.ranks or ",".join(str(2**i) for i in range(1, 13)), "--ranks")
    step = Step([read(path, make_profile) for path in options.predict])
    links = read(options.links, make_links)
    choices = check_choices(options.strategies.split(",")) if options.strategies else CHOICES
    check_use(options, choices, EXACT, "bucket_bytes", "overlap")
    check_use(options, choices, FREE, "every")
    overlap = None if options.overlap is None else options.overlap == "yes"
    setting = Setting(options.bucket_bytes or Setting.bucket_bytes, options.every or Setting.every, overlap)
    weak = one(options.batch, "batch") or step.profiles[-1].batch

    strong = one(options.global_batch, "global-batch")

    def predict_all(count):
        batch = strong / count if strong else weak
        return [predict(step, choice, count, links, setting, batch, strong or weak) for choice in choices]

    predicted = {count: [p for p in predict_all(count) if p] for count in ranks}
    found = {count: predictions for count, predictions in predicted.items() if predictions}
    if not found:
        raise Mistake("none of these strategies can work with these numbers of ranks; window needs all on one host, and each two ranks")
    text = "\n".join(part for part in (describe(found), strategies_table(found), goodput_table(options, found)) if part)
    if options.out:
        write_all(pathlib.Path(options.out), found, text)
    print(text, end="")


def describe(found):
    """Describes for each number of ranks the fastest strategy that trains like one rank, and the fastest of
    all."""
    rows = []
    for count, predictions in found.items():
        exact, best = fastest(predictions, only_exact=True), fastest(predictions)
        cells = ("-",) * 5
        if exact:
            cells = (exact.choice, step_text(exact), report.rate(exact.samples_per_second), report.percent(exact.efficiency),
                     report.percent(exact.overlap))
        rows.append((count, *cells, best.choice, report.percent(best.efficiency)))
    return report.table(("ranks", "fastest as one rank trains", "step", "samples/s", "efficiency", "overlap", "fastest of all", "efficiency"), rows)


def step_text(prediction):
    """Returns the time of a step, with the bounds of 90 % of all steps if times vary."""
    bounds = f" ({report.seconds(prediction.low)} to {report.seconds(prediction.high)})" if prediction.low < prediction.high else ""
    return report.seconds(prediction.seconds) + bounds


def strategies_table(found):
    """Returns a table of the efficiency of each strategy."""
    choices = list(dict.fromkeys(p.choice for predictions in found.values() for p in predictions))
    by_choice = {count: {p.choice: p for p in predictions} for count, predictions in found.items()}
    rows = [(choice + (" *" if choice.split("/")[0] in FREE else ""),
             *(report.percent(by_choice[count][choice].efficiency) if choice in by_choice[count] else "-" for count in found))
            for choice in choices]
    text = report.table(("efficiency with", *(f"{count} ranks" for count in found)), rows)
    return text + ("* does not train as one rank would: see docs/reference/distributed.md\n" if any(row[0].endswith("*") for row in rows) else "")


def goodput_table(options, found):
    if not options.mtbf:
        return ""
    rows = []
    for count, predictions in found.items():
        best = fastest(predictions, only_exact=True) or fastest(predictions)
        share, interval = goodput(count, options.mtbf, options.checkpoint_seconds or 5, options.restart_seconds or 60)
        rows.append((count, report.duration(options.mtbf * 3600 / count), report.duration(interval), report.percent(share),
                     report.rate(share * best.samples_per_second)))
    return report.table(("ranks", "between failures", "checkpoint every", "goodput", "samples/s of the fastest"), rows)


def write_all(folder, found, text):
    predictions = [p for at_count in found.values() for p in at_count]
    report.write_csv(folder / "scaling.csv", [asdict(p) for p in predictions])
    report.write(folder / "scaling.md", text)
    report.write(folder / "efficiency.svg", plot.draw("Efficiency", "%", curves(predictions, lambda p: 100 * p.efficiency)))
    report.write(folder / "rate.svg", plot.draw("Samples per second", "samples/s", curves(predictions, lambda p: p.samples_per_second), True))


def curves(predictions, value):
    found = {}
    for p in predictions:
        found.setdefault(p.choice, []).append((p.ranks, value(p)))
    return found
