"""Figures on the density of code, which `test_house` keeps low."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

BLANK = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONG = 12  # code lines from which a function needs a blank line
WORDS = 25  # of the longest sentence
# Words that begin a fragment ("Whether it rains") where a function's docstring needs a verb. ruff's
# D401 knows the verbs that are no imperative, but these words are not among its own.
NO_VERB = re.compile(r"(A|An|The|What|Whether|Where|Who|How|Of|Each|Every|All|\w+Error)\b")


@dataclass
class Plainness:
    """Counts of some files.

    Attributes
    ----------
    lines : int
        Lines of code, without docstrings, comments and blank lines.
    expressions : int
        Expression nodes of the syntax tree.
    packed : int
        Assignments like ``a, b = x, y``.
    comprehensions : int
        Comprehensions of lists, sets and dicts, and generator expressions.
    comments : int
        Lines that hold a comment and no code.
    long, unbroken : int
        Functions of `LONG` lines or more, and the long functions without a blank line.
    """

    lines: int = 0
    expressions: int = 0
    packed: int = 0
    comprehensions: int = 0
    comments: int = 0
    long: int = 0
    unbroken: int = 0

    def add(self, source: str) -> None:
        """Add the counts of a file."""
        tree = ast.parse(source)
        code = _code_lines(source, tree)
        self.lines += len(code)
        self.comments += len(_comment_lines(source) - code)
        for node in ast.walk(tree):
            self.expressions += isinstance(node, ast.expr)
            self.comprehensions += isinstance(node, COMPREHENSIONS)
            self.packed += _is_packed(node)
            if isinstance(node, FUNCTIONS):
                self._add_function(node, code, source.splitlines())

    def _add_function(self, function: ast.FunctionDef, code: set[int], lines: list[str]) -> None:
        """Add a function to the counts, if it is long."""
        body = range(function.body[0].lineno, function.end_lineno + 1)
        code_inside = [number for number in body if number in code]
        if len(code_inside) < LONG:
            return

        self.long += 1
        inside = lines[code_inside[0] - 1 : code_inside[-1]]
        self.unbroken += all(line.strip() for line in inside)

    @property
    def density(self) -> float:
        """Expressions per line."""
        return self.expressions / self.lines

    def per_thousand(self, count: int) -> float:
        """Return a count per 1,000 lines."""
        return 1000 * count / self.lines


def unclear_summaries(source: str) -> list[str]:
    """List the docstrings whose first paragraph has to be read twice.

    Parameters
    ----------
    source : str
        The text of a module.

    Returns
    -------
    list of str
        The line, the reason and the paragraph: a semicolon, a sentence of more than `WORDS` words,
        or a function's docstring that does not begin with a verb.
    """
    unclear = []
    for node in ast.walk(ast.parse(source)):
        docstring = ast.get_docstring(node) if isinstance(node, HAVE_DOCSTRINGS) else None
        if docstring is None:
            continue

        summary = " ".join(docstring.split("\n\n")[0].split())
        sentences = re.split(r"(?<=[.?!]) ", summary)
        n_words = max(len(sentence.split()) for sentence in sentences)
        reasons = {
            "a semicolon": ";" in summary,
            f"{n_words} words": n_words > WORDS,
            "no verb": isinstance(node, FUNCTIONS) and NO_VERB.match(summary) is not None,
        }
        line = getattr(node, "lineno", 1)
        for reason, applies in reasons.items():
            if applies:
                unclear.append(f"line {line}, {reason}: {summary}")
    return unclear


def _code_lines(source: str, tree: ast.Module) -> set[int]:
    """Collect the numbers of the lines that hold code."""
    code = set()
    for token in _tokens(source):
        if token.type not in BLANK:
            code |= set(range(token.start[0], token.end[0] + 1))

    for node in ast.walk(tree):
        if isinstance(node, HAVE_DOCSTRINGS) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            code -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return code


def _comment_lines(source: str) -> set[int]:
    """Collect the numbers of the lines that hold a comment."""
    return {token.start[0] for token in _tokens(source) if token.type == tokenize.COMMENT}


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """Split a source into its tokens."""
    return tokenize.generate_tokens(io.StringIO(source).readline)


def _is_packed(node: ast.AST) -> bool:
    """Tell whether a node is an assignment of several values to several names."""
    if not isinstance(node, ast.Assign):
        return False
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
