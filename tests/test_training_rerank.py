"""The reranker's training: measured texts stay out, a run learns, resumes and repeats itself."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from surefoot.errors import ModelIntegrityError
from surefoot.models.records import Fusion, ModelRecord
from surefoot.rerank.fusion import lexical_shares

sys.path.insert(0, str(Path(__file__).parent.parent))


# --- what the package itself needs -----------------------------------------------------------------------


def test_lexical_share_prefers_rare_shared_tokens() -> None:
    idf = np.array([1.0, 8.0, 3.0, 3.0, 3.0])  # token 0 occurs everywhere
    passages = [np.array([0, 0, 0, 2]), np.array([1, 2, 3, 4]), np.array([2, 3, 4, 4])]
    shares = lexical_shares(np.array([0, 1]), passages, idf)
    assert shares[1] > 0
    assert shares[0] == shares[2] == 0


def test_lexical_share_is_below_one_and_takes_empty_input() -> None:
    idf = np.full(10, 5.0)
    share = lexical_shares(np.array([3]), [np.full(500, 3)], idf)
    assert 0.9 < share[0] < 1
    none = np.array([], np.int64)
    assert lexical_shares(none, [none, np.array([1])], idf).tolist() == [0, 0]
    assert lexical_shares(np.array([1]), [], idf).tolist() == []
    assert lexical_shares(np.array([1]), [none], idf).tolist() == [0]


def record(**more: object) -> dict[str, object]:
    return {
        "name": "r",
        "task": "relevance",
        "files": [{"path": "model.onnx", "sha256": "0" * 64, "bytes": 1}],
        "architecture": "BertForSequenceClassification",
        "parameters": 1,
        "max_length": 512,
        "labels": ["relevance"],
    } | more


def test_fusion_survives_the_manifest() -> None:
    fused = {"logit": 1, "cosine": 2.5, "lexical": 0.5, "a": 0.7, "b": -1.0, "long_query": 20.0}
    read = ModelRecord.from_dict(record(fusion=fused))
    assert read.fusion == Fusion(**fused)
    assert ModelRecord.from_dict(json.loads(json.dumps(read.to_dict()))) == read
    assert ModelRecord.from_dict(record()).fusion is None
    assert ModelRecord.from_dict(record(fusion=None)).fusion is None


@pytest.mark.parametrize(
    "bad",
    [
        {"logit": -1},
        {"logit": 0},
        {"a": 0},
        {"cosine": float("nan")},
        {"lexical": "1"},
        {"logit": True},
        {"long_query": -1},
        {"long_query": float("inf")},
        {"unknown": 1},
        [1, 2],
    ],
)
def test_fusion_that_makes_no_sense_is_refused(bad: object) -> None:
    with pytest.raises(ModelIntegrityError):
        ModelRecord.from_dict(record(fusion=bad))


def test_the_logit_counts_less_beside_a_long_query() -> None:
    from surefoot.rerank.fusion import fused_scores, logit_share

    assert [logit_share("word " * count, 20) for count in (0, 1, 20, 40)] == [1, 1, 1, 0.25]
    assert logit_share("word " * 400, 0) == 1
    fusion = Fusion(logit=2.0, long_query=10)
    assert fused_scores(fusion, "word " * 10, {"a": 1.5}) == {"a": 3.0}
    assert fused_scores(fusion, "word " * 20, {"a": 1.5}) == {"a": 0.75}


def test_every_source_of_the_pool_has_its_terms(training: SimpleNamespace) -> None:
    from training.rerank.card import TERMS

    assert set(TERMS) == set(training.pool.SOURCES)


def test_key_words_are_rare_words_of_a_title_and_a_situation_is_the_other_half(
    training: SimpleNamespace, tmp_path: Path
) -> None:
    folder = tmp_path / "retrieval"
    folder.mkdir()
    topics = [f"topic{number}" for number in range(60)]
    rows = [
        {
            "pid": str(number),
            "title": f"An update on the common {topic} of women",
            "text": " ".join(f"Sentence {place} of {topic}, common in women." for place in range(1, 8)),
        }
        for number, topic in enumerate(topics)
    ]
    rows.append({"pid": "short", "title": "A title of topic99", "text": "One sentence only."})
    with gzip.open(folder / "scifact.corpus.jsonl.gz", "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    found = list(training.pool._keywords(tmp_path))
    assert found
    for example in found:
        words = example.query.split()
        assert 1 <= len(words) <= 4
        assert words[-1] == f"topic{example.key}", "no query of words that every abstract has"
        assert example.query == example.answer.lower()
        assert example.answer in example.passage
    halves = list(training.pool._situations(tmp_path))
    assert len(halves) == 60
    for example in halves:
        assert example.query != example.passage
        assert not set(re.findall(r"Sentence \d", example.query)) & set(
            re.findall(r"Sentence \d", example.passage)
        )
    assert {example.query.startswith("Sentence 1") for example in halves} == {True, False}


def test_training_and_package_fuse_alike(training: SimpleNamespace) -> None:
    from surefoot.rerank.fusion import fused_scores

    long = "which of the stones beside the old river were carried to the bridge, and by whom, and when was it"
    for query in ("which stones", long):
        item = training.features.Lists(
            "one", query, ["x", "y"], [0, 1], {0: 1.0}, np.zeros(2), np.zeros(2), np.zeros(2),
            np.array([1.0, -2.0]), {"bm25": [0, 1]},
        )  # fmt: skip
        theirs = training.fusion.Weights(logit=1.5, long_query=12).score(item)
        ours = fused_scores(Fusion(logit=1.5, long_query=12), query, {"x": 1.0, "y": -2.0})
        np.testing.assert_allclose(theirs, [ours["x"], ours["y"]])


# --- the training itself -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training() -> SimpleNamespace:
    for name in ("torch", "transformers", "bm25s", "Stemmer", "scipy"):
        pytest.importorskip(name)
    from training.rerank import __main__, evaluate, features, fusion, judged, pool, ranking, train

    return SimpleNamespace(
        main=__main__.main,
        evaluate=evaluate,
        features=features,
        fusion=fusion,
        judged=judged,
        pool=pool,
        ranking=ranking,
        train=train,
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two tiny layers over a vocabulary of letters and a few words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("base")
    words = "river bridge stone mill tower gate market lamp cart rope".split()
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789.,?")
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *words,
        *letters,
        *(f"##{c}" for c in letters),
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def group(pool: object, number: int, *, held: bool = False) -> object:
    """A query whose relevant passage alone ends with a lamp: what two tiny layers can learn in a minute."""
    words = "river bridge stone mill tower gate market lamp cart rope".split()
    others = [words[(number + step) % 10] for step in range(1, 5) if (number + step) % 10 != 7][:3]
    return pool.Group(  # type: ignore[attr-defined]
        "toy",
        held,
        f"{words[number % 10]} {number}",
        (f"{words[number % 10]} lamp", *(f"{words[number % 10]} {word}" for word in others)),
        (0.5, 0.2, 0.2, 0.1),
        (3.0, 1.0, 0.0, 0.0),
    )


def test_measured_texts_are_kept_out(training: SimpleNamespace) -> None:
    long = "The mill by the river was built of grey stone in the year 1820 and burnt down twice."
    seen = training.judged.Seen(["Who built the mill?", long])
    assert "who built the MILL" in seen
    assert "Indeed, " + long in seen
    assert "Who built the bridge?" not in seen
    assert "The mill by the sea was made of wood, and nobody knows when or by whom, or for what." not in seen


def test_collections_of_both_layouts(training: SimpleNamespace, tmp_path: Path) -> None:
    write(
        tmp_path / "pairs.jsonl.gz",
        [
            {"query": "q", "passage": "a", "relevance": 1},
            {"query": "q", "passage": "b", "relevance": 0},
            {"query": "none", "passage": "a", "relevance": 0},
        ],
    )
    write(
        tmp_path / "x.corpus.jsonl.gz",
        [{"pid": 1, "title": "t", "text": "b"}, {"pid": 2, "title": "", "text": "c"}],
    )
    write(tmp_path / "x_dev.queries.jsonl.gz", [{"qid": 7, "query": "q"}, {"qid": 8, "query": "unjudged"}])
    (tmp_path / "x_dev.qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n7\t2\t2\n7\t1\t0\n", encoding="utf-8"
    )
    pairs, judged = training.judged.load_collections([tmp_path])
    assert (pairs.queries, pairs.passages, pairs.relevant) == (("q",), ("a", "b"), ({0: 1.0},))
    assert (judged.queries, judged.passages, judged.relevant) == (("q",), ("t b", "c"), ({1: 2.0},))


def test_ndcg_by_hand(training: SimpleNamespace) -> None:
    gains = {3: 2.0, 5: 1.0}
    best = 2 + 1 / np.log2(3)
    assert training.ranking.ndcg([3, 5], gains) == pytest.approx(1)
    assert training.ranking.ndcg([5, 0, 3], gains) == pytest.approx((1 + 2 / 2) / best)
    assert training.ranking.ndcg([0] * 10 + [3], gains) == 0
    low, high = training.ranking.interval([np.array([0.0, 1.0] * 50)])
    assert 0.35 < low < 0.5 < high < 0.65


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_run_learns_resumes_and_repeats(
    precision: str, training: SimpleNamespace, base: Path, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file

    groups = [group(training.pool, number) for number in range(40)]
    recipe = training.train.Recipe(
        steps=60,
        groups=4,
        negatives=3,
        length=40,
        rate=3e-3,
        head_rate=3e-3,
        distil=0.0,
        average=0.9,
        warmup=5,
        precision=precision,
    )
    lines: list[str] = []
    training.train.train(groups, base, tmp_path / "whole", recipe, device="cpu", say=lines.append)
    losses = [float(line.split("loss ")[1].split()[0]) for line in lines if "loss" in line]
    assert losses[-1] < 0.5 * losses[0]

    stopped = training.train.train(
        groups, base, tmp_path / "two", recipe, device="cpu", max_minutes=0, say=lines.append
    )
    assert 0 < stopped < recipe.steps
    assert (
        training.train.train(groups, base, tmp_path / "two", recipe, device="cpu", say=lines.append)
        == recipe.steps
    )
    whole, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "two"))
    assert whole.keys() == two.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(value, two[name])

    with pytest.raises(ValueError, match="float32 or bfloat16"):
        training.train.Recipe(precision="float16")
    other = training.train.Recipe(steps=61, groups=4, negatives=3, length=40)
    with pytest.raises(ValueError, match="another recipe"):
        training.train.train(groups, base, tmp_path / "two", other, device="cpu", say=lines.append)


def test_a_logit_belongs_to_its_pair_whatever_the_lengths(training: SimpleNamespace, base: Path) -> None:
    import torch
    from tokenizers import Tokenizer

    train = training.train
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    pairs = [("river", "bridge " * (1 + 7 * number % 23)) for number in range(25)]
    encodings = train.encode_pairs(tokenizer, pairs, 64)
    model = train.load_model(base).eval()
    with torch.no_grad():
        model.classifier.weight.mul_(500)  # a new head says nearly the same of every pair
        together = train._logits(model, encodings, torch.device("cpu"))
        alone = [float(model(**train.pad([one], torch.device("cpu"))).logits[0, 0]) for one in encodings]
    np.testing.assert_allclose(together.numpy(), alone, atol=1e-4)
    assert len({round(value, 4) for value in alone}) > 10


def test_a_run_records_what_came_before_it(training: SimpleNamespace, base: Path, tmp_path: Path) -> None:
    from training.rerank.average import average
    from training.rerank.card import _cost

    groups = [group(training.pool, number) for number in range(8)]
    first, second, both = tmp_path / "first", tmp_path / "second", tmp_path / "both"
    quiet = {"device": "cpu", "say": lambda line: None}
    training.train.train(groups, base, first, training.train.Recipe(steps=2, length=40), **quiet)
    training.train.train(groups, first, second, training.train.Recipe(steps=3, length=40), **quiet)
    average([second, second], both)
    runs = [json.loads((folder / "run.json").read_text()) for folder in (first, second, both)]
    assert "after" not in runs[0]
    assert runs[1]["after"] == runs[2]["after"] == runs[0]
    tokens = runs[0]["tokens"] + runs[1]["tokens"]
    assert _cost(runs[1]).endswith(f" {tokens} tokens, 5 steps")
    assert _cost(runs[2]).endswith(" 8 steps")


def test_which_questions_are_asked_does_not_decide_on_their_passages(
    training: SimpleNamespace, tmp_path: Path
) -> None:
    """Questions are taken by their share; the choice between paragraph and window must not follow it."""
    filler = " ".join(f"The tower number {n} is made of grey stone and wood." for n in range(12))
    rows = [
        {
            "query": f"who owns mill {number}?",
            "passage": f"{filler} Mill {number} belongs to Ann Berg {number}. {filler}",
            "relevance": 1 if number % 4 else 0.5,
            "title": f"t{number}",
            "answer": f"Ann Berg {number}",
        }
        for number in range(200)
    ]
    write(tmp_path / "retrieval/squad2_half.jsonl.gz", rows)
    seen = training.judged.Seen([])
    for name, length in (("squad", 60), ("squad_sentences", 12)):
        found = training.pool._chosen(name, tmp_path, seen, 20)
        assert len(found) == 20
        assert all(example.answer in example.passage for example in found)
        assert sum(len(example.passage.split()) < length for example in found) > 10
        # Of half relevance are questions that their paragraph does not answer.
        assert not any(int(example.query.split()[-1].rstrip("?")) % 4 == 0 for example in found)


def test_fusion_is_fitted_on_what_separates(training: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    lists = []
    for number in range(40):
        item = training.features.Lists(
            ("one", "two")[number % 2], "q", ["x"] * 8, list(range(8)), {0: 1.0},
            rng.normal(size=8), rng.normal(size=8), rng.normal(size=8), rng.normal(size=8),
            {"bm25": list(range(8))},
        )  # fmt: skip
        item.cosine[0] += 3
        lists.append(item)
    names = ("logit", "cosine", "lexical")
    weights = training.fusion.fit_weights(lists, names, 0.0)
    assert weights.cosine > 3 * max(weights.lexical, 0.01)
    pulled = training.fusion.fit_weights(lists, names, 100.0)
    assert 0.5 < pulled.lexical < 2  # equal shares, whatever separates: the noises are equally wide
    assert pulled.cosine < weights.cosine
    assert training.fusion.best_pull(lists, names) < 1
    assert training.fusion.cross_fitted(lists, ("cosine",)).keys() == {"one", "two"}
    a, b = training.fusion.fit_platt(lists, training.fusion.Weights(logit=0.0, cosine=1.0))
    assert a > 0
    assert b < 0


def test_commands_from_data_to_manifest(training: SimpleNamespace, base: Path, tmp_path: Path) -> None:
    words = "river bridge stone mill tower gate market lamp cart rope".split()
    facts = [f"The {a} beside the {b} was painted in the colour number {i}." for i, (a, b) in
             enumerate((a, b) for a in words for b in words if a != b)]  # fmt: skip
    questions = [f"what colour has {fact.split()[1]} beside {fact.split()[4]}" for fact in facts]
    data = tmp_path / "train"
    for name in ("squad2_half", "hotpot_halueval", "covidqa", "qnli_dev"):
        share = slice(("squad2_half", "hotpot_halueval", "covidqa", "qnli_dev").index(name) * 20, None)
        rows = [
            {
                "query": q,
                "passage": p,
                "relevance": 1,
                "title": p,
                "pid": p,
                "answer": p.partition("colour ")[2],
            }
            for q, p in list(zip(questions, facts, strict=True))[share][:20]
        ]
        write(data / f"retrieval/{name}.jsonl.gz", rows)
    write(data / "retrieval/scifact.corpus.jsonl.gz", [])
    write(data / "retrieval/scifact_train.queries.jsonl.gz", [])
    with gzip.open(data / "retrieval/scifact_train.qrels.tsv.gz", "wt") as stream:
        stream.write("")
    write(data / "grounding/fever_nli.jsonl.gz", [])
    dev = [{"query": q, "passage": p, "relevance": 1} for q, p in zip(questions[:6], facts[:6], strict=True)]
    write(tmp_path / "dev/toy.jsonl.gz", dev)

    groups = tmp_path / "work/groups.jsonl"
    common = ["--embedder", str(base)]
    assert training.main(
        ["data", "--data", str(data), "--exclude", str(tmp_path / "dev"), "--out", str(groups), *common]
    ) == 0  # fmt: skip
    made = training.pool.read_groups(groups)
    assert {item.source for item in made} >= {"squad", "hotpot", "covidqa"}
    assert not {item.query for item in made} & set(questions[:6])
    assert {item.held for item in made} == {True, False}
    assert all(len(item.passages) == len(item.cosine) == len(item.lexical) for item in made)

    run, fit, figures = tmp_path / "run", tmp_path / "fit.json", tmp_path / "figures.json"
    assert (
        training.main(
            ["train", "--init", str(base), "--data", str(groups), "--out", str(run), "--steps", "3"]
        )
        == 0
    )
    assert (
        training.main(["fuse", "--data", str(groups), "--model", str(run), "--out", str(fit), *common]) == 0
    )
    fitted = json.loads(fit.read_text())
    more = ["--chosen", "16", "12", "--long-query", "15", *common]
    assert training.main(["fuse", "--data", str(groups), "--model", str(run), "--out", str(fit), *more]) == 0
    chosen = json.loads(fit.read_text())
    assert "chosen" not in fitted["systems"]
    assert chosen["systems"]["chosen"] == {"logit": 1.0, "cosine": 16.0, "lexical": 12.0, "long_query": 15.0}
    assert len(chosen["platt"]["chosen"]) == 2
    evaluate = ["evaluate", "--data", str(tmp_path / "dev"), "--json", str(figures), *common]
    assert training.main([*evaluate, "--model", str(run), "--weights", str(fit)]) == 0
    rows = json.loads(figures.read_text())["mean"]["bm25"]
    assert {"as retrieved", "reranked", "reranked + both"} <= rows.keys()
    assert rows["as retrieved"]["ndcg"] == pytest.approx(1, abs=0.3)

    ship = [
        "export",
        "--checkpoint",
        str(run),
        "--fit",
        str(fit),
        "--system",
        "reranked + both",
        "--measured",
    ]
    assert training.main([*ship, str(figures), "--data", str(groups), "--out", str(tmp_path / "models")]) == 0
    entry = ModelRecord.from_dict(json.loads((tmp_path / "models/manifest.json").read_text())["models"][0])
    assert entry.fusion is not None
    wrong = [*ship[:-2], "unknown", ship[-1], str(figures), "--data", str(groups), "--out", str(tmp_path)]
    with pytest.raises(ValueError, match="no system 'unknown'"):
        training.main(wrong)
    assert entry.labels == ("relevance",)
    assert entry.export["int8_against_float32"]["correlation"] > 0.9
    assert (tmp_path / "models/rerank/model.onnx").stat().st_size == entry.files[0].bytes


def test_help_of_every_command(training: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("data", "train", "evaluate", "fuse", "export"):
        with pytest.raises(SystemExit, match="0"):
            training.main([name, "--help"])
        assert "--seed" in capsys.readouterr().out
