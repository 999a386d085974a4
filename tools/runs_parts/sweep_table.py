"""The table of a sweep: a row for each combination of the varied keys, with mean and deviation over folds and seeds."""

import math
import statistics

from logs import number_of
from table import aligned, figure
from trials import short_keys


def is_finished(record):
    """True for the record of a trial that has succeeded, and has written a log."""
    return record is not None and record["status"] == 0 and "reason" not in record


def metrics_of_trials(records):
    """Returns the names of the figures of all trials, in their order, with the loss at the end."""
    names = list(dict.fromkeys(name for record in records for name in record.get("figures", {})))
    return [name for name in names if name != "loss"] + ["loss"] * ("loss" in names)


def chosen_metric(records, metric):
    """Returns the name of the figure by which the rows are sorted: `metric` if given, else that of training.goal, else the first."""
    names = metrics_of_trials(records)
    return metric or next((record["goal"] for record in records if record.get("goal")), names[0] if names else "loss")


def summary(trials, done, metric):
    """Returns the summary in sweep.json: the metric, true in `rises` if greater is better, and the rows of the table, the best first. A mean
    is None unless every finished trial of the row has the figure. A sample deviation (n - 1) also needs two finished trials. `seconds` is
    a sum over the finished trials."""
    finished = [done[trial.name] for trial in trials if is_finished(done.get(trial.name))]
    chosen = chosen_metric(finished, metric)
    rises = any(chosen in record["rising"] for record in finished)
    rows = {}
    for trial in trials:
        row = rows.setdefault(tuple(trial.group().items()), {"settings": trial.group(), "trials": 0, "finished": []})
        row["trials"] += 1
        if is_finished(done.get(trial.name)):
            row["finished"].append(done[trial.name])
    table = [row_of(row, metrics_of_trials(finished)) for row in rows.values()]

    def place(row):
        mean = row["mean"].get(chosen)
        return (mean is None, 0 if mean is None else -mean if rises else mean)

    return {"metric": chosen, "rises": rises, "table": sorted(table, key=place)}


def row_of(row, metrics):
    values = {name: [number_of(record["figures"].get(name)) for record in row["finished"]] for name in metrics}
    known = {name: numbers and not any(map(math.isnan, numbers)) for name, numbers in values.items()}
    return {"settings": row["settings"], "trials": row["trials"], "finished": len(row["finished"]),
            "mean": {name: statistics.fmean(numbers) if known[name] else None for name, numbers in values.items()},
            "deviation": {name: statistics.stdev(numbers) if known[name] and len(numbers) > 1 else None for name, numbers in values.items()},
            "seconds": sum(record["seconds"] for record in row["finished"])}


def lines_of_sweep(trials, done, metric):
    """Returns the lines of the table, and one line for each trial that has failed."""
    found = summary(trials, done, metric)
    rows = found["table"]
    metrics = list(rows[0]["mean"])
    keys = list(rows[0]["settings"])
    names = short_keys(keys)
    head = [*(names[key] for key in keys), "trials", *metrics, "seconds in all"]
    cells = [[*row["settings"].values(), f"{row['finished']} of {row['trials']}", *(spread(row["mean"][name], row["deviation"][name]) for name in metrics),
              figure(row["seconds"])] for row in rows]
    has_figures = any(row["finished"] for row in rows)
    lines = ["", f"validation, sorted by {found['metric']}; mean ± deviation of a row's trials", *aligned(head, cells)] if has_figures else [""]
    ended = [done[trial.name] for trial in trials if trial.name in done]
    lines += [f"{record['name']}: {record['note']}" for record in ended if "note" in record]
    return lines + [f"{record['name']} failed with status {record['status']}: {record['reason']}" for record in ended if not is_finished(record)]


def spread(mean, deviation):
    """Returns a text such as "0.9667 ± 0.024", or "–" without a mean."""
    return "–" if mean is None else figure(mean) if deviation is None else f"{figure(mean)} ± {deviation:.2g}"


def figures_text(record):
    """Returns the figures of a finished trial as a line."""
    figures = [f"{name} {figure(number_of(value))}" for name, value in record["figures"].items()]
    return "  ".join([*(figures or [record.get("note", "no figures of a validation")]), f"{record['seconds']:.3g} s"])
