"""Finds the faults for a source: every edit that a test should notice."""

import dataclasses
import hashlib
import re

from cpp import STATEMENT_WORDS, STRENGTH, Source

# Forms in which an edit is written into the copy: the original text stays in its place, and the switch
# chooses between it and `after`.
VALUE = ("(mutant({number}) ? ({after}) : (", "))")
CONDITION = ("(mutant({number}) ? static_cast<bool>({after}) : static_cast<bool>(", "))")
STATEMENT = ("(mutant({number}) ? void() : void(", "))")
JUMP = ("if (!mutant({number})) ", "")
BODY = ("{{ ", " if (mutant({number})) break; }}")
# For a body with a `continue`, which would jump over the switch. Only a `break` of the body leaves `mutant_left` true. No
# source has a variable of these names, which the body would read here in place of its own.
CONTINUED_BODY = ("{{ bool mutant_left = true; for (bool mutant_turn = true; mutant_turn; mutant_turn = mutant_left = false) ",
                  " if (mutant_left || mutant({number})) break; }}")

# A system header may have unused variables and comparisons that are always true without a warning.
HEAD = '#include "dev/mutate_parts/switch.h"\n#pragma GCC system_header\n#line 1 "{name}"\n'


@dataclasses.dataclass
class Fault:
    file: str
    kind: str
    line: int
    before: str
    after: str
    begin: int  # position of `before` in the file
    end: int
    form: tuple
    id: str = ""
    number: int = 0  # number that switches the fault on

    def edit(self):
        return f"{self.before} → {self.after}"

    def describe(self):
        return f"{self.id} {self.file}:{self.line}: {self.kind}: {self.edit()}"


OTHER_OPERATOR = {"+": ("sign", "-"), "-": ("sign", "+"), "*": ("factor", "/"), "/": ("factor", "*"), "%": ("factor", "/"),
                  "+=": ("sign", "-="), "-=": ("sign", "+="), "*=": ("factor", "/="), "/=": ("factor", "*="),
                  "<": ("comparison", "<="), "<=": ("comparison", "<"), ">": ("comparison", ">="), ">=": ("comparison", ">"),
                  "==": ("comparison", "!="), "!=": ("comparison", "=="), "&&": ("condition", "||"), "||": ("condition", "&&")}
# operands of `a op b` that can be left after an edit
DROPPED = {"+": "ab", "-": "a", "*": "ab", "/": "a", "&&": "ab", "||": "ab"}
OTHER_NAME = {"min": "max", "max": "min", "gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "maximum": "minimum", "minimum": "maximum",
              "floor": "ceil", "ceil": "floor", "all_of": "any_of", "any_of": "all_of", "upper_bound": "lower_bound",
              "lower_bound": "upper_bound", "front": "back", "back": "front", "rows": "columns", "columns": "rows"}
OTHER_AXIS = {"h": "w", "w": "h", "height": "width", "width": "height", "rows": "columns", "columns": "rows"}
SYMMETRIC = {"min", "max", "add", "mul", "eq", "ne", "maximum", "minimum", "swap", "gcd", "wrapping_add", "wrapping_mul"}
NO_STATEMENT = {"return", "throw", "break", "continue", "using", "const", "auto", "static", "if", "for", "while", "do", "switch", "case",
                "delete", "default", "else", "constexpr", "struct", "class", "template", "typename", "goto", "public", "private"}


# Functions whose second argument is the cost of a turn. It decides how many threads share the work, and not the results.
SHARE_WORK = {"parallel_for", "parallel_pieces"}


def faults_of(file, text):
    """Returns every fault of this source, in order."""
    source, found = Source(text), []
    for fault in Finder(file, source).find():
        if fault and len(fault.before) <= 400 and not any(is_same(fault, other) or crosses(fault, other) for other in found):
            found.append(fault)
    seen = {}
    for fault in found:
        key = (file, fault.edit())
        seen[key] = seen.get(key, 0) + 1
        fault.id = hashlib.sha1(repr((key, seen[key])).encode()).hexdigest()[:7]
    costs = list(costs_of(source))
    return [fault for fault in found if not any(begin <= fault.begin and fault.end <= end for begin, end in costs)]


def costs_of(source):
    """Yields the positions at which the costs of shared work begin and end."""
    for i in range(len(source.tokens) - 1):
        if source.word(i) in SHARE_WORK and source.word(i + 1) == "(" and source.opens(i + 1):
            for first, last in source.arguments(i + 1)[1:2]:
                yield source.tokens[first].begin, source.tokens[last].end


def is_same(a, b):
    return (a.begin, a.end, a.after) == (b.begin, b.end, b.after)


def crosses(a, b):
    """Returns true if one fault begins within the other and ends outside it. Then one of them was parsed
    wrongly."""
    return a.begin < b.begin < a.end < b.end or b.begin < a.begin < b.end < a.end


def is_accepted(fault, entries):
    """Returns true if an entry accepts this fault. An entry with an id accepts one fault; an entry without
    one accepts this edit everywhere in the file."""
    return any(entry["file"] == fault.file and entry["edit"] == fault.edit() and entry.get("id", fault.id) == fault.id
               for entry in entries)


def sow(text, faults, name):
    """Returns the source with these faults, each with its switch. Lines keep their numbers.

    `#pragma omp simd` becomes a comment, because it allows neither a `break` nor a switch in the loop.
    """
    text = re.sub(r"^#pragma(?= omp simd\b)", "//     ", text, flags=re.M)
    # At one position, ends come before begins; of the begins, the longest comes first, and statements before
    # values.
    places = []
    for fault in faults:
        opening, closing = fault.form
        order = (1, -fault.end, fault.form is not STATEMENT)
        places.append((fault.begin, order, opening.format(number=fault.number, after=fault.after)))
        places.append((fault.end, (0, -fault.begin), closing.format(number=fault.number)))
    pieces, position = [HEAD.format(name=name)], 0
    for begin, _, piece in sorted(places):
        pieces += [text[position:begin], piece]
        position = begin
    return "".join([*pieces, text[position:]])


class Finder:
    def __init__(self, file, source):
        self.file, self.source = file, source

    def find(self):
        for i in range(len(self.source.tokens)):
            if i not in self.source.fixed:
                for search in (self.operators, self.conditions, self.literals, self.names, self.calls, self.statements, self.jumps, self.loops):
                    yield from search(i)

    def fault(self, kind, first, last, after, form=VALUE):
        before = self.source.plain(first, last)
        if before is None or after is None or before == after:
            return None
        tokens = self.source.tokens
        return Fault(self.file, kind, self.source.line(first), before, after, tokens[first].begin, tokens[last].end, form)

    def in_code(self, i):
        """Returns true if token i belongs to a value or a statement, and not to a declaration of a class, a
        function or a parameter."""
        source = self.source
        while source.parent[i] is not None and source.word(source.parent[i]) != "{":
            i = source.parent[i]
        if not source.declares(source.parent[i]):
            return True
        begin = source.statement_begin(i)
        return any(source.word(k) == "=" and source.parent[k] == source.parent[i] for k in range(begin, i))

    def operators(self, i):
        source, op = self.source, self.source.word(i)
        if source.is_binary(i) and op in OTHER_OPERATOR:
            first, last = source.left(i, STRENGTH[op]), source.right(i, STRENGTH[op])
            a, b = source.plain(first, i - 1), source.plain(i + 1, last)
            if first == i or a is None or b is None or '"' in a + b:
                return
            kind, other = OTHER_OPERATOR[op]
            form = CONDITION if op in ("&&", "||") else VALUE
            yield self.fault(kind, first, last, f"{a} {other} {b}", form)
            for kept in DROPPED.get(op, ""):
                yield self.fault("dropped term", first, last, a if kept == "a" else b, form)
        elif op in ("-", "!") and source.tokens[i].is_prefix() and not source.ends_value(i - 1):
            last = source.postfix_end(i + 1)
            yield self.fault("sign" if op == "-" else "condition", i, last, source.plain(i + 1, last))

    def conditions(self, i):
        source = self.source
        if source.word(i) in ("if", "while") and source.word(i + 1) == "(":
            first, last = self.last_part(i + 1)
            declares = any(source.word(k) == "=" and source.parent[k] == i + 1 for k in range(first, last))
            if not declares:
                yield self.fault("removed guard", first, last, "false", CONDITION)
        elif source.word(i) == "?" and source.is_binary(i):
            first = source.left(i, STRENGTH["?"])
            for after in ("true", "false"):
                yield self.fault("condition", first, i - 1, after, CONDITION)

    def last_part(self, opener):
        """Returns the first and last token of the condition in `(initialiser; condition)`."""
        source, last = self.source, self.source.partner[opener] - 1
        semicolons = [k for k in range(opener, last) if source.word(k) == ";" and source.parent[k] == opener]
        return (semicolons[-1] if semicolons else opener) + 1, last

    def literals(self, i):
        source, token = self.source, self.source.tokens[i]
        if token.kind == "number":
            after = other_number(token.text)
            pure_virtual = source.word(i - 1) == "=" and source.word(i - 2) in (")", "const", "override", "noexcept")
            array_length = source.word(i - 1) == "[" and source.tokens[i - 2].space_before and source.ends_value(i - 3)
            if after and not pure_virtual and not array_length:
                yield self.fault("off by one" if after.rstrip("uUlL").isdigit() else "factor", i, i, after)
                yield self.fault("off by one", i, i, number_before(token.text))
        elif token.text in ("true", "false"):
            yield self.fault("flag", i, i, "false" if token.text == "true" else "true")

    def names(self, i):
        source, name = self.source, self.source.word(i)
        before, following = source.word(i - 1), source.word(i + 1)
        if before == "." and name in OTHER_AXIS and following != "(" and source.word(i - 2) not in ("{", ","):
            first = source.postfix_begin(i)
            yield self.fault("axis", first, i, f"{source.plain(first, i - 1)}{OTHER_AXIS[name]}")
        if re.fullmatch(r"\w*options_?", name) and before in ("(", ",", "{"):
            last = source.postfix_end(i)
            if source.word(last + 1) in (")", ",", "}"):
                given = source.plain(i, last)
                yield self.fault("ignored option", i, last, f"std::remove_cvref_t<decltype({given})>()")

        if re.fullmatch(r"(epoch|step|seed|place|position|offset|first|count)_?", name) and source.postfix_end(i) == i and following in (")", ",", "}"):
            first = source.postfix_begin(i)
            if source.word(first - 1) in ("(", ",", "{") and self.in_code(i):
                yield self.fault("ignored argument", first, i, f"std::remove_cvref_t<decltype({source.plain(first, i)})>()")

    def calls(self, i):
        source = self.source
        if source.word(i) != "(" or not source.opens(i) or not self.in_code(i):
            return
        name = source.partner[i - 1] - 1 if source.word(i - 1) == ">" and source.closes(i - 1) else i - 1
        first, last = source.postfix_begin(name), source.partner[i]
        if not self.is_called(first, name) or source.plain(first, last) is None:
            return
        if source.word(name) in OTHER_NAME:
            other = OTHER_NAME[source.word(name)]
            yield self.fault("min or max", first, last, source.plain(first, name - 1) + other + source.plain(name + 1, last))
        if source.word(name) not in SYMMETRIC:
            arguments = source.arguments(i)
            texts = [source.plain(*argument) for argument in arguments]
            for k in range(len(arguments) - 1):
                if self.look_alike(arguments[k], arguments[k + 1]):
                    swapped = [*texts[:k], texts[k + 1], texts[k], *texts[k + 2:]]
                    yield self.fault("swapped arguments", first, last, f"{source.plain(first, i)}{', '.join(swapped)})")

    def is_called(self, first, name):
        """Returns true if this name is called as a function. If a type precedes it, as in `T f(a, b)`, it is
        declared."""
        source, before = self.source, self.source.tokens[first - 1]
        if source.tokens[name].kind != "word" or source.word(name) in ("if", "for", "while", "switch", "catch"):
            return False
        return before.text in STATEMENT_WORDS or not (before.kind == "word" or before.text in (">", "*", "&", "&&", "]"))

    def look_alike(self, *arguments):
        """Returns true if the arguments have the same structure of names, since others rarely have the same
        type."""
        a, b = ([token.kind if token.is_operand() else token.text for token in self.source.tokens[first:last + 1]]
                for first, last in arguments)
        return a == b and a[0] == "word"

    def statements(self, i):
        source = self.source
        before = source.word(i - 1)
        if not (before in (";", "{", "}", "else") or (before == ")" and self.closes_control(i - 1))):
            return
        if source.declares(source.parent[i]) or source.word(source.parent[i]) != "{" or source.word(i) in NO_STATEMENT:
            return
        start = i + 1 if source.word(i) in ("++", "--", "*") else i
        if source.tokens[start].kind != "word" and source.word(start) != "(":
            return
        end = source.postfix_end(start)
        following = source.word(end + 1)
        if following in ("+=", "-=", "*=", "/=", "=", "|=", "&="):
            end = source.right(end + 1, 0)
        elif not (following == ";" and (start > i or source.word(end) == ")")):
            return
        if source.word(end + 1) == ";":
            yield self.fault("removed statement", i, end, "", STATEMENT)

    def jumps(self, i):
        source = self.source
        if source.word(i) in ("break", "continue") and source.word(i + 1) == ";" and source.word(i + 2) != "else":
            yield self.fault("removed jump", i, i, "", JUMP)

    def loops(self, i):
        """Yields the fault that a loop ends after one iteration."""
        source = self.source
        if source.word(i) != "for" or source.word(i + 1) != "(":
            return
        closer = source.partner[i + 1]
        first, header = closer + 1, source.plain(i, closer)
        if header is None or source.word(first) in ("for", "if", "while", "do", "switch", "try", ";"):
            return
        last = source.partner[first] if source.word(first) == "{" else source.end_of_statement(first)
        tokens = source.tokens
        form = CONTINUED_BODY if any(source.word(k) == "continue" for k in range(first, last)) else BODY
        yield Fault(self.file, "one turn", source.line(i), header, "the first turn alone", tokens[first].begin, tokens[last].end, form)

    def closes_control(self, closer):
        opener = self.source.partner.get(closer, 0)
        return self.source.word(opener - 1) in ("if", "for", "while", "constexpr")


def number_before(text):
    match = re.fullmatch(r"([1-9]\d*)([uUlL]*)", text)
    return f"{int(match[1]) - 1}{match[2]}" if match else None


def other_number(text):
    """Returns the number plus 1 or, if it has a fraction, times 2."""
    match = re.fullmatch(r"(\d+)([uUlL]*)", text)
    if match:
        return f"{int(match[1]) + 1}{match[2]}"
    match = re.fullmatch(r"(\d*\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)([fF]?)", text)
    return f"{(2 * float(match[1])) or 1.0!r}{match[2]}" if match else None

