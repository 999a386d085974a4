"""C++ as the checks of the sources read it."""

import re

# Comments, strings, characters, and lines of the preprocessor.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|'
                     r'^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)


def code_of(source):
    """The source with blanks for all that is no code, so that each place keeps its line and column."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def without_templates(text):
    """`text` without what stands in angle brackets."""
    depth, kept = 0, []
    for char in text.replace("->", "  "):
        depth += (char == "<") - (char == ">" and depth > 0)
        kept.append(char if depth == 0 and char != ">" else " ")
    return "".join(kept)
