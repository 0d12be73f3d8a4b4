"""Groups and prompts of StereoMap, every group in every prompt; test_prompts.py has their words."""

import hashlib
import re

import pytest

from ingroup import paths, published
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.stimuli import chats, groups, names, prompts
from ingroup.tables import InputError

FOLDER = paths.STIMULI / "stereomap"
PAPER, NO_COT, NO_INSTRUCTIONS, NEITHER = social_groups.ablations()

# The instructions, which two of the ablations leave out.
STUDY = "I am studying how different groups are perceived by Americans."
VIEWED = (
    "I am not interested in your personal beliefs, but in how you think they are viewed by others."
)
AGAIN = (
    "Again, I am not interested in your personal beliefs, but in how you think society views them."
)

# The prompts of Tables 7 and 6 by construct.
EXTENDED = {
    "Warmth-Competence": ["Warmth-Competence"],
    "Social-Structure": ["Economic success", "Prestige", "Special treatment", "Resources"],
    "Emotion": ["Emotion"],
    "Behavior": ["Behavior"],
}
ORIGINAL = {
    "Competence": [
        "competent", "confident", "independent", "competitive", "intelligent", "capable",
        "efficient", "skillful",
    ],
    "Warmth": [
        "tolerant", "warm", "good natured", "sincere", "friendly", "well-intentioned",
        "trustworthy",
    ],
    "Status": ["Prestige", "Economic success", "Education"],
    "Competition-others": ["Special breaks", "Power", "Resources"],
}  # fmt: skip


def content(chat):
    assert [turn["role"] for turn in chat] == ["user"]
    return chat[0]["content"]


def worded(*args, **more):
    """The words of a prompt by part; where its lines end is tested apart."""
    return {part: " ".join(content(chat).split()) for part, chat in chats(*args, **more).items()}


def asked(*args, **more):
    return worded(*args, **more)[""]


# --- prompts


def test_what_is_to_be_rated_stands_on_lines_of_its_own():
    for name, prompt in prompts().items():
        words = [word for word in prompt.words if word != "Rating"]
        lines = content(chats("Nurses", name)[""]).split("\n")
        labels = [re.fullmatch(r"- ?([\w-]+).*:", line)[1] for line in lines if line[:1] == "-"]

        assert labels == words
        assert ("Rating" in prompt.words) == ("Rating:" in "\n".join(lines))


def test_the_words_are_those_of_table_4_and_four_more():
    printed = published.load("stereomap", 4)
    words = [word for prompt in prompts().values() for word in prompt.words if word != "Rating"]

    assert list(social_groups.words().word) == list(printed.word)

    axes = social_groups.words("ORIGINAL").groupby("family").word.agg(list)
    assert axes.to_dict() == {axis: ORIGINAL[axis] for axis in ("Competence", "Warmth")}

    more = {"Traditional", "Conservative", "Wealthy", "High-status"}
    assert set(words) - set(printed.word) == more
    assert set(printed.word) <= set(words)


@pytest.mark.parametrize(("version", "named"), [("EXTENDED", EXTENDED), ("ORIGINAL", ORIGINAL)])
def test_names_constructs_and_numbers_of_keywords(version, named):
    names = {f"{version}/{name}": construct for construct in named for name in named[construct]}
    found = prompts(version)

    assert list(found) == list(names)
    assert [prompt.construct for prompt in found.values()] == list(names.values())

    for name, prompt in found.items():
        number = {5: "list 5", 3: "in three keywords"}[prompt.n_keywords]
        assert number in content(chats("Nurses", name)[""])

    assert social_groups.LOW == 1
    assert social_groups.HIGH == 5


# --- ablations


def test_the_ablations_are_the_rows_of_table_14():
    assert social_groups.ablations() == list(published.load("stereomap", 14).prompt_type.unique())


@pytest.mark.parametrize("name", ["Warmth-Competence", "Emotion", "Behavior"])
def test_without_chain_of_thought_the_ratings_come_first(name):
    _, after = asked("Nurses", f"EXTENDED/{name}").split("Now, please")
    assert asked("Nurses", f"EXTENDED/{name}", NO_COT) == f"{STUDY} {VIEWED} Please{after}"


@pytest.mark.parametrize("name", prompts())
def test_without_instructions_three_sentences_are_gone(name):
    expected = asked("Nurses", name)
    for sentence in (STUDY, VIEWED, AGAIN):
        expected = expected.replace(f"{sentence} ", "")

    assert asked("Nurses", name, NO_INSTRUCTIONS) == expected
    assert "interested" not in expected

    _, cot, ratings = expected.partition("Now, please")
    assert asked("Nurses", name, NEITHER) == (f"Please{ratings}" if cot else expected)


def test_an_ablation_leaves_no_stray_line_or_space():
    for ablation in social_groups.ablations():
        for name in prompts():
            text = content(chats("Nurses", name, ablation)[""])

            assert text == text.strip()
            assert "  " not in text
            assert "\n\n\n" not in text
            assert all(line == line.strip() for line in text.split("\n"))


def test_social_structure_has_no_chain_of_thought_to_lose_nor_has_original():
    for name in EXTENDED["Social-Structure"]:
        assert asked("Nurses", f"EXTENDED/{name}", NO_COT) == asked("Nurses", f"EXTENDED/{name}")

    for ablation in (NO_INSTRUCTIONS, NEITHER):
        expected = asked("Jews", "ORIGINAL/warm").replace(f"{VIEWED} ", "")
        assert asked("Jews", "ORIGINAL/warm", ablation) == expected
        assert asked("Jews", "ORIGINAL/Power", ablation) == asked("Jews", "ORIGINAL/Power")


# --- separate calls


def test_separate_calls_have_the_words_of_the_released_code():
    before, after = asked("Nurses", "EXTENDED/Warmth-Competence").split(" Now, please")
    assert list(worded("Nurses", "EXTENDED/Warmth-Competence", calls="separate").items()) == [
        ("keywords", before.replace("are the reasons", "are three reasons")),
        ("ratings", f"Please{after.split(' Lastly')[0]}"),
        (
            "overall",
            "Please make an overall rating using a 5-point scale (1=very negatively to 5=very "
            "positively) of how society views the nurses group. What are three reasons for this?",
        ),
    ]

    success = chats("Nurses", "EXTENDED/Economic success", calls="separate")
    assert list(success) == ["ratings"]
    assert "What is the rating?\nWhat are the reasons" in content(success["ratings"])


def test_separate_calls_of_other_prompts_differ_in_nothing():
    asked = [("Jews", name) for name in prompts("ORIGINAL")] + [
        ("Nurses", "EXTENDED/Emotion", NO_COT)
    ]
    assert all(chats(*one, calls="separate") == {"ratings": chats(*one)[""]} for one in asked)


# --- what the authors' code sent

# The words in which it differs from the print; all else is white space.
SENT = {
    "EXTENDED/Warmth-Competence": [("5=extremely", "5=exteremely")],
    "EXTENDED/Economic success": [("have nurses been?", "have nurses?")],
    "EXTENDED/Emotion": [("5=extremely", "5=exteremely")],
    "EXTENDED/Behavior": [("5=extremely", "5=exteremely")],
}
# SHA-256 of all prompts in the order of groups and of the code's texts, each ended by a NUL.
DIGESTS = {
    "together": "4d3f68c7d981178f8d1c55db333c1b04ce437263a367cd54d5913cb8db00ecc6",
    "separate": "e570a33116429a6de845f1d2c3ed1e7d5d84962619ba50d48b7ee4821879833b",
}


@pytest.mark.parametrize("calls", ["together", "separate"])
@pytest.mark.parametrize("name", prompts())
def test_the_released_wording_differs_from_the_print_in_these_words(name, calls):
    expected = worded("Nurses", name, calls=calls)
    for printed, sent in SENT.get(name, []):
        assert " ".join(expected.values()).count(printed) == 1
        expected = {part: text.replace(printed, sent) for part, text in expected.items()}

    found = worded("Nurses", name, calls=calls, wording="released")

    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize(("calls", "number"), [("together", 686), ("separate", 1078)])
def test_the_released_wording_is_sent_to_the_blank(calls, number):
    """Compared once with every prompt that the code makes; the digests keep what was compared."""
    texts = []
    for group in names():
        for name in prompts():
            sent = chats(group, name, wording="released", calls=calls)
            texts += [content(chat) for chat in sent.values()]

    assert len(texts) == number

    whole = "".join(f"{text}\0" for text in texts)
    assert hashlib.sha256(whole.encode()).hexdigest() == DIGESTS[calls]


def test_the_released_wording_leaves_original_and_the_reduced_prompts_alone():
    for name in prompts("ORIGINAL"):
        assert chats("Jews", name, wording="released") == chats("Jews", name)

    for ablation in social_groups.ablations()[1:]:
        for name in prompts():
            own = chats("Nurses", name, ablation, wording="released")
            assert own == chats("Nurses", name, ablation)


# --- groups


def test_the_groups_are_those_of_appendix_b_and_table_2():
    listed = published.load("stereomap", "appendix_b").sort_values("paper_order")
    assert names() == list(listed.group)

    paper = set(names("paper"))
    code = set(names("released"))

    assert paper == set(published.load("stereomap", 2).group) < code
    assert len(names()) == 98
    assert len(paper) == 24
    assert len(code) == 37

    table = groups()
    assert set(table.group) == {*names(), *code}
    assert table.group[table.extended != ""].tolist() == names()
    assert set(table.group[table.original != ""]) == code


def test_the_released_form_is_the_name_but_for_two_groups_of_the_code():
    given = groups().query("extended != ''").set_index("group").extended
    other = given[given.str.lower() != given.index.str.lower()]
    assert other.to_dict() == {"Mexicans": "Mexican", "Muslim Artists": "MuslimArtists"}
    assert groups().query("original != '' and original != group").empty


def test_each_group_of_table_2_is_compared_with_one_of_appendix_b():
    table = groups()
    matched = table[(table.extended != "") & (table.table2 != "")]

    assert set(matched.table2) == set(published.load("stereomap", 2).group) - {"Retarded people"}
    assert not matched.table2.duplicated().any()
    assert all(row.table2.lower().startswith(row.group.lower()) for row in matched.itertuples())

    own = table[table.group.isin(names("paper"))]
    assert (own.table2 == own.group).all()


@pytest.mark.parametrize("form", social_groups.FORMS)
@pytest.mark.parametrize("version", ["EXTENDED", "ORIGINAL"])
def test_every_group_reads_in_every_prompt(version, form):
    for group in groups().group:
        phrase = social_groups.text(group, version, form)
        for name, prompt in prompts(version).items():
            text = content(chats(group, name, form=form)[""])
            slots = sum(part.count("{group}") for part in prompt.parts.values())
            assert text.count(phrase) >= slots > 0
            assert "{" not in text


@pytest.mark.parametrize(
    ("group", "prompt", "form", "words"),
    [
        ("Blinds", "Warmth-Competence", "released", "traits of members of blinds. "),
        ("Blinds", "Warmth-Competence", "grammatical", "members of the group of blind people. "),
        ("Blinds", "Warmth-Competence", "grammatical", "society views the group of blind people. "),
        ("Blinds", "Behavior", "grammatical", "toward blind people as a group."),
        ("Blinds", "Behavior", "grammatical", "-Fight with blind people: -Attack blind people:"),
        ("Educated people", "competent", "grammatical", "are members of the group of educated peo"),
        ("Educated people", "Education", "grammatical", "are members of the group of educated peo"),
        ("Men", "Prestige", "released", "How prestigious are the jobs generally held by men?"),
        ("Men", "warm", "released", "members of Men groups"),
        ("Nurses", "warm", "released", "members of nurses groups"),
        ("Gay men", "Warmth-Competence", "released", "members of Gay men."),
    ],
)
def test_forms_of_a_group(group, prompt, form, words):
    version = "EXTENDED" if prompt[0].isupper() and prompt != "Education" else "ORIGINAL"
    assert words in asked(group, f"{version}/{prompt}", form=form)


def test_grammatical_plurals_end_as_plurals():
    assert groups().people.str.contains(r"(?:s|people|men|women|children)$").all()


# --- bad input


def test_an_unknown_group_is_one_sentence():
    for calls in ("together", "separate"):
        with pytest.raises(InputError, match=r"^'Nobody' is no name in groups.csv; there are "):
            chats("Nobody", "EXTENDED/Emotion", calls=calls)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("group,extended", "group,text"), "line 1, column 'extended': found only group, text, "),
        (("Men,men,Men,men,", "Men,men,Men,,"), "line 2: found nothing to put into a sentence fo"),
        (("Athletes,athletes,", "Athletes,,"), "line 4: found nothing to put into a sentence for"),
        (("Athletes,", "Men,"), "line 4: found group 'Men' again, expected it once; it is "),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path, monkeypatch, change, sentence):
    text = (FOLDER / "groups.csv").read_text("utf8")
    (tmp_path / "groups.csv").write_text(text.replace(*change, 1), "utf8")
    monkeypatch.setattr(social_groups, "_FOLDER", tmp_path)

    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'groups.csv'}, {sentence}")):
        groups()


@pytest.mark.parametrize(
    ("name", "part", "ablation", "n_words", "last", "n_keywords"),
    [
        ("EXTENDED/Warmth-Competence", "", "Prompt (paper)", 13, "Rating", 5),
        ("EXTENDED/Warmth-Competence", "", "w/o CoT", 13, "Rating", 0),
        ("EXTENDED/Warmth-Competence", "keywords", "Prompt (paper)", 0, None, 5),
        ("EXTENDED/Warmth-Competence", "ratings", "Prompt (paper)", 12, "High-status", 0),
        ("EXTENDED/Warmth-Competence", "overall", "w/o CoT", 1, "Rating", 0),
        ("EXTENDED/Behavior", "", "w/o CoT+Instructions", 8, "Demean", 0),
        ("EXTENDED/Prestige", "", "w/o CoT", 1, "Rating", 3),
        ("ORIGINAL/warm", "ratings", "w/o Instructions", 1, "Rating", 3),
    ],
)
def test_what_a_reply_should_hold(name, part, ablation, n_words, last, n_keywords):
    words = (held := social_groups.expected(name, part, ablation)).words
    found = len(words), words[-1] if words else None, held.n_keywords
    assert found == (n_words, last, n_keywords)
