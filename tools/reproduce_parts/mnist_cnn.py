"""Report B (mpi4py and TensorFlow): a CNN of 690,590 parameters on digits, 128 samples a step for each rank, Adam, and a learning rate of
0.001 times the number of ranks."""

from lab import RATE, epochs_of, percent, seconds_of_epoch, times

# Published: (hosts, ranks on each): seconds of an epoch, test accuracy in percent, seconds in all
PUBLISHED = {(1, 1): (142.04, 98.80, 595), (1, 2): (82.06, 98.43, 417), (2, 1): (81.99, 98.48, 415), (1, 4): (34.40, 98.28, 193),
             (2, 2): (41.03, 98.32, 208), (4, 1): (41.06, 98.47, 215), (1, 8): (20.52, 97.20, 104), (2, 4): (20.52, 96.75, 97),
             (4, 2): (20.53, 94.03, 131)}
HEAD = ["hosts × ranks on each", "seconds of an epoch", "times one rank", "published", "accuracy", "published", "seconds in all", "published", "idle"]
NOTE = ("Hosts are network namespaces of one machine with links of 1 Gbit/s; more ranks than cores share them. In the report each rank drew "
        "its own initial weights, which this framework refuses.")


def run(lab):
    cases = lab.choose([(1, 1), (1, 2), (2, 1)], list(PUBLISHED))
    alone, rows, courses = None, [], {}
    for case in cases:
        done = train(lab, *case)
        if done is None:
            rows.append(None)
            continue
        events, whole = done
        seconds, last = seconds_of_epoch(events), epochs_of(events)[-1]
        alone = alone or seconds
        epoch, accuracy, in_all = PUBLISHED[case]
        rows.append([f"{case[0]} × {case[1]}", f"{seconds:.1f}", times(alone / seconds), times(PUBLISHED[1, 1][0] / epoch), percent(last["val_accuracy"]),
                     f"{accuracy:.2f} %", f"{whole:.0f}", in_all, percent(last.get("waited_share"), 1)])
        courses[f"{case[0]} × {case[1]}"] = [(event["epoch"] + 1, 100 * event["val_accuracy"]) for event in epochs_of(events)]
    lab.add_table("Over hosts and ranks", HEAD, rows, NOTE)
    lab.add_picture("accuracy", "Accuracy after each epoch", "%", courses, from_zero=False, across="epochs")
    weak(lab)


def train(lab, hosts, per_host):
    ranks = hosts * per_host
    settings = [f"training.batch_size={128 * ranks}", f"training.optimizer.learning_rate={0.001 * ranks:g}", "training.schedule.warmup_epochs=1"]
    program = lab.program("convnet", "mnist_cnn", *settings, *lab.choose(["training.epochs=2", "data.limit=12800"], []))
    return lab.train(ranks, program, (hosts, RATE, ranks) if hosts > 1 else None)


def weak(lab):
    samples = lab.choose(2560, 15000)
    rows = lab.scale("weak", "--ranks", lab.choose("1,2", "1,2,4"), "--batch", "128", "--samples", str(samples), "--trace-steps", "0",
                     program=lab.program("convnet", "mnist_cnn", "training.epochs=2"))
    lab.add_table(f"Weak scaling: {samples:,} samples for each rank", ["ranks", "samples/s", "efficiency", "idle"],
                  [[f"{row['ranks']:.0f}", f"{row['samples_per_second']:,.0f}", percent(row["efficiency"], 1), percent(row["idle"], 1)] for row in rows])
