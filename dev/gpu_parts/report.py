"""Writes the results as JSON and as tables for docs/lab/performance.md, and says which goals were met."""

import dataclasses
import json

from speed import COUNTS

STAGES = ["build", "probe", "tests", "speed", "peers"]
IMAGES = ("resnet50", 256)
# Limits of COUNTS for a step: it copies the samples in, and loss and counts out. The host waits for staging
# memory, for the device's memory of samples, and for the loss of the step before.
MOST_COUNTS = [2, 0, 3]
ROUNDING = 0.01


def save(folder, stage, setting):
    """Saves the rows of a stage. Keeps rows of an earlier run with the same setting if this run has no such
    row, or did not reach it."""
    path = folder / f"{stage.name}.json"
    rows = {}
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["setting"] == setting:
            rows = {row["name"]: row for row in before["rows"]}
    for row in stage.rows:
        if row.result != "not run" or row.name not in rows:
            rows[row.name] = dataclasses.asdict(row)
    path.write_text(json.dumps({"stage": stage.name, "setting": setting, "rows": list(rows.values())}, indent=1), encoding="utf-8")


def load(folder):
    """Returns the stages that were run, by name."""
    return {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in STAGES if (folder / f"{name}.json").exists()}


@dataclasses.dataclass
class Bar:
    claim: str
    value: float | None  # None: not measured
    least: float | None  # None: a `value` of 1 says that the claim holds
    text: str = ""

    def result(self):
        if self.value is None:
            return "not measured"
        return "met" if self.value >= (1 if self.least is None else self.least) else "NOT met"

    def shown(self):
        return self.text or ("" if self.value is None else f"{self.value:.2f}")


def row_named(stages, stage, *starts):
    """Returns the rows of a stage whose names have one of these prefixes."""
    return [row for row in stages.get(stage, {"rows": []})["rows"] if row["name"].startswith(starts)]


def holds(claim, rows):
    """Returns a claim that holds if all these rows passed. If a row was skipped or not reached, the claim
    counts as not measured."""
    results = {row["result"] for row in rows}
    failed = [f"{row['name']}: {row['detail']}" for row in rows if row["result"] == "FAILED"]
    if failed:
        return Bar(claim, 0, None, "; ".join(failed))
    if not rows or results != {"passed"}:
        return Bar(claim, None, None, "; ".join(f"{row['name']}: {row['result']}" for row in rows if row["result"] != "passed"))
    return Bar(claim, 1, None, "; ".join(row["detail"] for row in rows if row["detail"]))


def median_of(stages, model, label):
    for row in row_named(stages, "peers", model):
        return row["figures"].get("programs", {}).get(label, {}).get("median_s")
    return None


def ratio(stages, model, ours, theirs):
    """Returns their time divided by ours."""
    our_time, their_time = median_of(stages, model, ours), median_of(stages, model, theirs)
    return their_time / our_time if our_time and their_time else None


def timed(stages, model, precision, batch):
    """Returns the figures of a training step."""
    wanted = {"model": model, "precision": precision, "batch": batch, "inference": False, "branches": True}
    for row in row_named(stages, "speed", model):
        if wanted.items() <= row["figures"].items():
            return row["figures"]
    return {}


def traffic(stages):
    """Returns the goal for a step's copies and waits. It is not measured if the backend does not count them.
    """
    claim = "ResNet50, bfloat16: a step copies only its samples and what it measured, nothing within its graph, and waits for earlier steps alone"
    figures = timed(stages, IMAGES[0], "bfloat16", IMAGES[1])
    if not all(name in figures for name in COUNTS):
        return Bar(claim, None, None)
    found = [figures[name] for name in COUNTS]
    well = all(value <= most + ROUNDING for value, most in zip(found, MOST_COUNTS))
    return Bar(claim, float(well), None, "{:.2f} copies, {:.2f} of them recorded, {:.2f} waits a step".format(*found))


def bars(stages):
    images = IMAGES[0]
    digits = {"mnist_cnn": "MNIST CNN", "mnist_mlp": "MNIST MLP"}
    return [
        holds("all cases of ops, the tests of the engine and the probes of the contracts pass",
              row_named(stages, "tests", "cuda_tests", "core_tests", "ops_tests", "contract_tests")),
        holds("the loss of ResNet50 follows the CPU's", [row for row in row_named(stages, "tests", IMAGES[0]) if "follows" in row["name"]]),
        holds("two runs end in equal bits", [row for row in row_named(stages, "tests", IMAGES[0]) if "again" in row["name"]]),
        holds("compute-sanitizer finds nothing", row_named(stages, "tests", "compute-sanitizer")),
        Bar("ResNet50, bfloat16: 1.3 times as fast as PyTorch's AMP with channels_last",
            ratio(stages, images, "plexaura, bfloat16", "torch, AMP bfloat16, channels_last"), 1.3),
        Bar("ResNet50, bfloat16: 1.1 times as fast as torch.compile",
            ratio(stages, images, "plexaura, bfloat16", "torch, AMP bfloat16, channels_last, compile"), 1.1),
        Bar("ResNet50, bfloat16: 60 % of the roofline", timed(stages, images, "bfloat16", IMAGES[1]).get("share_of_roofline"), 0.6),
        Bar("ResNet50, TF32: 1.2 times as fast as PyTorch with channels_last", ratio(stages, images, "plexaura, tf32", "torch, TF32, channels_last"),
            1.2),
        *(Bar(f"{name}: 3 times as fast as PyTorch as written", ratio(stages, model, "plexaura", "torch, float32"), 3)
          for model, name in digits.items()),
        traffic(stages),
    ]


def cell(value, form):
    return "" if value is None else form.format(value)


def speed_table(stages):
    lines = ["| | ms | images/s | planned, MiB | driver, MiB | share of the roofline | copies, recorded, waits |", "|---|---|---|---|---|---|---|"]
    for row in stages["speed"]["rows"]:
        figures = row["figures"]
        if figures:
            counts = [cell(figures.get(name), "{:g}") for name in COUNTS]
            share = figures.get("share_of_roofline")
            lines.append(f"| {row['name']} | {figures['ms']:.3f} | {figures['images_per_second']:,.0f} | {figures['planned_mb']:,.1f} | "
                         f"{figures['driver_mb']:,.0f} | {cell(share and share * 100, '{:.0f} %')} | {', '.join(filter(None, counts))} |")
        elif row["result"] != "passed":
            lines.append(f"| {row['name']} | {row['result']}: {row['detail']} | | | | | |")
    return lines


def branches_lines(stages):
    """Returns lines on the cost of running a recorded step's kernels one after another, for steps that were
    timed both ways."""
    lines = []
    for row in stages["speed"]["rows"]:
        figures = row["figures"]
        if figures.get("branches", True):
            continue
        default = timed(stages, figures["model"], figures["precision"], figures["batch"])
        if default:
            lines.append(f"- {row['name']}: {figures['ms'] / default['ms']:.3f} times the {default['ms']:.3f} ms of the default")
    return lines


def peers_table(stages):
    lines = ["| model, batch | program | ms | ours / this |", "|---|---|---|---|"]
    for row in stages["peers"]["rows"]:
        programs = row["figures"].get("programs", {})
        if not programs:
            lines.append(f"| {row['name']} | {row['result']}: {row['detail']} | | |")
        for name, entry in programs.items():
            ours = next((one["median_s"] for one in programs.values() if one["ours"] and one["precision"] == entry["precision"]), None)
            median = entry["median_s"]
            lines.append(f"| {row['name']}, {row['figures']['batch']} | {name} | {cell(median and median * 1000, '{:.3f}') or entry.get('error', '')} | "
                         f"{cell(ours / median if ours and median else None, '{:.2f}')} |")
    return lines


def markdown(stages):
    lines = []
    for name, stage in stages.items():
        rows = stage["rows"]
        count = {result: sum(row["result"] == result for row in rows) for result in ("passed", "FAILED", "skipped", "not run")}
        told = ", ".join(f"{number} {result}" for result, number in count.items() if number) or "nothing was run"
        where = stage["setting"]
        lines += [f"**{name}**: {told}. {where['gpu']}, driver {where['driver']}, backend {where['backend']}, commit {where['commit']}.", "",
                  *([f"The plugin: {where['plugin']}.", ""] if "plugin" in where else [])]
        lines += [f"- {row['name']}: {row['result']}, {row['detail'] or 'see its log'}" for row in rows if row["result"] != "passed"]
        if name == "probe":
            lines += [f"- {row['name']}: {row['detail']}" for row in rows if row["result"] == "passed"]
        table = {"speed": speed_table, "peers": peers_table}.get(name)
        lines += [*([""] if lines[-1] else []), *(table(stages) if table else []), *([""] if table else [])]
        beside = branches_lines(stages) if name == "speed" else []
        lines += [*beside, *([""] if beside else [])]
    lines += ["The bars for times are meant for an H200.", "", "| claim | found | at least | |", "|---|---|---|---|"]
    lines += [f"| {bar.claim} | {bar.shown()} | {cell(bar.least, '{:g}')} | {bar.result()} |" for bar in bars(stages)]
    return "\n".join(lines) + "\n"


def write(folder):
    """Writes both files with all results so far, and returns the text."""
    stages = load(folder)
    text = markdown(stages)
    (folder / "results.md").write_text(text, encoding="utf-8")
    found = {"stages": stages, "bars": [{"claim": bar.claim, "value": bar.value, "least": bar.least, "result": bar.result()} for bar in bars(stages)]}
    (folder / "results.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return text
