"""Groups and prompts of StereoMap, every group in every prompt; test_prompts.py has their words."""

import hashlib
import re

import pytest

from ingroup import paths, published
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.stimuli import chats, groups, names, prompts
from ingroup.tables import InputError

FOLDER = paths.STIMULI / "stereomap"
FIRST_PROMPT = "EXTENDED/Warmth-Competence"
BEHAVIOR = "EXTENDED/Behavior"
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
        "competent",
        "confident",
        "independent",
        "competitive",
        "intelligent",
        "capable",
        "efficient",
        "skillful",
    ],
    "Warmth": [
        "tolerant",
        "warm",
        "good natured",
        "sincere",
        "friendly",
        "well-intentioned",
        "trustworthy",
    ],
    "Status": ["Prestige", "Economic success", "Education"],
    "Competition-others": ["Special breaks", "Power", "Resources"],
}


def content(chat):
    assert [turn["role"] for turn in chat] == ["user"]
    return chat[0]["content"]


def worded(*args, **more):
    """The words of a prompt by part; where its lines end is tested apart."""
    texts = {}
    for part, chat in chats(*args, **more).items():
        texts[part] = " ".join(content(chat).split())
    return texts


def prompt_of(*args, **more):
    """The words of a prompt that is asked in one call."""
    return worded(*args, **more)[""]


def single_words(prompt):
    """What is to be rated, without the overall rating."""
    return [word for word in prompt.words if word != "Rating"]


# --- prompts


@pytest.mark.parametrize("name", prompts())
def test_what_is_to_be_rated_stands_on_lines_of_its_own(name):
    prompt = prompts()[name]
    text = content(chats("Nurses", name)[""])

    labels = []
    for line in text.split("\n"):
        if line.startswith("-"):
            labels.append(re.fullmatch(r"- ?([\w-]+).*:", line)[1])
    assert labels == single_words(prompt)
    assert ("Rating" in prompt.words) == ("Rating:" in text)


def test_the_words_are_those_of_table_4_and_four_more():
    printed = set(published.load("stereomap", 4).word)
    in_prompts = set()
    for prompt in prompts().values():
        in_prompts.update(single_words(prompt))

    assert in_prompts - printed == {"Traditional", "Conservative", "Wealthy", "High-status"}
    assert printed <= in_prompts


def test_the_words_of_dimensions_are_those_of_table_4():
    printed = published.load("stereomap", 4)
    assert social_groups.words().word.tolist() == printed.word.tolist()


def test_the_words_of_the_original_axes_are_those_of_its_prompts():
    words = social_groups.words("ORIGINAL").groupby("family").word.agg(list)
    assert words.to_dict() == {
        "Competence": ORIGINAL["Competence"],
        "Warmth": ORIGINAL["Warmth"],
    }


@pytest.mark.parametrize(("version", "names_of"), [("EXTENDED", EXTENDED), ("ORIGINAL", ORIGINAL)])
def test_names_and_constructs_of_prompts(version, names_of):
    expected = []
    for construct, own_names in names_of.items():
        expected += [(f"{version}/{name}", construct) for name in own_names]

    constructs = [(name, prompt.construct) for name, prompt in prompts(version).items()]

    assert constructs == expected


@pytest.mark.parametrize("version", ["EXTENDED", "ORIGINAL"])
def test_a_prompt_asks_for_its_number_of_keywords(version):
    phrase_of = {5: "list 5", 3: "in three keywords"}
    for name, prompt in prompts(version).items():
        assert phrase_of[prompt.n_keywords] in content(chats("Nurses", name)[""])


def test_the_scale_is_from_1_to_5():
    assert social_groups.LOW == 1
    assert social_groups.HIGH == 5


# --- ablations


def test_the_ablations_are_the_rows_of_table_14():
    assert social_groups.ablations() == list(published.load("stereomap", 14).prompt_type.unique())


@pytest.mark.parametrize("name", ["Warmth-Competence", "Emotion", "Behavior"])
def test_without_chain_of_thought_the_ratings_come_first(name):
    whole = prompt_of("Nurses", f"EXTENDED/{name}")
    _, ratings = whole.split("Now, please")

    reduced = prompt_of("Nurses", f"EXTENDED/{name}", NO_COT)

    assert reduced == f"{STUDY} {VIEWED} Please{ratings}"


@pytest.mark.parametrize("name", prompts())
def test_without_instructions_three_sentences_are_gone(name):
    expected = prompt_of("Nurses", name)
    for sentence in (STUDY, VIEWED, AGAIN):
        expected = expected.replace(f"{sentence} ", "")
    _, cot, ratings = expected.partition("Now, please")
    without_both = f"Please{ratings}" if cot else expected

    assert "interested" not in expected
    assert prompt_of("Nurses", name, NO_INSTRUCTIONS) == expected
    assert prompt_of("Nurses", name, NEITHER) == without_both


@pytest.mark.parametrize("ablation", social_groups.ablations())
def test_an_ablation_leaves_no_stray_line_or_space(ablation):
    for name in prompts():
        text = content(chats("Nurses", name, ablation)[""])
        assert text == text.strip()
        assert "  " not in text
        assert "\n\n\n" not in text
        for line in text.split("\n"):
            assert line == line.strip()


@pytest.mark.parametrize("name", EXTENDED["Social-Structure"])
def test_social_structure_has_no_chain_of_thought_to_lose(name):
    whole = prompt_of("Nurses", f"EXTENDED/{name}")
    assert prompt_of("Nurses", f"EXTENDED/{name}", NO_COT) == whole


@pytest.mark.parametrize("ablation", [NO_INSTRUCTIONS, NEITHER])
def test_original_has_no_chain_of_thought_to_lose(ablation):
    warm = prompt_of("Jews", "ORIGINAL/warm")
    power = prompt_of("Jews", "ORIGINAL/Power")

    assert prompt_of("Jews", "ORIGINAL/warm", ablation) == warm.replace(f"{VIEWED} ", "")
    assert prompt_of("Jews", "ORIGINAL/Power", ablation) == power


# --- separate calls


def test_separate_calls_have_the_words_of_the_released_code():
    whole = prompt_of("Nurses", "EXTENDED/Warmth-Competence")
    before, after = whole.split(" Now, please")
    ratings, _ = after.split(" Lastly")

    parts = worded("Nurses", "EXTENDED/Warmth-Competence", calls="separate")

    assert list(parts) == ["keywords", "ratings", "overall"]
    assert parts["keywords"] == before.replace("are the reasons", "are three reasons")
    assert parts["ratings"] == f"Please{ratings}"
    assert parts["overall"] == (
        "Please make an overall rating using a 5-point scale (1=very negatively to 5=very "
        "positively) of how society views the nurses group. What are three reasons for this?"
    )


def test_separate_calls_ask_for_reasons_of_a_single_rating():
    parts = chats("Nurses", "EXTENDED/Economic success", calls="separate")
    assert list(parts) == ["ratings"]
    assert "What is the rating?\nWhat are the reasons" in content(parts["ratings"])


def test_separate_calls_of_other_prompts_differ_in_nothing():
    prompts_of_one_part = [("Jews", name) for name in prompts("ORIGINAL")]
    prompts_of_one_part.append(("Nurses", "EXTENDED/Emotion", NO_COT))

    for prompt in prompts_of_one_part:
        whole = chats(*prompt)[""]
        assert chats(*prompt, calls="separate") == {"ratings": whole}


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

    released = worded("Nurses", name, calls=calls, wording="released")

    assert list(released.items()) == list(expected.items())


@pytest.mark.parametrize(("calls", "n_texts"), [("together", 686), ("separate", 1078)])
def test_the_released_wording_is_sent_to_the_blank(calls, n_texts):
    """Compared once with every prompt that the code makes; the digests keep what was compared."""
    texts = []
    for group in names():
        for name in prompts():
            parts = chats(group, name, wording="released", calls=calls)
            texts += [content(chat) for chat in parts.values()]
    ended = "".join(f"{text}\0" for text in texts)

    assert len(texts) == n_texts
    assert hashlib.sha256(ended.encode()).hexdigest() == DIGESTS[calls]


def test_the_released_wording_leaves_original_alone():
    for name in prompts("ORIGINAL"):
        assert chats("Jews", name, wording="released") == chats("Jews", name)


@pytest.mark.parametrize("ablation", [NO_COT, NO_INSTRUCTIONS, NEITHER])
def test_the_released_wording_leaves_the_reduced_prompts_alone(ablation):
    for name in prompts():
        released = chats("Nurses", name, ablation, wording="released")
        assert released == chats("Nurses", name, ablation)


# --- groups


def test_the_groups_are_those_of_appendix_b_and_table_2():
    appendix_b = published.load("stereomap", "appendix_b").sort_values("paper_order")
    table_2 = published.load("stereomap", 2)
    of_paper = set(names("paper"))
    of_code = set(names("released"))

    assert names() == appendix_b.group.tolist()
    assert of_paper == set(table_2.group)
    assert of_paper < of_code
    assert len(names()) == 98
    assert len(of_paper) == 24
    assert len(of_code) == 37


def test_the_table_of_groups_has_those_of_both_versions():
    table = groups()
    of_code = set(names("released"))

    assert set(table.group) == {*names(), *of_code}
    assert table.group[table.extended != ""].tolist() == names()
    assert set(table.group[table.original != ""]) == of_code


def test_the_released_form_is_the_name_except_for_two_groups_of_the_code():
    table = groups()
    extended = table[table.extended != ""].set_index("group").extended
    original = table[table.original != ""]

    is_other = extended.str.lower() != extended.index.str.lower()
    assert extended[is_other].to_dict() == {
        "Mexicans": "Mexican",
        "Muslim Artists": "MuslimArtists",
    }
    assert original.original.tolist() == original.group.tolist()


def test_each_group_of_table_2_is_compared_with_one_of_appendix_b():
    table = groups()
    matched = table[(table.extended != "") & (table.table2 != "")]
    printed = set(published.load("stereomap", 2).group)

    assert set(matched.table2) == printed - {"Retarded people"}
    assert not matched.table2.duplicated().any()
    for row in matched.itertuples():
        assert row.table2.lower().startswith(row.group.lower())

    of_paper = table[table.group.isin(names("paper"))]
    assert (of_paper.table2 == of_paper.group).all()


@pytest.mark.parametrize("form", social_groups.FORMS)
@pytest.mark.parametrize("version", ["EXTENDED", "ORIGINAL"])
def test_every_group_reads_in_every_prompt(version, form):
    for name, prompt in prompts(version).items():
        n_slots = sum(part.count("{group}") for part in prompt.parts.values())
        assert n_slots > 0
        for group in groups().group:
            text = content(chats(group, name, form=form)[""])
            phrase = social_groups.text(group, version, form)
            assert text.count(phrase) >= n_slots
            assert "{" not in text


@pytest.mark.parametrize(
    ("group", "prompt", "form", "words"),
    [
        ("Blinds", FIRST_PROMPT, "released", "traits of members of blinds. "),
        ("Blinds", FIRST_PROMPT, "grammatical", "members of the group of blind people. "),
        ("Blinds", FIRST_PROMPT, "grammatical", "society views the group of blind people. "),
        ("Blinds", BEHAVIOR, "grammatical", "toward blind people as a group."),
        ("Blinds", BEHAVIOR, "grammatical", "-Fight with blind people: -Attack blind people:"),
        (
            "Educated people",
            "ORIGINAL/competent",
            "grammatical",
            "are members of the group of educated peo",
        ),
        (
            "Educated people",
            "ORIGINAL/Education",
            "grammatical",
            "are members of the group of educated peo",
        ),
        (
            "Men",
            "EXTENDED/Prestige",
            "released",
            "How prestigious are the jobs generally held by men?",
        ),
        ("Men", "ORIGINAL/warm", "released", "members of Men groups"),
        ("Nurses", "ORIGINAL/warm", "released", "members of nurses groups"),
        ("Gay men", FIRST_PROMPT, "released", "members of Gay men."),
    ],
)
def test_forms_of_a_group(group, prompt, form, words):
    assert words in prompt_of(group, prompt, form=form)


def test_grammatical_plurals_end_as_plurals():
    assert groups().people.str.contains(r"(?:s|people|men|women|children)$").all()


# --- bad input


@pytest.mark.parametrize("calls", ["together", "separate"])
def test_an_unknown_group_is_one_sentence(calls):
    with pytest.raises(InputError, match=r"^found 'Nobody', expected a group in groups\.csv \("):
        chats("Nobody", "EXTENDED/Emotion", calls=calls)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "group,extended",
            "group,text",
            "line 1: the column 'extended' is missing, found group, text, ",
        ),
        ("Men,men,Men,men,", "Men,men,Men,,", "line 2: found nothing to put into a sentence fo"),
        ("Athletes,athletes,", "Athletes,,", "line 4: found nothing to put into a sentence for"),
        ("Athletes,", "Men,", "line 4: found group 'Men' again, expected it once; it is "),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path, monkeypatch, old, new, sentence):
    text = (FOLDER / "groups.csv").read_text("utf8")
    file = tmp_path / "groups.csv"
    file.write_text(text.replace(old, new, 1), "utf8")
    monkeypatch.setattr(social_groups, "_FOLDER", tmp_path)

    with pytest.raises(InputError, match=re.escape(f"{file}, {sentence}")):
        groups()


@pytest.mark.parametrize(
    ("name", "part", "ablation", "n_words", "last", "n_keywords"),
    [
        (FIRST_PROMPT, "", "Prompt (paper)", 13, ["Rating"], 5),
        (FIRST_PROMPT, "", "w/o CoT", 13, ["Rating"], 0),
        (FIRST_PROMPT, "keywords", "Prompt (paper)", 0, [], 5),
        (FIRST_PROMPT, "ratings", "Prompt (paper)", 12, ["High-status"], 0),
        (FIRST_PROMPT, "overall", "w/o CoT", 1, ["Rating"], 0),
        ("EXTENDED/Behavior", "", "w/o CoT+Instructions", 8, ["Demean"], 0),
        ("EXTENDED/Prestige", "", "w/o CoT", 1, ["Rating"], 3),
        ("ORIGINAL/warm", "ratings", "w/o Instructions", 1, ["Rating"], 3),
    ],
)
def test_what_a_reply_should_hold(name, part, ablation, n_words, last, n_keywords):
    expected = social_groups.expected_prompt(name, part, ablation)

    assert len(expected.words) == n_words
    assert list(expected.words[-1:]) == last
    assert expected.n_keywords == n_keywords


def test_the_dimensions_of_a_family_are_in_the_order_of_table_4():
    assert social_groups.dimensions_of("Emotion") == ["Contempt", "Admire", "Pity", "Envy"]
    assert social_groups.dimensions_of("Warmth") == ["Sociability", "Morality"]


def test_the_construct_of_a_prompt_is_found_by_its_name_without_the_version():
    of_extended = social_groups.constructs("EXTENDED")
    assert of_extended["Prestige"] == "Social-Structure"
    assert of_extended["Behavior"] == "Behavior"
    assert social_groups.constructs("ORIGINAL")["capable"] == "Competence"
