"""Renders the results of reproduced reports as one page."""

import json

from tool import Mistake, whole_file

TITLES = {
    "iris_and_photos": "A. A perceptron on Iris and photos",
    "mnist_cnn": "B. A convolutional net on digits, over ranks and hosts",
    "mnist_full_batch": "C. Full-batch descent on digits",
    "resnet": "D. ResNet50, and a parameter server with a slow rank",
    "ablation": "E. The mechanisms of training on 2,048 GPUs",
}
HEAD = """# Results of five published reports, repeated

`tools/reproduce NAME` repeats the experiments of a report, and `tools/reproduce --page docs/lab/results` writes this page from
`docs/lab/results/*/results.json`. The published figures are those of other machines, so shapes are comparable (accuracy, speed-up,
efficiency) and seconds are not.
"""


def table_of(table):
    lines = [f"**{table['title']}**", ""]
    lines += ["| " + " | ".join(row) + " |" for row in (table["head"], ["---"] * len(table["head"]), *table["rows"])]
    return "\n".join(lines + (["", table["note"].strip()] if table["note"].strip() else [])) + "\n"


def section_of(results, folder):
    name = results["workload"]
    command = f"tools/reproduce {name}" + (" --full" if results["length"] == "full" else "")
    parts = [f"## {TITLES[name]}\n", f"`{command}`, {results['machine']}, commit {results['commit']}, {results['date']}.\n"]
    if results["load"] > 0.5:
        parts.append(f"Other programs used the processors (a load of {results['load']} before the start), so speeds and speed-ups are lower than on an idle machine.\n")
    parts += map(table_of, results["tables"])
    parts += [f"![{picture['title']}]({folder}/{name}/{picture['file']})\n" for picture in results["pictures"]]
    return "\n".join(parts)


def page_of(folder):
    """Returns the text of the page for the results in FOLDER/*/results.json."""
    sections = []
    for name in TITLES:
        path = folder / name / "results.json"
        if path.is_file():
            try:
                sections.append(section_of(json.loads(path.read_text(encoding="utf-8")), folder.name))
            except (ValueError, KeyError, TypeError) as error:
                raise Mistake(f"'{path}' is not a file of results ({error!r}); write it again by tools/reproduce {name}") from error
    if not sections:
        raise Mistake(f"there is no {folder}/*/results.json; run tools/reproduce NAME --out {folder}/NAME first")
    return "\n".join([HEAD, *sections])


def write_page(folder):
    text = page_of(folder)
    with whole_file(folder.with_name(folder.name + ".md")) as file:
        file.write(text.encode("utf-8"))
    print(f"{folder}.md: {len(text.splitlines())} lines")
