"""The training of the verifier, on tiny data and a tiny network: it learns, resumes, and leaks nothing."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")
pytest.importorskip("safetensors")

from training.verify import __main__ as command_line  # noqa: E402
from training.verify import teach  # noqa: E402
from training.verify.augment import chatty, crowded, doubled  # noqa: E402
from training.verify.data import (  # noqa: E402
    edited_pairs,
    forbidden,
    held_items,
    human_pairs,
    mixed_pairs,
    product_pairs,
)
from training.verify.decision import (  # noqa: E402
    INPUTS,
    SIGNS,
    balanced_weights,
    calibrated,
    fit,
    inputs_of,
    support_of,
)
from training.verify.edits import Edit, find_edit  # noqa: E402
from training.verify.families import family_pairs, read_families  # noqa: E402
from training.verify.leaks import claim_only  # noqa: E402
from training.verify.learn import Settings, loss_of, rate_at, train  # noqa: E402
from training.verify.measured import CHOOSING, REPORTING, Item, grounding_items, read_items, write_items  # noqa: E402
from training.verify.model import CLASSES, Network  # noqa: E402
from training.verify.pairs import (  # noqa: E402
    LABELS,
    Pair,
    batches,
    encode,
    part_of,
    read_pairs,
    write_pairs,
)
from training.verify.questions import question_claims, stated  # noqa: E402
from training.verify.report import evaluated  # noqa: E402
from training.verify.run import run  # noqa: E402
from training.verify.score import score_items, score_pairs  # noqa: E402
from training.verify.selection import FEATURES, Reader, Selected  # noqa: E402
from training.verify.shapes import cases, neighbours, pairs_of  # noqa: E402
from training.verify.sources import EXCLUDED, SOURCES, Row, is_held_out, normalised, read_set  # noqa: E402

from surefoot.models.records import Calibration  # noqa: E402

WORDS = "the a cat dog bird sat ran flew on in mat park tree red blue not is was big small old new".split()
STORY = (
    "Maria Lopez opened the bakery in Lisbon in 1998. It sells 40 kinds of bread every day. "
    "Her brother John Smith runs the office in Porto. The shop is closed on Monday. "
    "In 2005 the firm moved to a larger house near the river. Sales increased in the following years."
)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer BERT with 32 axes, and a tokenizer for it."""
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("encoder")
    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "."])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "vocab_size": len(vocabulary),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "model_type": "bert",
        "pad_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    network = Network(config)
    state = {
        theirs.removeprefix("bert."): network.state_dict()[ours].contiguous()
        for ours, theirs in network.names().items()
        if not ours.startswith("classifier")
    }
    save_file(state, folder / "model.safetensors")
    return folder


def toy_pairs(count: int, seed: int = 0) -> list[Pair]:
    """The claim repeats the premise, or denies it."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        words = ["the", rng.choice(["cat", "dog", "bird"]), "is", rng.choice(["red", "blue", "big"])]
        claim = rng.choice([words, [*words[:3], "not", words[3]]])
        label = "entailment" if claim == words else "contradiction"
        found.append(Pair(" ".join(words), " ".join(claim), label, "toy"))
    return found


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


# --- terms ---------------------------------------------------------------------------------------------


def test_no_set_is_both_used_and_excluded():
    assert not set(SOURCES) & set(EXCLUDED)
    for name in ("anli_dev", "sick", "halueval_dialogue", "mctest_nli", "nli4ct", "rte", "citint"):
        assert name in EXCLUDED
    assert all("-NC" not in spec.licence and "unknown" not in spec.licence for spec in SOURCES.values())


def test_a_set_without_terms_cannot_be_read(tmp_path):
    write_rows(tmp_path / "sick.jsonl.gz", [{"premise": "a", "claim": "b", "label": "supported"}])
    with pytest.raises(KeyError):
        list(read_set(tmp_path, "sick"))


def test_subsets_with_other_terms_are_left_out(tmp_path):
    rows = [
        {"premise": f"p {subset}", "claim": "c", "label": "supported", "subset": subset}
        for subset in ("dev", "taxinli")
    ]
    write_rows(tmp_path / "mnli.jsonl.gz", rows)
    assert [row.subset for row in read_set(tmp_path, "mnli")] == ["dev"]


# --- data ----------------------------------------------------------------------------------------------


def test_what_is_measured_on_is_not_trained_on(tmp_path):
    premises = [f"The house number {index} is blue and old." for index in range(300)]
    rows = [{"premise": p, "claim": f"{p} Yes.", "label": "supported"} for p in premises]
    write_rows(tmp_path / "train" / "mnli.jsonl.gz", rows)
    measured = [{"premise": "Other.", "claim": rows[7]["claim"], "label": "supported"}]
    measured += [{"premise": premises[8].upper(), "claim": "Something.", "label": "supported"}]
    write_rows(tmp_path / "dev" / "grounding" / "some.jsonl.gz", measured)
    banned = forbidden([tmp_path / "dev"])
    found = {pair.premise for pair in human_pairs(tmp_path / "train", banned, seed=1)}
    assert premises[7] not in found
    assert premises[8] not in found
    assert len(found) > 200
    assert not any(is_held_out(premise) for premise in found)
    assert any(is_held_out(premise) for premise in premises)


def test_pairs_survive_the_disk_and_are_written_alike(tmp_path):
    pairs = toy_pairs(5)
    assert write_pairs(tmp_path / "a.gz", pairs) == 5
    write_pairs(tmp_path / "b.gz", pairs)
    assert read_pairs(tmp_path / "a.gz") == pairs
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_unsupported_of_a_two_way_set_is_not_called_neutral(tmp_path):
    rows = [{"premise": f"Word {i} here.", "claim": "No.", "label": "unsupported"} for i in range(40)]
    for name in ("fever_nli", "mnli"):
        write_rows(tmp_path / f"{name}.jsonl.gz", rows)
    labels = {pair.source: pair.label for pair in human_pairs(tmp_path, frozenset(), seed=0)}
    assert labels == {"fever_nli": "not_entailment", "mnli": "neutral"}


# --- edits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "kinds"),
    [
        ("Maria Lopez runs the bakery", {"name"}),
        ("It sells 40 kinds of bread", {"number"}),
        ("The shop is closed on Monday", {"date", "opposite", "negation"}),
        ("Sales increased afterwards", {"opposite"}),
        ("the office was in the north", {"negation"}),
    ],
)
def test_an_edit_changes_the_claim(claim, kinds):
    seen = set()
    for seed in range(20):
        edit = find_edit(claim, STORY, random.Random(seed))
        assert edit is not None
        assert edit.apply(claim) != claim
        seen.add(edit.kind)
    assert seen <= kinds | {"negation"}
    assert seen & kinds


def test_an_edit_replaces_whole_words_only():
    assert Edit("number", "50", "60").apply("50 of 1500, 50.") == "60 of 1500, 60."


@pytest.mark.parametrize(
    ("claim", "exchanged"),
    [
        ("Anna Berg beat Petra Lund", {"Petra Lund beat Anna Berg"}),
        (
            "Anna Berg beat Petra Lund in Oslo",
            {"Petra Lund beat Anna Berg in Oslo", "Anna Berg beat Oslo in Petra Lund"},
        ),
        ("Anna Berg met Petra Lund", set()),
        ("Anna Berg and Petra Lund", set()),
        ("Anna Berg won, and Petra Lund lost", set()),
        ("Anna Berg beat Petra Lund and Oslo won", {"Petra Lund beat Anna Berg and Oslo won"}),
    ],
)
def test_exchanged_roles_leave_what_holds_either_way(claim, exchanged):
    source = "In Oslo, Anna Berg beat Petra Lund."
    made = set()
    for seed in range(40):
        edit = find_edit(claim, source, random.Random(seed))
        if edit is not None and edit.kind == "roles":
            made.add(edit.apply(claim))
    assert made == exchanged


def test_edited_pairs_are_of_true_claims_and_of_both_labels():
    premise = "In Oslo, Anna Berg beat Petra Lund in the final of 1998."
    true = Pair(premise, "Anna Berg beat Petra Lund.", "entailment", "te_new_protocols")
    numbers = Pair(premise, "The final was in 1998.", "entailment", "mnli")
    false = Pair(premise, "Anna Berg lost in 1997.", "contradiction", "mnli")
    found = [pair for seed in range(30) for pair in edited_pairs([true, numbers, false], seed=seed)]
    assert {pair.label for pair in found} == {"entailment", "contradiction"}
    assert "Petra Lund beat Anna Berg." in {pair.claim for pair in found}
    for pair in found:
        assert pair.kind.split(",")[0] in {"roles", "name", "number", "opposite"}
        assert "lost in 1997" not in pair.claim
        if pair.label == "entailment":
            assert pair.premise != premise, "the premise was edited with its claim"
    assert not edited_pairs([Pair(premise, true.claim, "entailment", "cad_nli")], seed=1)


def test_a_swapped_name_comes_from_the_document():
    edit = find_edit("Maria Lopez opened the bakery", STORY, random.Random(1))
    assert edit is not None
    assert edit.new in STORY


def test_odd_names_are_no_sign_of_falsehood():
    """An edit of claim and document alike leaves the claim true, so the claim alone gives nothing away."""
    rows = [Row("defacto", "", STORY, "Maria Lopez opened the bakery in Lisbon in 1998.", "supported")]
    labels = set()
    for seed in range(60):
        for case in cases(rows, seed=seed):
            if case.claim != rows[0].claim:
                labels.add(case.label)
            if case.kind.endswith("both"):
                assert case.label == "entailment"
            if case.kind == "left out":
                assert "Maria" not in case.document
    assert labels == {"entailment", "contradiction"}


def test_a_neighbouring_sentence_is_claimed_with_and_without_itself():
    parts = [
        "The mill by the river ground rye until 1931.",
        "Its wheel was made of oak from the Black Forest.",
    ]
    parts += [
        "A museum has used the upper floor for thirty years.",
        "Visitors pay four euros, but on weekdays only, for a tour.",
    ]
    rows = [Row("defacto", "", " ".join(parts), "There is a museum in the mill.", "supported")] * 2
    found = list(neighbours(rows, seed=1))
    assert [(case.kind, case.label) for case in found] == [
        ("neighbour", "not_entailment"),
        ("own sentence", "entailment"),
    ], "once for a document, however many claims it has"
    without, whole = found
    assert whole.document == rows[0].premise
    assert without.claim == whole.claim
    assert whole.claim in parts
    assert whole.claim not in without.document
    assert all(part in without.document for part in parts if part != whole.claim)
    assert not list(neighbours([Row("defacto", "", STORY[:60], "It is short.", "supported")], seed=1))


def test_a_sentence_that_the_document_says_twice_is_no_neighbour():
    text = " ".join(["The mill by the river ground rye until the year 1931."] * 6)
    assert not list(neighbours([Row("defacto", "", text, "A mill.", "supported")], seed=1))


def test_an_edit_that_leaves_the_document_as_it_was_makes_nothing_true_or_false():
    """The number of the claim is part of another in the source: only the claim would change."""
    premise = "In 2013 three boats of the fleet sank off Lisbon, and nobody was found."
    rows = [Row("mnli", "", premise, "13 boats sank", "supported")]
    kinds = {case.kind for seed in range(80) for case in cases(rows, seed=seed)}
    assert "number" in kinds
    assert not kinds & {"number, both", "number, source"}


def test_pairs_have_the_shape_of_inference():
    text = " ".join(f"Sentence {index} speaks of the weather in town {index * 7}." for index in range(200))
    document = text + " " + STORY
    rows = [Row("defacto", "", document, "The bakery sells 40 kinds of bread every day.", "supported")]
    found = list(pairs_of(cases(rows, seed=3, edited=0.0), seed=3))
    assert found
    for pair in found:
        assert "40 kinds of bread" in pair.premise
        assert len(pair.premise.split()) <= 128


# --- other clothes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "claim"),
    [
        ("Who wrote the novel Emma?", "Jane Austen", "Jane Austen wrote the novel Emma."),
        ("Who was born first, Ann Lee or Bo Berg?", "Bo Berg", "Bo Berg was born first."),
        (
            "Emma is a novel by which English writer?",
            "Jane Austen",
            "Emma is a novel by the English writer Jane Austen.",
        ),
        ("Are both Emma and Persuasion novels?", "yes", None),
        ("Where did Jane Austen live?", "Bath", None),
        ("Who did Emma marry in the end?", "Mr Knightley", None),
        ("Who wrote the novel Emma?", "a writer who lived in a village in Hampshire", None),
    ],
)
def test_a_question_becomes_a_claim_only_where_a_rule_is_sure(question, answer, claim):
    assert stated(question, answer) == claim


def test_true_and_false_claims_of_a_question_are_worded_alike():
    premise = "Emma is a novel by Jane Austen.It was printed by John Murray in 1815."
    row = Row("halueval_qa", "", premise, "Jane Austen", "supported", "Who wrote the novel Emma?")
    true, false = question_claims([row], seed=1)
    assert (true.claim, true.label) == ("Jane Austen wrote the novel Emma.", "supported")
    assert (false.claim, false.label) == ("John Murray wrote the novel Emma.", "unsupported")
    assert "Austen. It was" in true.premise  # the passages were glued together
    wrong = Row("halueval_qa", "", premise, "John Murray", "unsupported", row.question)
    assert not list(question_claims([wrong], seed=1))


def test_an_offered_choice_is_the_false_answer():
    row = Row(
        "halueval_qa",
        "",
        "Ann Lee (born 3 May 1970) is a singer. Bo Berg (born 1960) is a painter from Oslo.",
        "Bo Berg",
        "supported",
        "Who was born first, Ann Lee or Bo Berg?",
    )
    claims = [made.claim for made in question_claims([row], seed=1)]
    assert claims == ["Bo Berg was born first.", "Ann Lee was born first."]


def test_company_is_about_the_same_things_and_no_version_of_the_premise():
    about = Pair("Maria Lopez opened a bakery in Lisbon.", "A bakery opened in Lisbon.", "entailment", "x")
    version = Pair("Maria Lopez opened a bakery in Porto.", "It is in Porto.", "entailment", "x")
    other = Pair("Ships from Lisbon carry wine across the sea.", "Wine is carried.", "entailment", "x")
    elsewhere = Pair("Trams in Lisbon are old and yellow things.", "Trams are old.", "entailment", "y")
    companies = set()
    for seed in range(20):
        made = {pair.claim: pair for pair in crowded([about, version, other, elsewhere], seed=seed)}
        pair = made[about.claim]
        assert about.premise in pair.premise
        assert other.premise in pair.premise
        assert "Porto" not in pair.premise
        assert "Trams" not in pair.premise
        assert pair.label == about.label
        companies.add(pair.premise)
    assert len(companies) == 2  # before and after


def test_chatter_leaves_the_claim_in_it_and_the_label():
    seen = set()
    for index in range(60):
        pair = Pair("The bakery is old.", f"The bakery has {index} kinds of bread.", "entailment", "x")
        made = chatty(pair, seed=2)
        assert f"bakery has {index} kinds of bread" in made.claim.lower()
        assert (made.premise, made.label) == (pair.premise, pair.label)
        assert not made.claim.endswith(("..", ".!"))
        seen.add(made.claim.split(str(index))[0])
    assert len(seen) > 15


def test_two_statements_are_true_together_or_one_of_them_is_strange():
    rows = [
        Row(
            "halueval_summ",
            "",
            f"Document {n}.",
            f"Town {n} has a bakery of bread. Its mayor {n} is rich.",
            "supported",
        )
        for n in range(50)
    ]
    rows.append(
        Row(
            "halueval_summ",
            "",
            "Document x.",
            "One wrong summary here. Two of them are wrong.",
            "unsupported",
        )
    )
    found = list(doubled(rows, seed=1))
    assert {case.label for case in found} == {"entailment", "not_entailment"}
    for case in found:
        own = case.document.split()[1].rstrip(".")
        numbers = {word for word in case.claim.split() if word.isdigit()}
        assert own in numbers
        assert (numbers == {own}) == (case.label == "entailment")
    assert not any("wrong" in case.claim for case in found)


def test_the_mixture_holds_shaped_short_crowded_and_chatty_pairs():
    texts = [f"Maria {n} opened the bakery number {n} near the old river." for n in range(60)]
    texts += [f"The river is wide in the year {n} of the flood." for n in range(60)]
    human = [Pair(text, text[:-11], "entailment", "fever_nli") for text in texts]
    product = [
        Pair(STORY, f"Claim {n} is here.", "contradiction", "defacto", "given, joined") for n in range(90)
    ]
    found = mixed_pairs(human, product, seed=1)
    kinds = [pair.kind for pair in found]
    assert sum(pair.source == "defacto" for pair in found) == 90
    assert sum("crowded" in kind for kind in kinds) > 20
    assert 5 < sum("chatty" in kind for kind in kinds) < 60
    assert found == mixed_pairs(human, product, seed=1)


# --- learning ------------------------------------------------------------------------------------------


def test_a_two_way_negative_does_not_choose_between_neutral_and_contradiction():
    labels = torch.tensor([LABELS.index("not_entailment")])
    for logits in ([-3.0, 4.0, 0.0], [-3.0, 0.0, 4.0]):
        assert float(loss_of(torch.tensor([logits]), labels, 0.0)) < 0.01
    assert float(loss_of(torch.tensor([[4.0, 0.0, 0.0]]), labels, 0.0)) > 3


def test_the_rate_rises_and_falls_to_zero():
    settings = Settings(budget=1000, warmup=100, falling=0.5)
    assert rate_at(0, settings) < 0.05
    assert rate_at(300, settings) == 1.0
    assert rate_at(750, settings) == pytest.approx(0.5)
    assert rate_at(1000, settings) == 0.0
    assert rate_at(10**9, Settings()) == 1.0


def test_a_long_pair_loses_the_end_of_its_premise_and_a_long_claim_is_left_out(encoder: Path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(encoder / "tokenizer.json"))
    words = WORDS[:12]
    pairs = [
        Pair(" ".join(words), "the cat sat", "entailment", "x"),
        Pair(" ".join(words * 5), "the cat sat", "entailment", "x"),
        Pair("the cat", " ".join(words * 5), "entailment", "x"),
        Pair("  ", "the cat sat", "entailment", "x"),
    ]
    short, long = encode(pairs, tokenizer, 24)
    assert len(short.ids) == 12 + 3 + 3
    assert len(long.ids) == 24
    whole = tokenizer.encode(" ".join(words), "the cat sat").ids
    assert short.ids.tolist() == whole
    assert long.ids[:13].tolist() == whole[:13]
    assert long.ids[long.second - 1 :].tolist() == whole[short.second - 1 :]


def test_batches_hold_every_pair_once_and_keep_to_their_size(encoder):
    from tokenizers import Tokenizer

    rows = encode(toy_pairs(200), Tokenizer.from_file(str(encoder / "tokenizer.json")), 64)
    found = list(batches(rows, tokens=60, seed=1, epoch=0))
    assert sum(len(batch.ids) for batch in found) == 200
    assert all(batch.ids.size <= 60 for batch in found)
    again = list(batches(rows, tokens=60, seed=1, epoch=0))
    assert all((one.ids == two.ids).all() for one, two in zip(found, again, strict=True))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_learns_and_resumes_to_the_same_weights(precision, encoder, tmp_path):
    write_pairs(tmp_path / "pairs.gz", toy_pairs(600))
    settings = Settings(
        rate=2e-3,
        layer_decay=1.0,
        head_rate=1.0,
        batch_tokens=200,
        budget=90_000,
        warmup=2_000,
        most=64,
        precision=precision,
    )
    whole, _ = train([tmp_path / "pairs.gz"], encoder, tmp_path / "whole", settings, device="cpu")
    pairs = toy_pairs(200, seed=9)
    logits = score_pairs(whole, [(pair.premise, pair.claim) for pair in pairs], device="cpu", most=64)
    right = [CLASSES[int(row.argmax())] == pair.label for row, pair in zip(logits, pairs, strict=True)]
    assert np.mean(right) > 0.9

    # Stopped twice on the way, it ends where the run without a stop ends.
    for minutes in (0.01, 0.01, 0):
        last, _ = train(
            [tmp_path / "pairs.gz"], encoder, tmp_path / "parts", settings, device="cpu", minutes=minutes
        )
    assert torch.load(tmp_path / "parts" / "state.pt", weights_only=True)["seen"] >= settings.budget
    assert (last / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_run_is_not_resumed_with_other_settings(encoder, tmp_path):
    write_pairs(tmp_path / "pairs.gz", toy_pairs(50))
    train([tmp_path / "pairs.gz"], encoder, tmp_path / "run", Settings(budget=200, most=64), device="cpu")
    with pytest.raises(ValueError, match="other settings"):
        train([tmp_path / "pairs.gz"], encoder, tmp_path / "run", Settings(budget=300, most=64), device="cpu")


def test_an_unknown_precision_is_refused(encoder, tmp_path):
    with pytest.raises(ValueError, match="float32 or bfloat16"):
        train([], encoder, tmp_path / "run", Settings(precision="float16"), device="cpu")


def test_word_vectors_and_frozen_layers_do_not_move(encoder, tmp_path):
    write_pairs(tmp_path / "pairs.gz", toy_pairs(100))
    settings = Settings(rate=1e-2, budget=2000, warmup=10, frozen=1, batch_tokens=300, most=64)
    out, _ = train([tmp_path / "pairs.gz"], encoder, tmp_path / "run", settings, device="cpu")
    before, after = Network.load(encoder).state_dict(), Network.load(out).state_dict()
    moved = {name for name in before if not torch.allclose(before[name], after[name], atol=2e-3)}
    assert "words.weight" not in moved
    assert not any(name.startswith("layers.0.") for name in moved)
    assert any(name.startswith("layers.1.") for name in moved)


def test_a_checkpoint_is_what_transformers_reads(encoder, tmp_path):
    transformers = pytest.importorskip("transformers")
    network = Network.load(encoder, seed=3).eval()
    network.save(tmp_path / "checkpoint", tokenizer_from=encoder)
    theirs = (
        transformers.BertForSequenceClassification.from_pretrained(tmp_path / "checkpoint").eval().float()
    )
    ids = torch.tensor([[2, 5, 6, 3, 7, 8, 3], [2, 5, 3, 7, 3, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]])
    mask = (ids != 0).long()
    with torch.inference_mode():
        ours = Network.load(tmp_path / "checkpoint").eval()(ids, segments, mask)
        expected = theirs(input_ids=ids, token_type_ids=segments, attention_mask=mask).logits
    assert torch.allclose(ours, expected, atol=1e-5)
    assert theirs.config.id2label[0] == "entailment"


def mpnet_folder(folder: Path) -> Path:
    """A tiny MPNet without a head, with the tokenizer's template of that family."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokens = ["<s>", "<pad>", "</s>", "<unk>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(tokens)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    config = transformers.MPNetConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=300,
        pad_token_id=1,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    transformers.MPNetModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_an_mpnet_checkpoint_is_what_transformers_reads(tmp_path):
    transformers = pytest.importorskip("transformers")
    network = Network.load(mpnet_folder(tmp_path / "encoder"), seed=3).eval()
    network.save(tmp_path / "checkpoint", tokenizer_from=tmp_path / "encoder")
    theirs = (
        transformers.MPNetForSequenceClassification.from_pretrained(tmp_path / "checkpoint").eval().float()
    )
    # Longer than 128 tokens, so that the last bucket of distances is reached; and a row with padding.
    ids = torch.randint(4, 4 + len(WORDS), (2, 200), generator=torch.Generator().manual_seed(1))
    ids[1, 150:] = 1
    mask = (ids != 1).long()
    with torch.inference_mode():
        ours = Network.load(tmp_path / "checkpoint").eval()(ids, torch.zeros_like(ids), mask)
        expected = theirs(input_ids=ids, attention_mask=mask).logits
    assert expected.std() > 0.05
    assert torch.allclose(ours, expected, atol=1e-5)


def test_another_kind_of_network_is_refused():
    with pytest.raises(ValueError, match="no network for 'roberta'"):
        Network({"model_type": "roberta"})


def test_a_pair_with_two_separators_is_cut_before_both(tmp_path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(mpnet_folder(tmp_path) / "tokenizer.json"))
    pairs = [Pair(" ".join(WORDS[:12] * 5), "the cat sat", "entailment", "x")]
    (row,) = encode(pairs, tokenizer, 24)
    whole = tokenizer.encode(" ".join(WORDS[:12]), "the cat sat").ids
    assert len(row.ids) == 24
    assert row.ids[-6:].tolist() == whole[-6:]
    assert row.ids[row.second :].tolist() == whole[-4:]
    assert row.ids[:18].tolist() == tokenizer.encode(pairs[0].premise).ids[:18]


def test_a_teacher_of_another_family_teaches(encoder, tmp_path):
    """The student sees no true label, only what the teacher says of pairs that it was not trained on."""
    pairs = toy_pairs(600)
    write_pairs(tmp_path / "pairs.gz", pairs)
    base = mpnet_folder(tmp_path / "mpnet")
    settings = Settings(
        rate=2e-3, layer_decay=1.0, head_rate=1.0, batch_tokens=200, budget=60_000, warmup=2_000, most=64
    )
    # Toy pairs are few different ones: parts by text would leave kinds of pairs out.
    teacher, _ = train([tmp_path / "pairs.gz"], base, tmp_path / "teacher", settings, device="cpu")
    write_pairs(tmp_path / "unlabelled.gz", [replace(pair, label="neutral") for pair in pairs])
    arguments = ["label", "--teacher", str(teacher), "--data", str(tmp_path / "unlabelled.gz")]
    assert command_line.main([*arguments, "--out", str(tmp_path / "taught"), "--device", "cpu"]) == 0
    (chunk,) = (tmp_path / "taught").glob("*.gz")
    taught = read_pairs(chunk)
    assert sorted(pair.claim for pair in taught) == sorted(pair.claim for pair in pairs)
    assert all(sum(pair.teacher) == pytest.approx(1, abs=1e-4) for pair in taught)
    student, _ = train([chunk], encoder, tmp_path / "student", replace(settings, taught=1.0), device="cpu")
    fresh = toy_pairs(200, seed=9)
    logits = score_pairs(student, [(pair.premise, pair.claim) for pair in fresh], device="cpu", most=64)
    right = [CLASSES[int(row.argmax())] == pair.label for row, pair in zip(logits, fresh, strict=True)]
    assert np.mean(right) > 0.9


def test_a_claim_that_fills_the_room_gets_no_label(encoder, tmp_path):
    pairs = [Pair("the cat sat", " ".join(WORDS[:4] * 8), "entailment", "long"), *toy_pairs(3)]
    logits = score_pairs(encoder, [(p.premise, p.claim) for p in pairs], device="cpu", most=24)
    assert np.isnan(logits).all(axis=1).tolist() == [True, False, False, False]
    assert np.array_equal(
        logits[1:], score_pairs(encoder, [(p.premise, p.claim) for p in pairs[1:]], device="cpu", most=24)
    )
    # Where figures are made, such a claim is an error and not a guess.
    selected = Selected(" ".join(WORDS[:4] * 150), ("the cat sat",), (1.0,), (0.0,) * len(FEATURES), False)
    with pytest.raises(ValueError, match="too long"):
        score_items(encoder, [Item("set", "g", False, "supported", False, selected)], device="cpu")
    write_pairs(tmp_path / "pairs.gz", pairs)
    teach.label(encoder, [tmp_path / "pairs.gz"], tmp_path / "taught", device="cpu", most=24)
    taught = read_pairs(tmp_path / "taught" / "0000.jsonl.gz")
    assert {pair.source for pair in taught} == {"toy"}
    assert len(taught) == 3


def test_labelling_goes_on_after_the_last_whole_chunk(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(teach, "CHUNK", 20)
    pairs = [Pair(" ".join(WORDS[:n]), " ".join(WORDS[n : n + 3]), "entailment", "x") for n in range(1, 10)]
    pairs = [replace(pair, source=f"s{number}") for number in range(6) for pair in pairs]
    write_pairs(tmp_path / "pairs.gz", pairs)
    out = tmp_path / "taught"
    options = {"device": "cpu", "most": 64}
    assert teach.label(encoder, [tmp_path / "pairs.gz"], out, **options) == len(pairs)
    first = {path.name: path.read_bytes() for path in out.glob("*.gz")}
    assert sorted(first) == ["0000.jsonl.gz", "0001.jsonl.gz", "0002.jsonl.gz"]
    assert len(read_pairs(out / "0002.jsonl.gz")) == len(pairs) - 40
    (out / "0001.jsonl.gz").unlink()
    (out / "0000.jsonl.gz").write_bytes(b"kept")
    teach.label(encoder, [tmp_path / "pairs.gz"], out, **options)
    assert (out / "0000.jsonl.gz").read_bytes() == b"kept"
    assert (out / "0001.jsonl.gz").read_bytes() == first["0001.jsonl.gz"]
    # Labels of two teachers, or of two draws, are not mixed.
    for other in ({"most": 32}, {"limit": 50}, {"part": (0.0, 0.5)}, {"seed": 2}):
        with pytest.raises(ValueError, match="another way"):
            teach.label(encoder, [tmp_path / "pairs.gz"], out, **{**options, **other})
    with pytest.raises(ValueError, match="another way"):
        teach.label(tmp_path / "other", [tmp_path / "pairs.gz"], out, **options)


def test_parts_are_apart_and_together_everything():
    pairs = [Pair(f"premise {number}", "claim", "entailment", "x") for number in range(1000)]
    low, high = part_of(pairs, 0, 0.3), part_of(pairs, 0.3, 1)
    assert sorted(pair.premise for pair in low + high) == sorted(pair.premise for pair in pairs)
    assert 250 < len(low) < 350
    assert part_of(pairs[::-1], 0, 0.3) == low[::-1]


def test_an_average_weighs_the_checkpoints_by_their_shares(encoder, tmp_path):
    parts = []
    for seed in (1, 2):
        network = Network.load(encoder, seed=seed)
        network.save(tmp_path / str(seed), tokenizer_from=encoder)
        parts.append(Network.load(tmp_path / str(seed)).state_dict()["classifier.weight"])
    assert (parts[0] != parts[1]).any()
    arguments = ["average", "--models", str(tmp_path / "1"), str(tmp_path / "2")]
    assert command_line.main([*arguments, "--shares", "0.25", "0.75", "--out", str(tmp_path / "mean")]) == 0
    mean = Network.load(tmp_path / "mean").state_dict()["classifier.weight"]
    assert torch.allclose(mean, 0.25 * parts[0] + 0.75 * parts[1])
    with pytest.raises(ValueError, match="share"):
        command_line.main([*arguments, "--shares", "0.5", "0.6", "--out", str(tmp_path / "other")])
    assert not (tmp_path / "other").exists()


def test_a_claim_that_gives_itself_away_is_noticed():
    rng = random.Random(0)
    words = [" ".join(rng.choices(WORDS, k=6)) for _ in range(400)]
    fair = [Pair(f"{index} {text}", text, LABELS[index % 2 * 2], "fair") for index, text in enumerate(words)]
    leaky = [
        Pair(pair.premise, pair.claim + " never" * (pair.label != "entailment"), pair.label, "leaky")
        for pair in fair
    ]
    found = claim_only(fair)["fair"], claim_only(leaky)["leaky"]
    assert found[0] is not None
    assert found[1] is not None
    assert abs(found[0] - 0.5) < 0.12
    assert found[1] > 0.95


def test_a_run_that_is_told_to_end_saves(encoder, tmp_path):
    write_pairs(tmp_path / "pairs.gz", toy_pairs(100))
    program = """
import sys
from pathlib import Path
from training.verify.learn import Settings, train
pairs, init, out = map(Path, sys.argv[1:])
train([pairs], init, out, Settings(batch_tokens=200, most=64), device="cpu")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [
        sys.executable,
        "-c",
        program,
        str(tmp_path / "pairs.gz"),
        str(encoder),
        str(tmp_path / "run"),
    ]
    with subprocess.Popen(arguments, env=environment) as process:
        log = tmp_path / "run" / "log.jsonl"
        while not (log.is_file() and log.stat().st_size):
            assert process.poll() is None
            time.sleep(0.2)
        process.terminate()
        assert process.wait() == 0
    assert torch.load(tmp_path / "run" / "state.pt", weights_only=True)["seen"] > 0


# --- long runs -----------------------------------------------------------------------------------------


def long_run(folder: Path, encoder: Path, budget: int) -> Path:
    folder.mkdir(exist_ok=True)
    write_pairs(folder / "pairs.gz", toy_pairs(100))
    phase = {"data": ["pairs.gz"], "batch_tokens": 200, "most": 64, "falling": 0.0, "rate": 1e-3}
    plan = {
        "init": str(encoder),
        "measure": {"families": 1, "minutes": 0},
        "phases": [
            {"name": "one", "budget": 1000, **phase},
            {"name": "two", "budget": budget, "seed": 2, **phase},
        ],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def test_a_long_run_goes_through_its_phases_and_may_be_made_longer(encoder, tmp_path):
    folder = long_run(tmp_path / "run", encoder, 1500)
    last = run(folder, device="cpu")
    assert last == folder / "two" / "checkpoint"
    assert json.loads((folder / "one" / "done.json").read_text("utf-8"))["tokens"] >= 1000
    seen = torch.load(folder / "two" / "state.pt", weights_only=True)["seen"]
    assert run(folder, device="cpu") == last
    assert torch.load(folder / "two" / "state.pt", weights_only=True)["seen"] == seen  # nothing is done twice
    (folder / "two" / "done.json").unlink()
    run(long_run(tmp_path / "run", encoder, 3000), device="cpu")
    assert torch.load(folder / "two" / "state.pt", weights_only=True)["seen"] >= 3000


def test_a_phase_starts_from_the_one_before(encoder, tmp_path):
    folder = long_run(tmp_path / "run", encoder, 0)
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    plan["phases"] = plan["phases"][:1]
    (folder / "plan.json").write_text(json.dumps(plan))
    first = Network.load(run(folder, device="cpu")).state_dict()
    plan["phases"].append({**plan["phases"][0], "name": "two", "rate": 0.0, "budget": 10})
    (folder / "plan.json").write_text(json.dumps(plan))
    second = Network.load(run(folder, device="cpu")).state_dict()
    assert all(torch.allclose(first[name], second[name], atol=1e-3) for name in first)
    assert not torch.equal(
        first["layers.1.up.weight"], Network.load(encoder).state_dict()["layers.1.up.weight"]
    )


def test_twins_are_learnt_in_one_batch(encoder):
    from tokenizers import Tokenizer

    pairs = [replace(pair, twin=str(index // 2)) for index, pair in enumerate(toy_pairs(400))]
    rows = encode(pairs, Tokenizer.from_file(str(encoder / "tokenizer.json")), 64)
    rows = [replace(row, weight=float(index // 2)) for index, row in enumerate(rows)]
    together = apart = 0
    for batch in batches(rows, tokens=400, seed=1, epoch=0):
        names = batch.weights.tolist()
        together += sum(names.count(name) == 2 for name in names)
        apart += sum(names.count(name) == 1 for name in names)
    assert together + apart == 400
    assert apart < 40  # only at the edges of batches


def test_a_fifth_of_the_families_is_held_out():
    held, kept = read_families(held_out=True), read_families(held_out=False)
    assert 0.1 < len(held) / (len(held) + len(kept)) < 0.3
    assert not {row["passage"] for row in held} & {row["passage"] for row in kept}
    for twins in family_pairs(held_out=False, copies=2, seed=1):
        assert len({pair.premise for pair in twins}) == 1
        assert {pair.label for pair in twins} == {"entailment", "contradiction", "neutral"}
        assert not any("{" in pair.premise + pair.claim for pair in twins)


@pytest.fixture(scope="module")
def contrasts() -> list[list[Pair]]:
    spacy = pytest.importorskip("spacy")
    pytest.importorskip("lemminflect")
    assert spacy
    from training.verify.clauses import parser
    from training.verify.contrast import contrast_pairs

    text = (
        "Ines Duarte succeeded Paulo Reis in 2021. The judge praised the lawyer. "
        "Oslo is the capital of Norway. The ship was built by Harold Finch in 1912."
    )
    documents = [("toy", doc) for doc in parser().pipe([text] * 20)]
    try:
        return [twins for seed in range(10) for twins in contrast_pairs(documents, seed=seed)]
    except FileNotFoundError:
        pytest.skip("WordNet is not installed")


def test_contrast_claims_are_true_of_one_passage_and_false_of_its_twin(contrasts):
    roles = [twins for twins in contrasts if twins[0].kind.startswith(("roles", "other agent"))]
    assert roles
    for twins in roles:
        assert len({pair.twin for pair in twins}) == 1
        labels = {(pair.premise, pair.claim): pair.label for pair in twins}
        for claim in {pair.claim for pair in twins}:
            assert {label for (_, one), label in labels.items() if one == claim} == {
                "entailment",
                "not_entailment",
            }


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("Ines Duarte succeeded Paulo Reis in 2021.", "entailment"),
        ("Paulo Reis succeeded Ines Duarte in 2021.", "not_entailment"),
        ("The lawyer was praised by the judge.", "entailment"),
        ("The judge was praised by the lawyer.", "not_entailment"),
        ("Harold Finch built the ship in 1912.", "entailment"),
        ("Ines Duarte did not succeed Paulo Reis in 2021.", "contradiction"),
    ],
)
def test_what_is_made_of_a_clause(contrasts, claim, label):
    original = "Ines Duarte succeeded Paulo Reis in 2021. The judge praised the lawyer."
    found = [
        pair.label
        for twins in contrasts
        for pair in twins
        if pair.claim == claim
        and (pair.premise in original or original in pair.premise or "Finch" in claim)
        and not ("not" in claim and "not" in pair.premise)
    ]
    assert label in found


# --- features and decision -----------------------------------------------------------------------------


def test_features_are_finite_and_in_step_with_the_source():
    reader = Reader([STORY])
    true = reader.select("The bakery in Lisbon was opened by Maria Lopez in 1998.")
    false = reader.select("Pedro Alves founded a brewery near Madrid during 1887.")
    assert true is not None
    assert false is not None
    for selected in (true, false):
        assert len(selected.features) == len(FEATURES)
        assert np.isfinite(selected.features).all()
    for name, sign in (("unseen", -1), ("aligned", 1)):
        assert sign * (true.features[FEATURES.index(name)] - false.features[FEATURES.index(name)]) > 0


@pytest.mark.parametrize("claim", ["", "!!!", "\ud800", "7", "NOT", "x" * 3000])
def test_odd_claims_do_not_raise(claim):
    Reader([STORY]).select(claim)
    Reader([""]).select(claim)


def inputs_with(logits: list[list[list[float]]]) -> np.ndarray:
    selected = Selected("c", ("p",), (1.0, 1.0, 1.0), (0.0,) * len(FEATURES), verbatim=False)
    items = [Item("a", str(index), False, "", False, selected) for index in range(len(logits))]
    return inputs_of(items, np.asarray(logits))


def test_the_second_premise_is_not_read_where_the_first_settles():
    sure, surer, against, none = [4.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 6.0], [np.nan] * 3
    found = inputs_with([[sure, surer, none], [against, surer, none], [sure, none, none]])
    assert found[0, 0] == found[2, 0] < found[1, 0]


def test_the_third_premise_is_read_only_where_the_others_leave_the_claim_in_doubt():
    doubt, likely, better = [0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [2.2, 0.0, 1.0]
    none = [np.nan] * 3
    found = inputs_with([[doubt, doubt, better], [doubt, likely, better], [doubt, none, better]])
    assert found[0, 0] == found[2, 0] > found[1, 0] > 0


def test_kept_logits_of_fewer_premises_are_refused(encoder, tmp_path):
    items, logits = made_items(6)
    write_items(tmp_path / "items.gz", items)
    arguments = ["evaluate", "--checkpoint", str(encoder), "--items", str(tmp_path / "items.gz")]
    arguments += ["--logits", str(tmp_path / "kept.npy")]
    np.save(tmp_path / "kept.npy", logits[:, :2])
    with pytest.raises(SystemExit, match="fewer premises"):
        command_line.main(arguments)
    np.save(tmp_path / "kept.npy", logits)
    assert command_line.main(arguments) in (None, 0)


def test_contradiction_against_neutral_is_that_of_the_best_premise():
    found = inputs_with([[[0.0, 2.0, 5.0], [1.0, 1.0, 0.5], [np.nan] * 3]])
    assert found[0, INPUTS.index("contradiction_odds")] == -0.5


def test_what_is_selected_is_what_the_package_reads(monkeypatch):
    from surefoot import Verifier
    from surefoot.inference.entailment import NliModel

    claim = "The cat Minka was taken home by the harbour master."
    park = "A park was opened beside the harbour in 1998. Gulls nest there every year. " * 8
    text = f"{STORY} {park} Minka was a cat. {park}"
    selected = Reader([text]).select(claim)
    assert selected is not None
    assert len(selected.premises) == 3
    read: list[str] = []
    score = NliModel.score

    def watched(self, pairs, **kwargs):
        read.extend(premise for premise, asked in pairs if asked == claim)
        return score(self, pairs, **kwargs)

    monkeypatch.setattr(NliModel, "score", watched)
    Verifier().check_claims([claim], [text])
    assert read == [premise for premise in selected.premises if premise]


def test_the_decision_has_five_numbers_and_is_monotone():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(600, 4)) + np.asarray([0, 0, 0, 4.8])
    good = inputs[:, 0] - 0.5 * inputs[:, 1] + rng.normal(size=600) > 0
    decision = fit(inputs, good, balanced_weights(["a"] * 600, good))
    assert [len(term["rise"]) for term in decision["terms"]] == [1, 1, 1]
    base = support_of(decision, inputs)
    assert np.mean((base > 0.5) == good) > 0.75
    for column, sign in enumerate(SIGNS):
        moved = inputs.copy()
        moved[:, column] += 0.7
        assert (sign * (support_of(decision, moved) - base) >= -1e-9).all()
    # An input that misleads gets no weight rather than one of the wrong sign.
    turned = fit(inputs, ~good, balanced_weights(["a"] * 600, ~good))
    assert turned["terms"][0]["rise"] == [0.0]


def made_items(count: int = 240, sets: str = "abc") -> tuple[list[Item], np.ndarray]:
    rng = np.random.default_rng(5)
    items, logits = [], np.full((count, 3, 3), np.nan, dtype=np.float32)
    for index in range(count):
        good = bool(rng.random() < 0.5)
        features = rng.random(len(FEATURES))
        features[FEATURES.index("aligned")] = np.clip(rng.normal(0.7 if good else 0.5, 0.15), 0, 1)
        logits[index, 0] = rng.normal(size=3) + ([1.5, 0, 0] if good else [0, 0.8, 0.8])
        selected = Selected("claim", ("premise",), (0.9,), tuple(features.tolist()), verbatim=False)
        label = "supported" if good else "unsupported"
        items.append(Item(sets[index % len(sets)], str(index), not good, label, not good, selected))
    return items, logits


def halves() -> tuple[list[Item], np.ndarray]:
    items, logits = made_items(360)
    names = (*CHOOSING[:2], REPORTING[0], "ragtruth.qa")
    return [replace(item, set=names[index % 4]) for index, item in enumerate(items)], logits


def test_the_package_computes_what_was_fitted():
    held, development = made_items(), halves()
    found = calibrated(held, development)
    calibration = Calibration.from_dict(json.loads(json.dumps(found["calibration"])))
    inputs = inputs_of(*development)
    expected = support_of(found["calibration"]["decision"], inputs)
    names = ("contradiction_odds", "aligned", "source_words")
    for row, support in zip(inputs.tolist(), expected, strict=True):
        features = dict(zip(names, row[1:], strict=True))
        assert calibration.support(row[0], features) == pytest.approx(support, abs=1e-6)
    low, high = found["presets"]["general"]["band"]
    assert 0 < low <= 0.5 <= high < 1
    assert found["presets"]["general"]["false_pass"] <= 0.12


def test_the_reporting_half_has_no_say_in_the_decision():
    held, (items, logits) = made_items(), halves()
    turned = [replace(item, bad=not item.bad) if item.set in REPORTING else item for item in items]
    assert calibrated(held, (items, logits)) == calibrated(held, (turned, logits))
    turned = [replace(item, bad=not item.bad) if item.set in CHOOSING else item for item in items]
    assert calibrated(held, (items, logits)) != calibrated(held, (turned, logits))
    assert not set(CHOOSING) & set(REPORTING)


def test_calibrate_and_evaluate_work_from_the_command_line(encoder, tmp_path, capsys):
    for name, (items, logits) in {"held": made_items(), "development": halves()}.items():
        write_items(tmp_path / f"{name}.gz", items)
        np.save(tmp_path / f"{name}.npy", logits)
    shared = ["--checkpoint", str(encoder)]
    development = ["--development", str(tmp_path / "development.gz")]
    development += ["--development-logits", str(tmp_path / "development.npy")]
    held = ["--held", str(tmp_path / "held.gz"), "--logits", str(tmp_path / "held.npy")]
    out = tmp_path / "decision.json"
    assert command_line.main(["calibrate", *shared, *held, *development, "--out", str(out)]) == 0
    arguments = ["evaluate", *shared, "--items", str(tmp_path / "development.gz")]
    arguments += ["--logits", str(tmp_path / "development.npy"), "--decision", str(out)]
    capsys.readouterr()
    assert command_line.main([*arguments, "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert set(figures) == {"seen words", "network", "decision"}
    assert figures["decision"]["halves"]["choosing half"]["auroc"] > 0.8
    assert "| reporting half | " in capsys.readouterr().out


def test_items_survive_the_disk(tmp_path):
    items, _ = made_items(6)
    items[0] = Item("a", "g", True, "unsupported", True, None)
    write_items(tmp_path / "items.gz", items)
    assert read_items(tmp_path / "items.gz") == items


def scored(odds: list[float]) -> np.ndarray:
    logits = np.full((len(odds), 3, 3), np.nan)
    logits[:, 0] = [[value, 0.0, -30.0] for value in odds]
    return logits


def test_figures_count_what_was_not_checked_as_not_supported():
    items = [Item("a", str(index), index > 1, "", index > 1, None) for index in range(4)]
    selected = Selected("c", ("p",), (1.0,), (0.0,) * len(FEATURES), verbatim=False)
    items[0] = Item("a", "0", False, "", False, selected)
    figures = evaluated(items, scored([3.0] * 4), None)["network"]["sets"]["a"]
    assert figures["false_strip"] == 0.5
    assert figures["false_pass"] == 0.0
    assert figures["balanced_accuracy"] == 0.75


def test_an_answer_is_as_good_as_its_worst_claim():
    def item(group: str, answer_bad: bool) -> Item:
        selected = Selected("c", ("p",), (1.0,), (0.0,) * len(FEATURES), verbatim=False)
        return Item("r.qa", group, answer_bad, "", answer_bad, selected)

    items = [item("1", True), item("1", True), item("2", False), item("2", False)]
    figures = evaluated(items, scored([2.0, -2.0, 1.5, 1.0]), None)["network"]["answers"]["all"]
    assert figures["auroc"] == 1.0
    assert figures["f1"] == 1.0
    assert figures["n"] == 2


def test_held_out_documents_are_not_in_the_product_pairs(tmp_path):
    rows = [
        {
            "premise": STORY.replace("1998", str(1000 + i)),
            "claim": f"It opened in {1000 + i}.",
            "label": label,
        }
        for i in range(30)
        for label in ("supported", "unsupported")
    ]
    write_rows(tmp_path / "defacto.jsonl.gz", rows)
    trained = {normalised(pair.claim) for pair in product_pairs(tmp_path, frozenset(), seed=1)}
    held = {
        normalised(item.selected.claim) for item in held_items(tmp_path, frozenset(), seed=1) if item.selected
    }
    given = {normalised(str(row["claim"])) for row in rows}
    assert trained & given
    assert held & given
    assert not trained & held & given


def test_a_measured_sample_reads_answers_and_claims(tmp_path):
    write_rows(
        tmp_path / "grounding" / "some.jsonl.gz",
        [{"id": "1", "premise": STORY, "claim": "The shop is closed on Monday.", "label": "supported"}],
    )
    (item,) = grounding_items(tmp_path / "grounding" / "some.jsonl.gz", 10)
    assert item.selected is not None
    assert "closed on Monday" in item.selected.premises[0]
    assert not item.bad


def test_every_command_has_help(capsys):
    for name in ("data", "train", "run", "label", "average", "calibrate", "evaluate", "export"):
        with pytest.raises(SystemExit) as stopped:
            command_line.main([name, "--help"])
        assert stopped.value.code == 0
        assert "--" in capsys.readouterr().out
