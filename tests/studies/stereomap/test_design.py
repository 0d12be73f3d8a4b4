"""Designs and jobs of StereoMap: which prompts, in which order, with which seeds."""

import pytest

from ingroup.inference import Sampling
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.design import FIRST_PROMPT, jobs, overview, scored_sampling, trials

PARAMETERS = {
    "MODELS": ["calibrant"],
    "ENGINE": "",
    "READING": "",
    "ENDING": "turn",
    "GROUPS": ["Men", "Nurses"],
    "ORIGINAL_GROUPS": "paper",
    "ROUNDS": 3,
    "ABLATION_ROUNDS": 2,
    "FORM": "released",
    "WORDING": "paper",
    "CALLS": "together",
    "TEMPERATURE": -1.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 800,
    "REASONING": "",
    "SEED": 7,
}


def scored_jobs(parameters):
    """The jobs of READING=expected that read probabilities of the choices."""
    return [job for job in jobs(parameters | {"READING": "expected"}) if job.is_scored]


def test_every_group_is_asked_under_every_prompt():
    """98 groups x 7 prompts of appendix B and Table 7, neighbours with one prompt."""
    groups = stimuli.names()
    prompts = list(stimuli.prompts("EXTENDED"))

    design = trials(groups, prompts)

    assert len(design) == 98 * 7
    first = design[0]
    assert first.condition["inquiry"] == ("Men", FIRST_PROMPT, "")
    assert first.condition["ablation"] == "Prompt (paper)"
    second = design[1]
    assert second.condition["inquiry"] == (groups[1], FIRST_PROMPT, "")
    last = design[-1]
    assert last.condition["inquiry"] == (groups[-1], prompts[-1], "")
    assert last.messages == stimuli.chats(groups[-1], "EXTENDED/Behavior")[""]


def test_separate_calls_ask_one_part_of_all_groups_before_the_next():
    """Three parts of the first prompt, and one of the second."""
    design = trials(["Men", "Nurses"], [FIRST_PROMPT, "EXTENDED/Prestige"], calls="separate")

    group_prompts = [trial.condition["inquiry"] for trial in design]
    groups_and_parts = [(group_prompt.group, group_prompt.part) for group_prompt in group_prompts]
    assert groups_and_parts == [
        ("Men", "keywords"),
        ("Nurses", "keywords"),
        ("Men", "ratings"),
        ("Nurses", "ratings"),
        ("Men", "overall"),
        ("Nurses", "overall"),
        ("Men", "ratings"),
        ("Nurses", "ratings"),
    ]
    for trial, group_prompt in zip(design, group_prompts, strict=True):
        chats = stimuli.chats(group_prompt.group, group_prompt.prompt, calls="separate")
        assert trial.messages == chats[group_prompt.part]


def test_designs_with_other_texts_have_other_fingerprints():
    prompts = ["EXTENDED/Emotion"]
    designs = [
        trials(["Men"], prompts),
        trials(["Men"], prompts, form="grammatical"),
        trials(["Men"], prompts, ablation="w/o CoT"),
        trials(["Men"], prompts, calls="separate"),
        trials(["Men", "Women"], prompts),
    ]

    fingerprints = {design.fingerprint for design in designs}

    assert len(fingerprints) == 5


def test_jobs_are_versions_ablations_and_rounds_with_seeds_of_their_own():
    all_jobs = jobs(PARAMETERS)

    extended = [2 * 7] * 3
    original = [1 * 21] * 3
    reduced_prompts = [2] * 3 * 2
    lengths = [len(job.design) for job in all_jobs]
    assert lengths == extended + original + reduced_prompts
    folders = {job.folder for job in all_jobs}
    assert len(folders) == len(all_jobs) == 12
    seeds = [job.sampling.seed for job in all_jobs[:4]]
    assert seeds == [1007, 2007, 3007, 1008]

    assert all_jobs[3].labels == {
        "version": "ORIGINAL",
        "ablation": "Prompt (paper)",
        "round": 1,
    }
    assert all_jobs[-1].labels["ablation"] == "w/o CoT+Instructions"
    assert all_jobs[0].folder.parts[-3:] == (
        "2-groups",
        "calibrant@transformers",
        "EXTENDED-Prompt-(paper)-released-together-round1",
    )


def test_another_wording_has_folders_and_messages_of_its_own():
    as_paper = jobs(PARAMETERS)
    as_sent = jobs(PARAMETERS | {"WORDING": "released"})

    first = as_sent[0]
    assert first.folder.name == "EXTENDED-Prompt-(paper)-released-together-as-sent-round1"
    assert first.design[0].messages == stimuli.chats("Men", FIRST_PROMPT, wording="released")[""]
    folders = {job.folder for job in [*as_paper, *as_sent]}
    assert len(folders) == 2 * len(as_paper)


def test_without_a_choice_of_groups_all_are_asked():
    everybody = jobs(PARAMETERS | {"GROUPS": [], "ORIGINAL_GROUPS": "released"})

    assert {job.source for job in everybody} == {"groups"}
    assert {len(job.design) for job in everybody} == {98 * 7, 37 * 21, 98}


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ({"MODELS": ["calibrant", "calibrant-null"]}, 24),
        ({"ABLATION_ROUNDS": 0}, 6),
        ({"GROUPS": ["Rich"]}, 9),
    ],
)
def test_how_many_jobs_there_are(change, number):
    assert len(jobs(PARAMETERS | change)) == number


@pytest.mark.parametrize(
    ("model", "temperature"),
    [
        ("text-davinci-003", 0.5),
        ("gpt-3.5-turbo", 1.0),
    ],
)
def test_davinci_is_asked_at_its_own_temperature(model, temperature):
    all_jobs = jobs(PARAMETERS | {"MODELS": [model]})
    assert {job.sampling.temperature for job in all_jobs} == {temperature}


def test_scored_prompts_that_rate_the_same_words_are_one_job_of_one_round():
    """Of EXTENDED the axes, the four of status and competition, emotions, behaviours; of ORIGINAL
    all 21; a job for each reduced prompt."""
    all_jobs = jobs(PARAMETERS | {"READING": "expected"})
    over_the_scale = [job for job in all_jobs if job.is_scored]

    lengths = [len(job.design) for job in over_the_scale]
    assert lengths == [2, 2 * 4, 2, 2, 21, 2, 2, 2]

    prompts = set()
    for job in over_the_scale[:5]:
        group_prompts = job.design.blocks[0].factors["inquiry"]
        prompts.update(group_prompt.prompt for group_prompt in group_prompts)
    assert prompts == {*stimuli.prompts("EXTENDED"), *stimuli.prompts("ORIGINAL")}

    assert {job.labels["round"] for job in over_the_scale} == {1}
    folders = {job.folder for job in all_jobs}
    assert len(folders) == len(all_jobs) == 8 + 12


def test_free_text_stays_the_same_beside_scored_answers():
    all_jobs = jobs(PARAMETERS | {"READING": "expected"})
    free_keys = [job.key for job in all_jobs if not job.is_scored]

    assert free_keys == [job.key for job in jobs(PARAMETERS)]


def test_without_rounds_of_ablations_five_jobs_are_scored():
    assert len(scored_jobs(PARAMETERS | {"ABLATION_ROUNDS": 0})) == 5


def test_leads_are_the_words_in_their_order_and_choices_the_scale():
    axes, status, *_ = scored_jobs(PARAMETERS)
    leads = axes.sampling.leads

    words = tuple(lead.strip("\n -:") for lead in leads)
    assert words == stimuli.prompts()[FIRST_PROMPT].words
    assert leads[:2] == ("- Friendly:", "\n- Sociable:")
    assert leads[-1] == "\nRating:"
    assert axes.sampling.choices == (" 1", " 2", " 3", " 4", " 5")

    assert status.sampling.leads == ("Rating:",)
    assert scored_sampling(["Rating"], Sampling()).leads == ("Rating:",)


def test_rounds_and_prompts_of_each_part_are_counted():
    """Two groups: 7 prompts in three rounds of the paper's form, one in two of a reduced one."""
    table = overview(jobs(PARAMETERS)).sort_index()

    paper, *reduced = stimuli.ablations()
    of_extended = table.xs(("calibrant", "free text", "EXTENDED"))
    assert of_extended.loc[paper].to_dict() == {"rounds": 3, "prompts": 3 * 2 * 7}
    assert of_extended.loc[reduced[0]].to_dict() == {"rounds": 2, "prompts": 2 * 2}
    assert table.index.names == ["model", "mode", "version", "ablation"]
