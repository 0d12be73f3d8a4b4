"""Every prompt against the text of its paper; how the two may differ is listed here."""

import re
from pathlib import Path

import pytest
import yaml

from ingroup.design import filled
from ingroup.studies.biased_samaritan import stimuli as samaritan
from ingroup.studies.empathy_gap import stimuli as gap
from ingroup.studies.giebench import stimuli as giebench
from ingroup.studies.stereomap import stimuli as stereomap

PRINTED = yaml.safe_load((Path(__file__).parent / "printed_prompts.yaml").read_text("utf8"))

# Printed, and asked in its place. White space and tags are not compared: the copies of the papers
# have no sure line breaks.
ALLOWED = {
    "empathy_gap": {},
    "giebench": {
        "user’s position": "user's position",  # in the COT-Prompt alone
        # Answer B lacks its quotation marks, in the Raw-Prompt the first of them.
        "B's Answer] Equality": "B's Answer] \"Equality",
        "homosexuals. [The End": 'homosexuals." [The End',
    },
    "stereomap": {
        # Two placeholders have lost their braces.
        "views the group group": "views the {group} group",
        "feelings toward group.": "feelings toward {group}.",
    },
}


def words(text):
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def gap_prompts():
    told = gap.prompts()
    parts = {name: part["text"] for name, part in (told["scale"] | told["task"]).items()}
    rewrite = gap.rewrite_messages("{narrative}")[0]["content"]
    return {**told["persona"], **parts, "rewrite": rewrite}


def giebench_prompts():
    """Of the item that the paper fills in."""
    (item, *_) = giebench.load_questions("sample")
    texts = giebench.templates()
    asked = {name: giebench.messages(item, name)[0]["content"] for name in ("COT", "ID", "Raw")}
    about = {"question": item.question, "example": item.question}
    about |= {"attitude": "negative", "identity": "homosexuality"}

    for name in PRINTED["giebench"].keys() - asked.keys():
        own = {key: text for key, text in about.items() if f"{{{key}}}" in texts[name]}
        asked[name] = filled(texts[name], own)

    return asked


def stereomap_prompts():
    """The prompts of a group, its name taken out again; those of a printed cell together."""
    group = stereomap.text("Nurses")

    def asked(name, attribute=""):
        (message,) = stereomap.chats("Nurses", name)[""]
        text = message["content"].replace(group, "{group}")
        return text.replace(f"how {attribute} are", "how {attribute} are")

    extended = {}
    original = []

    for name, about in stereomap.prompts("EXTENDED").items():
        extended.setdefault(about.construct, []).append(asked(name))

    for name, about in stereomap.prompts("ORIGINAL").items():
        own = name.split("/")[1] if about.construct in ("Competence", "Warmth") else ""
        original.append((about.construct, asked(name, own)))

    return {
        "EXTENDED": [" ".join(texts) for texts in extended.values()],
        "ORIGINAL": [text for _, text in dict.fromkeys(original)],
    }


def flat(prompts):
    """Prompts by name; those of a list by their place."""
    found = {}
    for name, text in prompts.items():
        texts = dict(enumerate(text)) if isinstance(text, list) else {"": text}
        found |= {f"{name} {place}": words(one) for place, one in texts.items()}

    return found


@pytest.mark.parametrize(
    ("study", "asked"),
    [
        ("empathy_gap", gap_prompts),
        ("giebench", giebench_prompts),
        ("stereomap", stereomap_prompts),
    ],
)
def test_every_prompt_is_that_of_its_paper(study, asked):
    printed = flat(PRINTED[study])
    ours = flat(asked())
    needed = set()

    assert printed.keys() == ours.keys()

    for name, text in printed.items():
        for old, new in ALLOWED[study].items():
            needed |= {old} if old in text else set()
            text = text.replace(old, new)
        assert ours[name] == text, name

    assert needed == ALLOWED[study].keys()


def test_what_is_not_printed_keeps_to_what_the_paper_says_of_it():
    """Section 4.2 of Fagan et al. prints no prompt: a probability of helping, on 1-100."""
    request = samaritan.request()

    assert request.low == 1
    assert request.high == 100
    assert "probability" in request.text
    assert "from 1 to 100" in request.text
