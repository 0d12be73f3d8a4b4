"""The content of an appendix: a list of blocks in their order.

The templates in ``templates`` write each kind of block, once for LaTeX and once for HTML. Texts are
plain, as they were read. A template escapes them.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pandas as pd

DASH = "–"  # in place of a value that is not there


@dataclass(frozen=True)
class Heading:
    """A heading of level 1 (a section), 2 (a subsection) or 3 (a paragraph)."""

    kind: ClassVar = "heading"
    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    kind: ClassVar = "paragraph"
    text: str


@dataclass(frozen=True)
class Missing:
    """A sentence that names what a run lacks."""

    kind: ClassVar = "missing"
    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    kind: ClassVar = "items"
    rows: list[str]


@dataclass(frozen=True)
class Prose:
    """Markdown of this repository's notebooks or cards, never of a model."""

    kind: ClassVar = "prose"
    markdown: str


@dataclass(frozen=True)
class Prompt:
    """One prompt, word for word.

    Attributes
    ----------
    title : str
        The wording of which it is an example.
    turns : list of tuple
        The role of each turn ("system", "user") and its text.
    """

    kind: ClassVar = "prompt"
    title: str
    turns: list[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    caption : str
        The caption above the table.
    rows : DataFrame
        Texts, under the heads that the reader sees.
    """

    kind: ClassVar = "table"
    caption: str
    rows: pd.DataFrame


@dataclass(frozen=True)
class LatexFloats:
    """LaTeX floats of tables in the layout of a paper, written by `ingroup.latex`."""

    kind: ClassVar = "latex_floats"
    latex: str


@dataclass(frozen=True)
class Figure:
    """A figure of a run.

    Attributes
    ----------
    files : list of Path
        Its PDF, its PNG, or both.
    address : str
        Where the files go below the appendix, without their ending.
    width : float
        Inches.
    caption : str
        Its caption, as markdown of the notebook that drew it.
    models : str
        The model that its name says it shows, or "".
    """

    kind: ClassVar = "figure"
    files: list[Path]
    address: str
    width: float
    caption: str
    models: str = ""

    def has(self, kind: str) -> bool:
        """Tell whether the figure has a file of a kind.

        Parameters
        ----------
        kind : {"pdf", "png"}
            The ending of the file.

        Returns
        -------
        bool
            True if such a file is among `files`.
        """
        return any(file.suffix == f".{kind}" for file in self.files)


@dataclass(frozen=True)
class Answer:
    """A question of a checklist or a card, with a run's answer and its source, or "" for both."""

    question: str
    text: str = ""
    source: str = ""


@dataclass(frozen=True)
class Answers:
    """The questions of a checklist or a card."""

    kind: ClassVar = "answers"
    rows: list[Answer]


@dataclass(frozen=True)
class Reference:
    """An entry of the bibliography.

    Attributes
    ----------
    key, authors, title : str
        As in BibTeX.
    where : str
        The venue, or the version of this project.
    year : str
        Four digits.
    identifier : str
        ``doi:...`` or ``arXiv:...``; "" if there is none.
    """

    key: str
    authors: str
    title: str
    where: str
    year: str
    identifier: str


Block = (
    Heading | Paragraph | Missing | Items | Prose | Prompt | Table | LatexFloats | Figure | Answers
)


@dataclass
class Document:
    """An appendix.

    Attributes
    ----------
    title : str
        Names the run.
    blocks : list of Block
        All that stands between the title and the references.
    references : list of Reference
        The papers, and this project last.
    """

    title: str
    blocks: list[Block] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
