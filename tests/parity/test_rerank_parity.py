"""The reranker against sentence-transformers' ``CrossEncoder``: the same checkpoints, the same logits.

Each checkpoint has random weights and the layout of a hub repository: safetensors, configuration, tokenizer.
surefoot converts it as it would a downloaded one; sentence-transformers reads it as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs PyTorch")
transformers = pytest.importorskip("transformers", reason="parity needs transformers")
pytest.importorskip("sentence_transformers", reason="parity needs sentence-transformers")
pytest.importorskip("onnx", reason="converting needs onnx")

from surefoot import Source  # noqa: E402
from surefoot.rerank import Reranker  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "models"
TOLERANCE = 1e-4
QUERY = "when does the store open on Monday"
SENTENCES = (
    "The store opens at nine on Monday and closes at six.",
    "Our refund policy allows returns within thirty days of delivery.",
    "She was born in Lyon in 1984 and moved to Paris.",
    "Revenue rose to 150 million euros, up from 120 million in 2021.",
    "A dog ran along the river while two men were fishing.",
    "Öffnungszeiten: 9–18 Uhr.  ",
    "営業時間は九時から六時までです。",
)
PASSAGES = [*SENTENCES, *(" ".join(SENTENCES[:count]) for count in range(2, 6)), "nine", "nine"]
FAMILIES = ("bert", "deberta")


def config_of(family: str, labels: dict[int, str]) -> Any:
    shared: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "id2label": labels,
        "label2id": {label: index for index, label in labels.items()},
    }
    if family == "bert":
        return transformers.BertConfig(**shared, vocab_size=120)
    return transformers.DebertaV2Config(
        **shared,
        vocab_size=90,
        relative_attention=True,
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        pooler_hidden_act="gelu",
        pooler_hidden_size=32,
    )


def checkpoint(folder: Path, family: str, labels: dict[int, str]) -> Path:
    """A hub repository of random weights."""
    torch.manual_seed(11)
    config = config_of(family, labels)
    model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1.0 if "LayerNorm.weight" in name else 0.0
            parameter.copy_(torch.randn(parameter.shape) * 0.2 + around)
        model.classifier.weight.mul_(5)  # logits a few units wide, as trained models have
    model.save_pretrained(folder)
    source = FIXTURES / ("bert-relevance" if family == "bert" else "deberta-nli") / "tokenizer.json"
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if family == "bert" else [])]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(source),
        model_max_length=512,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
        model_input_names=inputs,
    )
    tokenizer.save_pretrained(folder)
    return folder


def logits_there(folder: Path, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(
        str(folder),
        device="cpu",
        max_length=512,
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
        activation_fn=torch.nn.Identity(),
    )
    return np.asarray(model.predict(list(pairs), batch_size=16, show_progress_bar=False), dtype=np.float64)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))


pytestmark = pytest.mark.filterwarnings("ignore")  # other people's libraries


@pytest.mark.parametrize("family", FAMILIES)
def test_one_label(family: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / family, family, {0: "LABEL_0"})
    expected = logits_there(folder, [(QUERY, passage) for passage in PASSAGES])
    ranking = Reranker(folder, self_test=False).rerank(QUERY, PASSAGES, top_k=None)
    assert not ranking.degraded, ranking.detail
    found = {source.index: source.reranker_score for source in ranking}
    assert np.ptp(expected) > 0.1, "random weights that tell nothing apart would prove nothing"
    assert max(abs(found[index] - expected[index]) for index in found) < TOLERANCE
    # The order agrees wherever sentence-transformers' scores are further apart than the tolerance.
    order = [expected[source.index] for source in ranking]
    assert all(above > below - 2 * TOLERANCE for above, below in itertools.pairwise(order))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("relevant", [0, 1])
def test_two_labels(family: str, relevant: int, tmp_path: Path) -> None:
    labels = {relevant: "relevant", 1 - relevant: "irrelevant"}
    folder = checkpoint(tmp_path / family, family, dict(sorted(labels.items())))
    expected = logits_there(folder, [(QUERY, passage) for passage in PASSAGES])
    assert expected.shape == (len(PASSAGES), 2)
    ranking = Reranker(folder, self_test=False).rerank(QUERY, PASSAGES, top_k=None)
    assert not ranking.degraded, ranking.detail
    for source in ranking:
        logit = expected[source.index, relevant] - expected[source.index, 1 - relevant]
        assert source.reranker_score == pytest.approx(logit, abs=TOLERANCE)
        assert source.relevance == pytest.approx(1 / (1 + np.exp(-logit)), abs=TOLERANCE)


@pytest.mark.parametrize("field", ["expanded_context", "chunk_text", "text"])
def test_each_way_to_hand_a_passage_in(field: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "bert", "bert", {0: "LABEL_0"})
    expected = logits_there(folder, [(QUERY, passage) for passage in SENTENCES])
    reranker = Reranker(folder, self_test=False)
    fields = ("expanded_context", "chunk_text", "text")
    later = fields[fields.index(field) + 1 :]
    mappings = [{field: text, **dict.fromkeys(later, "something else")} for text in SENTENCES]
    records = [Source(str(index), text) for index, text in enumerate(SENTENCES)]
    for passages in (mappings, records, list(SENTENCES)):
        ranking = reranker.rerank(QUERY, passages, top_k=None)
        for source in ranking:
            assert source.reranker_score == pytest.approx(expected[source.index], abs=TOLERANCE)


def test_a_window_scores_as_its_text_does_there(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "bert", "bert", {0: "LABEL_0"})
    long = " ".join(SENTENCES[index % 5] for index in range(60))
    ranked = Reranker(folder, self_test=False).rerank(QUERY, [long])[0]
    assert ranked.windows > 2
    assert ranked.window is not None
    expected = logits_there(folder, [(QUERY, ranked.window.of(long))])
    assert ranked.reranker_score == pytest.approx(float(expected[0]), abs=TOLERANCE)
