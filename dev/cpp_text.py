"""Helps the checks of the sources to read C++."""

import re

# Comments, strings, character literals and preprocessor lines.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|'
                     r'^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)


def code_of(source):
    """Returns the source with spaces in place of comments, literals and directives. Each position keeps its
    line and column."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def without_templates(text):
    """Returns `text` without the contents of angle brackets."""
    depth, kept = 0, []
    for char in text.replace("->", "  "):
        depth += (char == "<") - (char == ">" and depth > 0)
        kept.append(char if depth == 0 and char != ">" else " ")
    return "".join(kept)
