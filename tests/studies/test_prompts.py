"""Every prompt against the text of its paper; how the two may differ is listed here."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from ingroup.design import fill_template
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
    """A text without tags, its words apart by one space."""
    without_tags = re.sub(r"<[^>]*>", " ", text)
    return " ".join(without_tags.split())


def gap_prompts():
    prompts = gap.prompts()
    (rewrite,) = gap.rewrite_messages("{narrative}")

    texts = dict(prompts["persona"])
    for name, part in {**prompts["scale"], **prompts["task"]}.items():
        texts[name] = part["text"]
    texts["rewrite"] = rewrite["content"]
    return texts


def giebench_prompts():
    """Of the item that the paper fills in."""
    item = giebench.load_questions("sample")[0]
    templates = giebench.templates()
    slots = {
        "question": item.question,
        "example": item.question,
        "attitude": "negative",
        "identity": "homosexuality",
    }

    texts = {}
    for name in ("COT", "ID", "Raw"):
        texts[name] = giebench.messages(item, name)[0]["content"]
    for name in PRINTED["giebench"].keys() - texts.keys():
        template = templates[name]
        used = {slot: text for slot, text in slots.items() if f"{{{slot}}}" in template}
        texts[name] = fill_template(template, used)

    return texts


def stereomap_text(name, attribute=""):
    """A prompt of a group, the names of group and attribute taken out again."""
    (message,) = stereomap.chats("Nurses", name)[""]
    text = message["content"].replace(stereomap.text("Nurses"), "{group}")
    return text.replace(f"how {attribute} are", "how {attribute} are")


def stereomap_prompts():
    """The prompts of each version; those of a printed cell together."""
    texts_of_construct = defaultdict(list)
    for name, prompt in stereomap.prompts("EXTENDED").items():
        texts_of_construct[prompt.construct].append(stereomap_text(name))

    original = []
    for name, prompt in stereomap.prompts("ORIGINAL").items():
        attribute = name.split("/")[1] if prompt.construct in ("Competence", "Warmth") else ""
        text = stereomap_text(name, attribute)
        if (prompt.construct, text) not in original:
            original.append((prompt.construct, text))

    return {
        "EXTENDED": [" ".join(texts) for texts in texts_of_construct.values()],
        "ORIGINAL": [text for _, text in original],
    }


def flat(prompts):
    """Prompts by name; those of a list by their number."""
    texts = {}
    for name, value in prompts.items():
        if isinstance(value, list):
            for number, text in enumerate(value):
                texts[f"{name} {number}"] = words(text)
        else:
            texts[name] = words(value)

    return texts


@pytest.mark.parametrize(
    ("study", "prompts"),
    [
        ("empathy_gap", gap_prompts),
        ("giebench", giebench_prompts),
        ("stereomap", stereomap_prompts),
    ],
)
def test_every_prompt_is_that_of_its_paper(study, prompts):
    printed = flat(PRINTED[study])
    ours = flat(prompts())
    applied = set()

    assert printed.keys() == ours.keys()
    for name, text in printed.items():
        for old, new in ALLOWED[study].items():
            if old in text:
                applied.add(old)
                text = text.replace(old, new)
        assert ours[name] == text, name

    assert applied == ALLOWED[study].keys()


def test_what_is_not_printed_keeps_to_what_the_paper_says_of_it():
    """Section 4.2 of Fagan et al. prints no prompt: a probability of helping, on 1-100."""
    request = samaritan.request()

    assert request.low == 1
    assert request.high == 100
    assert "probability" in request.text
    assert "from 1 to 100" in request.text
