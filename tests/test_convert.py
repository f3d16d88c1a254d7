from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from surefoot.errors import MissingExtraError, ModelError, ModelIntegrityError
from surefoot.models.int8store import SESSION_CONFIG, quantize
from surefoot.models.manifest import resolve_model

MODELS = Path(__file__).parent / "fixtures" / "models"
TINY = MODELS / "bert-nli-safetensors"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))


def session(model: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def cases(folder: Path) -> list[tuple[dict[str, Any], Any]]:
    table = json.loads((folder / "expected.json").read_text("utf-8"))
    return [({k: np.array(v) for k, v in case["inputs"].items()}, np.array(case["output"])) for case in table]


def wide_bert() -> tuple[dict[str, Any], dict[str, Any]]:
    """Config and random weights of a BERT whose matrices are large enough to be stored in int8."""
    random = np.random.default_rng(3)
    config = {
        "model_type": "bert",
        "architectures": ["BertForSequenceClassification"],
        "hidden_size": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 256,
        "max_position_embeddings": 160,
        "vocab_size": 300,
        "type_vocab_size": 2,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (300, 128),
        "embeddings.position_embeddings.weight": (160, 128),
        "embeddings.token_type_embeddings.weight": (2, 128),
        "pooler.dense.weight": (128, 128),
        "classifier.weight": (3, 128),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes[f"{layer}{part}.weight"] = (128, 128)
        shapes[f"{layer}attention.output.dense.weight"] = (128, 128)
        shapes[f"{layer}intermediate.dense.weight"] = (256, 128)
        shapes[f"{layer}output.dense.weight"] = (128, 256)
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    weights = {key: random.normal(0, 0.1, shape).astype(np.float32) for key, shape in shapes.items()}
    for key in [key for key in shapes if "embeddings" not in key]:
        weights[key.replace("weight", "bias")] = random.normal(0, 0.1, shapes[key][0]).astype(np.float32)
    for norm in norms:
        weights[norm + ".weight"] = random.normal(1, 0.1, 128).astype(np.float32)
        weights[norm + ".bias"] = random.normal(0, 0.1, 128).astype(np.float32)
    return config, weights


def some_inputs(batch: int, length: int) -> dict[str, Any]:
    random = np.random.default_rng(length)
    mask = np.ones((batch, length), np.int64)
    mask[0, max(1, length * 2 // 3) :] = 0
    segments = np.zeros_like(mask)
    segments[:, length // 2 :] = 1
    ids = random.integers(0, 300, (batch, length))
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


# --- numbers ---


@example(weight=np.array([[1e-45]], np.float32), axis=0)
@example(weight=np.array([[0.0]], np.float32), axis=1)
@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-8, 8, width=32)
    ),
    st.sampled_from([0, 1]),
)
def test_quantised_weights_are_within_half_a_step(weight: Any, axis: int) -> None:
    values, scale = quantize(weight, axis)
    assert values.dtype == np.int8
    assert values.min() >= -127
    assert scale.shape == (weight.shape[axis],)
    restored = values.astype(np.float64) * np.expand_dims(scale.astype(np.float64), 1 - axis)
    tolerance = np.expand_dims(scale.astype(np.float64), 1 - axis) * 0.5001 + 1e-37
    assert (np.abs(restored - weight) <= tolerance).all()


def test_weights_stored_in_int8_score_like_their_float32_values_bit_for_bit() -> None:
    pytest.importorskip("onnx")
    from surefoot.models.bertgraph import bert_graph
    from surefoot.models.int8store import store_int8

    config, weights = wide_bert()
    exact = bert_graph(config, weights)
    stored = store_int8(exact).SerializeToString()
    assert len(stored) < 0.35 * len(exact.SerializeToString())

    rounded = dict(weights)
    for key, value in weights.items():
        if (
            value.ndim == 2 and value.size >= 16_384
        ):  # per row of the checkpoint's matrix = per output channel
            values, scale = quantize(value, 0)
            rounded[key] = values.astype(np.float32) * scale[:, None]
    assert any((rounded[key] != weights[key]).any() for key in weights)
    same = session(bert_graph(config, rounded).SerializeToString())
    running, unrounded = session(stored), session(exact.SerializeToString())
    for batch, length in ((1, 3), (4, 24), (2, 160)):
        inputs = some_inputs(batch, length)
        got = running.run(None, inputs)[0]
        np.testing.assert_array_equal(got, same.run(None, inputs)[0])
        assert 0 < np.abs(got - unrounded.run(None, inputs)[0]).max() < 0.05


def test_the_stored_model_computes_no_activation_in_int8() -> None:
    onnx = pytest.importorskip("onnx")
    from surefoot.models.bertgraph import bert_graph
    from surefoot.models.int8store import store_int8

    model = store_int8(bert_graph(*wide_bert()))
    onnx.checker.check_model(model)
    kinds = {node.op_type for node in model.graph.node}
    assert not kinds & {
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "MatMulInteger",
        "QLinearMatMul",
        "QAttention",
    }
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            assert set(node.input) <= constants


def test_the_graph_for_int8_arithmetic_rounds_every_product_of_the_same_weights(
    tmp_path: Path,
) -> None:
    onnx = pytest.importorskip("onnx")
    from surefoot.models.bertgraph import bert_graph
    from surefoot.models.int8graph import int8_graph
    from surefoot.models.int8store import store_int8

    stored = store_int8(bert_graph(*wide_bert())).SerializeToString(deterministic=True)
    (tmp_path / "model.onnx").write_bytes(stored)
    made = int8_graph(stored)
    assert made == int8_graph(stored)
    assert len(made) < len(stored) / 4
    (tmp_path / "int8.onnx").write_bytes(made)
    kinds = [node.op_type for node in onnx.ModelProto.FromString(made).graph.node]
    before = [node.op_type for node in onnx.ModelProto.FromString(stored).graph.node]
    assert kinds.count("QAttention") == before.count("Attention") > 0
    rounded = kinds.count("DynamicQuantizeMatMul") + kinds.count("QAttention")
    assert rounded == before.count("DequantizeLinear")
    assert "DequantizeLinear" not in kinds

    exact, faster = session(stored), session(str(tmp_path / "int8.onnx"))
    inputs = some_inputs(2, 40)
    assert np.abs(exact.run(None, inputs)[0] - faster.run(None, inputs)[0]).max() < 0.05
    assert int8_graph(bert_graph(*wide_bert()).SerializeToString()) is None


def test_weights_used_in_two_ways_stay_as_they_are() -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    from surefoot.models.int8store import store_int8

    table = numpy_helper.from_array(
        np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32), "tied"
    )
    nodes = [
        helper.make_node("Gather", ["tied", "ids"], ["found"]),
        helper.make_node("MatMul", ["found", "tied"], ["out"]),
    ]
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, [None])]
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None, 128])]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [table]))
    assert store_int8(model) == model
    assert onnx.checker.check_model(model) is None


# --- BERT, without PyTorch ---


def test_a_bert_checkpoint_scores_as_pytorch_did() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    from surefoot.models.convert import to_onnx

    running = session(to_onnx(TINY, task="nli").SerializeToString())
    assert [item.name for item in running.get_inputs()] == ["input_ids", "attention_mask", "token_type_ids"]
    for inputs, expected in cases(TINY):
        assert np.abs(running.run(["logits"], inputs)[0] - expected).max() < 1e-4


@pytest.mark.parametrize("int8", [False, True])
def test_the_same_checkpoint_gives_the_same_bytes(int8: bool, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    from surefoot.models.convert import convert_folder

    records = [
        convert_folder(TINY, tmp_path / str(i) / "m", name="tiny", task="nli", int8=int8) for i in range(2)
    ]
    assert records[0] == records[1]
    written = {path.name for path in (tmp_path / "0" / "m").iterdir()}
    assert {item.path for item in records[0].files} == written - {"surefoot.json"}
    for name in ("model.onnx", "tokenizer.json", "config.json", "surefoot.json"):
        assert (tmp_path / "0" / "m" / name).read_bytes() == (tmp_path / "1" / "m" / name).read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "0" / "m" / "model.onnx").read_bytes()
    assert sorted(path.name for path in (tmp_path / "0").iterdir()) == ["m"], "temporary files stay behind"


def test_a_checkpoint_folder_is_converted_once_and_found_again(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    model = resolve_model(folder, task="nli")
    assert model.source == "folder"
    assert model.record.labels == ("contradiction", "entailment", "neutral")
    assert model.model_path.is_relative_to(tmp_path / "cache" / "converted")
    stamp = model.model_path.stat().st_mtime_ns
    assert resolve_model(folder, task="nli") == model
    assert model.model_path.stat().st_mtime_ns == stamp

    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["id2label"] = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert resolve_model(folder, task="nli").record.labels == ("entailment", "neutral", "contradiction")

    with model.model_path.open("ab") as stream:
        stream.write(b"\0")
    with pytest.raises(ModelIntegrityError, match=r"model\.onnx"):
        resolve_model(TINY, task="nli")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'surefoot\[convert\]'"):
        resolve_model(TINY, task="nli")
    cache = tmp_path / "cache" / "converted"
    assert not cache.exists() or list(cache.iterdir()) == []


def test_a_head_that_is_not_in_the_checkpoint_is_not_made_up() -> None:
    pytest.importorskip("onnx")
    from surefoot.models.bertgraph import bert_graph

    config, weights = wide_bert()
    del weights["classifier.weight"]
    with pytest.raises(ModelError, match=r"no tensor 'classifier\.weight'"):
        bert_graph(config, weights)


def test_a_config_that_does_not_fit_the_weights_is_refused() -> None:
    pytest.importorskip("onnx")
    from surefoot.models.bertgraph import bert_graph

    config, weights = wide_bert()
    with pytest.raises(ModelError, match="shape"):
        bert_graph({**config, "intermediate_size": 512}, weights)


def test_pickles_are_refused_and_damaged_safetensors_too(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    from surefoot.models.convert import to_onnx

    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    (folder / "model.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(ModelIntegrityError, match="not a safetensors file"):
        to_onnx(folder, task="nli")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelIntegrityError, match="pickle"):
        to_onnx(folder, task="nli")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ModelIntegrityError, match=r"no model\.safetensors"):
        to_onnx(folder, task="nli")


def test_truncation_and_padding_of_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    from surefoot.models.convert import tokenizer_json

    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    table = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    table["truncation"] = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    (folder / "tokenizer.json").write_text(json.dumps(table), encoding="utf-8")
    assert json.loads(tokenizer_json(folder))["truncation"] is None


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_checkpoints_are_read_exactly(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch_io = pytest.importorskip("safetensors.torch")
    from surefoot.models.convert import load_weights

    half = torch.randn(5, 7).to(getattr(torch, kind))
    torch_io.save_file({"a": half, "ids": torch.arange(3)}, str(tmp_path / "x.safetensors"))
    found = load_weights(tmp_path / "x.safetensors")
    assert list(found) == ["a"]
    np.testing.assert_array_equal(found["a"], half.float().numpy())


# --- other architectures, through PyTorch ---


def checkpoint(kind: str, folder: Path) -> Any:
    """Save a tiny random classifier with three labels in an unusual order, and return it."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    common = {
        "vocab_size": 120,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "id2label": labels,
        "label2id": {label: index for index, label in labels.items()},
    }
    deberta = {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "pooler_hidden_size": 16,
    }
    if kind == "deberta":
        model = transformers.DebertaForSequenceClassification(transformers.DebertaConfig(**common, **deberta))
    elif kind == "deberta-v3":
        v3 = {"position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True}
        model = transformers.DebertaV2ForSequenceClassification(
            transformers.DebertaV2Config(**common, **deberta, **v3)
        )
    elif kind == "roberta":
        settings = {"max_position_embeddings": 514, "type_vocab_size": 1}
        model = transformers.RobertaForSequenceClassification(
            transformers.RobertaConfig(**common, **settings)
        )
    else:
        model = transformers.BertForSequenceClassification(
            transformers.BertConfig(**common, hidden_act="relu")
        )
    generator = torch.Generator().manual_seed(5)
    for key, parameter in model.named_parameters():
        with torch.no_grad():
            around = 1.0 if "LayerNorm.weight" in key else 0.0
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4 + around)
    model.eval().save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["deberta-v3", "deberta", "roberta", "bert-relu"])
def test_other_architectures_match_pytorch_at_lengths_that_were_not_traced(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from surefoot.models.convert import to_onnx

    model = checkpoint(kind, tmp_path)
    exported = to_onnx(tmp_path, task="nli")
    data = exported.SerializeToString(deterministic=True)
    assert data == to_onnx(tmp_path, task="nli").SerializeToString(deterministic=True)
    assert str(tmp_path).encode() not in data
    assert Path(torch.__file__).parent.as_posix().encode() not in data
    running = session(data)
    outputs = []
    for batch, length in ((1, 1), (1, 6), (3, 31), (2, 200), (1, 512)):
        inputs = some_inputs(batch, length)
        inputs["input_ids"] %= 118
        inputs["input_ids"] += 2
        inputs = {item.name: inputs[item.name] for item in running.get_inputs()}
        with torch.no_grad():
            expected = model(**{key: torch.from_numpy(value) for key, value in inputs.items()}).logits.numpy()
        got = running.run(["logits"], inputs)[0]
        assert np.abs(got - expected).max() < 1e-4
        outputs.append(got)
    assert np.concatenate(outputs).std(axis=0).max() > 0.05, (
        "the input must matter for this to prove anything"
    )


def test_a_deberta_folder_with_a_slow_tokenizer_only(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    pytest.importorskip("transformers")
    pytest.importorskip("onnx")
    text = json.loads((MODELS / "deberta-nli" / "tokenizer.json").read_text("utf-8"))
    folder = Path(shutil.copytree(MODELS / "deberta-nli", tmp_path / "deberta"))
    (folder / "tokenizer.json").unlink()
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([piece for piece, _ in text["model"]["vocab"]] * 3), encoding="utf-8")
    spm.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "spm"),
        vocab_size=60,
        model_type="unigram",
        hard_vocab_limit=False,
        minloglevel=5,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        pad_piece="[PAD]",
        unk_piece="[UNK]",
    )
    settings = {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False, "vocab_type": "spm"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    model = resolve_model(folder, task="nli")
    from tokenizers import Tokenizer

    encoding = Tokenizer.from_file(str(model.tokenizer_path)).encode("the store", "is open")
    assert encoding.tokens[0] == "[CLS]"
    assert encoding.tokens.count("[SEP]") == 2
    assert encoding.tokens[-1] == "[SEP]"
    assert "".join(encoding.tokens).replace("▁", " ").count("store") == 1


def test_a_checkpoint_without_its_head_is_refused_by_the_traced_route(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("onnx")
    from surefoot.models.convert import to_onnx

    checkpoint("roberta", tmp_path)
    bare = transformers.RobertaModel.from_pretrained(tmp_path, add_pooling_layer=False)
    bare.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    config["architectures"] = ["RobertaForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ModelError, match="lacks"):
        to_onnx(tmp_path, task="nli")


def test_what_is_no_classifier_is_not_converted_to_one(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from surefoot.models.convert import to_onnx

    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["architectures"] = ["BertForMaskedLM"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ModelError, match="no sequence classifier"):
        to_onnx(folder, task="nli")
