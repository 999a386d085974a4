"""Reads C++ just far enough to know where an operand begins and ends.

The sources are formatted by clang-format, so that spaces decide what a parser would need types for: an
operator with spaces on both sides has two operands, and a `<` without them opens template arguments.
"""

import functools
import re

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<string>R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eE][+-]|'?\w|\.)*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>(?<=\s)>>(?=\s)|->|\+\+|--|&&|\|\||<<|<=>|[<>=!+\-*/%&|^]=|::|\.\.\.|.)
""", re.X | re.S | re.M)

STRENGTH = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
            "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1, "?": 0.5, ":": 0.5,
            "=": 0, "+=": 0, "-=": 0, "*=": 0, "/=": 0, "%=": 0, "|=": 0, "&=": 0, "^=": 0}
PREFIXES = {"-", "!", "*", "&", "~", "++", "--"}
OPENERS = {"(": ")", "[": "]", "{": "}", "<": ">"}
STATEMENT_WORDS = {"return", "throw", "else", "do", "case"}


class Token:
    def __init__(self, match, source):
        self.kind, self.text, self.begin, self.end = match.lastgroup, match[0], match.start(), match.end()
        self.space_before = source[self.begin - 1:self.begin].isspace()
        self.spaced = self.space_before and source[self.end:self.end + 1].isspace()

    def is_operand(self):
        return self.kind != "mark"

    def is_prefix(self):
        return self.text in PREFIXES and not self.spaced


class Source:
    """The tokens of a file, the pairs of brackets, and the ends of operands."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(match, text) for match in TOKEN.finditer(text) if match.lastgroup != "skip"]
        self.partner = {}  # index of a bracket -> index of its partner
        self.parent = []   # index of the innermost open bracket, or None
        self._match_brackets()

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def line(self, i):
        return self.text.count("\n", 0, self.tokens[i].begin) + 1

    def plain(self, first, last):
        """Returns the text of these tokens on one line, without comments, or None if a directive is between
        them."""
        pieces, end = [], None
        for token in self.tokens[first:last + 1]:
            between = self.text[end:token.begin] if end is not None else ""
            if re.search(r"^\s*#", between, re.M):
                return None
            pieces.append(" " * bool(between) + token.text)
            end = token.end
        return "".join(pieces)

    def _match_brackets(self):
        open_brackets = []
        for i, token in enumerate(self.tokens):
            if token.text in (")", "]", "}"):
                while open_brackets and self.word(open_brackets[-1]) == "<":
                    open_brackets.pop()
            is_comparison = token.text == ">" and token.spaced
            if open_brackets and token.text == OPENERS[self.word(open_brackets[-1])] and not is_comparison:
                self.partner[i] = open_brackets.pop()
                self.partner[self.partner[i]] = i
            self.parent.append(open_brackets[-1] if open_brackets else None)
            if token.kind == "mark" and (token.text in "([{" or self._opens_template(i)):
                open_brackets.append(i)

    def _opens_template(self, i):
        behind_name = i > 0 and (self.tokens[i - 1].kind == "word" or self.word(i - 1) == "]")
        return self.word(i) == "<" and not self.tokens[i].spaced and behind_name and self.word(i - 1) != "operator"

    def is_binary(self, i):
        token = self.tokens[i]
        if self.word(i - 1) == "operator" or (token.text in ("&", "&&") and self.word(i + 1) == "{"):
            return False
        return token.kind == "mark" and token.text in STRENGTH and token.spaced

    def opens(self, i):
        return i in self.partner and self.partner[i] > i

    def closes(self, i):
        return i in self.partner and self.partner[i] < i

    def ends_value(self, i):
        return self.word(i) not in STATEMENT_WORDS and (self.tokens[i].is_operand() or self.closes(i))

    def _ends_operand(self, i, strength):
        """Returns true if token i, at the same depth, cannot belong to the operand of an operator of this
        strength."""
        token = self.tokens[i]
        if token.text in (",", ";") or token.text in STATEMENT_WORDS:
            return True
        if token.text in ("?", ":"):
            return strength > 0
        return self.is_binary(i) and STRENGTH[token.text] <= strength

    def left(self, i, strength):
        """Returns the first token of the operand that ends right before token i."""
        first = i
        while first > 0:
            k = first - 1
            token = self.tokens[first]
            begins_anew = first < i and (token.is_operand() or (token.is_prefix() and token.space_before))
            if self.closes(k):
                if begins_anew:
                    break
                first = self.partner[k]
                continue
            if self.opens(k) or (begins_anew and self.tokens[k].is_operand()):
                break
            # The same operator on the left belongs to the operand: a - b - c is (a - b) - c.
            if self._ends_operand(k, strength if strength <= 0.5 else strength - 0.5):
                break
            first = k
        return first

    def right(self, i, strength):
        """Returns the last token of the operand that begins right after token i."""
        last = i + 1
        while last < len(self.tokens):
            if self.opens(last):
                last = self.partner[last]
            if last + 1 == len(self.tokens) or self.closes(last + 1) or self._ends_operand(last + 1, strength):
                break
            last += 1
        return last

    def postfix_begin(self, i):
        """Returns the first token of the chain of names, calls and subscripts that ends with token i."""
        while True:
            if self.closes(i):
                i = self.partner[i]
            before = self.word(i - 1)
            if self.opens(i) and not self.tokens[i].space_before and (self.tokens[i - 1].kind == "word" or self.closes(i - 1)):
                i -= 1
            elif before in (".", "->", "::"):
                i -= 2 if self.tokens[i - 2].kind == "word" or self.closes(i - 2) else 1
            else:
                return i

    def postfix_end(self, i):
        """Returns the last token of the chain of names, calls and subscripts that begins with token i."""
        while True:
            if self.opens(i):
                i = self.partner[i]
            following = self.word(i + 1)
            if following in (".", "->", "::"):
                i += 2
            elif self.opens(i + 1) and following in "([<":
                i += 1
            else:
                return i

    def arguments(self, opener):
        """Returns the arguments between brackets, each as its first and last token."""
        closer, found, first = self.partner[opener], [], opener + 1
        for i in range(opener + 1, closer + 1):
            if i == closer or (self.word(i) == "," and self.parent[i] == opener):
                if i > first:
                    found.append((first, i - 1))
                first = i + 1
        return found

    def statement_begin(self, i):
        """Returns the first token of the statement or declaration that contains token i, at its depth."""
        depth = self.parent[i]
        while i > 0 and i - 1 != depth and not (self.parent[i - 1] == depth and self.word(i - 1) in (";", "}")):
            i -= 1
        return i

    @functools.cache
    def declares(self, opener):
        """Returns true if this brace (None: the file) contains declarations and not statements or values."""
        if opener is None:
            return True
        if self.word(opener) != "{":
            return False
        head = range(self.statement_begin(opener), opener)
        words = {self.word(i) for i in head if self.parent[i] == self.parent[opener]}
        return bool(words & {"namespace", "class", "struct", "union", "enum", "extern"}) and "(" not in words

    @functools.cached_property
    def fixed(self):
        """Tokens without faults: the compiler evaluates them, or they only form the text of an error."""
        found = set()
        for i, token in enumerate(self.tokens):
            end = None
            if token.text in ("throw", "static_assert", "using", "typedef", "enum", "alignas"):
                end = self._behind(i, ";")
            elif token.text == "constexpr" and self.word(i - 1) == "if":
                end = self.partner[i + 1]
            elif token.text in ("constexpr", "consteval", "constinit"):
                end = self._end_of_definition(i)
            elif token.text == "case":
                end = self._behind(i, ":")
            elif self.opens(i) and (token.text == "<" or self.word(i - 1) in ("noexcept", "decltype", "sizeof", "requires")):
                end = self.partner[i]
            if end is not None:
                found.update(range(i, end + 1))
        return found

    def _behind(self, i, mark):
        depth = self.parent[i]
        end = self.partner.get(depth, len(self.tokens)) - 1
        return next((k for k in range(i, end) if self.word(k) == mark and self.parent[k] == depth), end)

    def end_of_statement(self, i):
        """Returns the semicolon of the statement that begins with token i and has no block of its own."""
        return self._behind(i, ";")

    def _end_of_definition(self, i):
        semicolon = self._behind(i, ";")
        for k in range(i, semicolon):
            is_body = self.word(k) == "{" and self.word(k - 1) in (")", "const", "noexcept")
            if is_body and self.parent[k] == self.parent[i]:
                return self.partner[k]
        return semicolon
