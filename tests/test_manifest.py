from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from surefoot.errors import (
    ConfigurationError,
    DownloadRefusedError,
    ModelError,
    ModelIntegrityError,
    ModelNotFoundError,
)
from surefoot.models import manifest
from surefoot.models.int8store import SESSION_CONFIG
from surefoot.models.manifest import (
    ModelRecord,
    ResolvedModel,
    bundled,
    list_models,
    load_manifest,
    resolve_model,
)
from surefoot.models.records import Calibration, describe, labels_of
from surefoot.models.safefiles import cache_dir, hash_file, inside, read_json, write_text

MODELS = Path(__file__).parent / "fixtures" / "models"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))


def copy_of(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / name, tmp_path / name))


def session(model: ResolvedModel) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    for key, value in SESSION_CONFIG.items():
        options.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(str(model.model_path), options, providers=["CPUExecutionProvider"])


def worst_difference(model: ResolvedModel, folder: Path) -> float:
    """Largest distance between the outputs and those that PyTorch gave when the fixture was made."""
    running = session(model)
    worst = 0.0
    for case in json.loads((folder / "expected.json").read_text("utf-8")):
        inputs = {key: np.array(value, np.int64) for key, value in case["inputs"].items()}
        got = running.run(None, inputs)[0]
        got = got[:, 0] if got.ndim == 3 else got
        worst = max(worst, float(np.abs(got - np.array(case["output"])).max()))
    return worst


# --- the bundle ---


def test_every_bundled_file_is_the_one_in_the_manifest() -> None:
    assert list_models()
    for record in list_models():
        model = bundled(record.name)
        assert model.record == record
        assert model.source == "bundle"
        present = {
            p.relative_to(model.model_path.parent).as_posix() for p in model.model_path.parent.rglob("*")
        }
        assert present == {item.path for item in record.files}, (
            "a file ships that the manifest does not vouch for"
        )


def test_none_is_the_bundled_model_of_the_task() -> None:
    model = resolve_model(None, task="nli")
    assert model == bundled("verify")
    assert resolve_model("verify", task="nli").fingerprint == model.fingerprint
    assert sorted(model.record.labels) == ["contradiction", "entailment", "neutral"]
    assert model.config["id2label"] == {str(i): label for i, label in enumerate(model.record.labels)}
    assert model.record.max_length == 512


def test_the_bundled_nli_model_tells_entailment_from_contradiction() -> None:
    model = bundled("verify")
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    running = session(model)

    def label(premise: str, claim: str) -> str:
        encoding = tokenizer.encode(premise, claim)
        logits = running.run(
            ["logits"],
            {
                "input_ids": np.array([encoding.ids]),
                "attention_mask": np.array([encoding.attention_mask]),
                "token_type_ids": np.array([encoding.type_ids]),
            },
        )[0]
        return model.record.labels[int(logits.argmax())]

    premise = "A woman in a blue coat is walking her dog along the river."
    assert label(premise, "A woman is outside with a dog.") == "entailment"
    assert label(premise, "Nobody is walking a dog.") == "contradiction"


def test_a_bundled_tokenizer_neither_truncates_nor_pads() -> None:
    for record in list_models():
        table = json.loads(bundled(record.name).tokenizer_path.read_text("utf-8"))
        assert table["truncation"] is None
        assert table["padding"] is None


def test_a_bundled_onnx_model_holds_no_float_matrix_and_fused_attention() -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(bundled("verify").model_path))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Attention") == 6
    assert kinds.count("BiasGelu") == 6
    assert kinds.count("SkipLayerNormalization") == 12
    assert "Softmax" not in kinds
    large = [
        t
        for t in model.graph.initializer
        if t.data_type == onnx.TensorProto.FLOAT and np.prod(t.dims) > 40_000
    ]
    assert large == []


def test_static_vectors_are_plain_arrays_that_fit_the_tokenizer() -> None:
    model = resolve_model(None, task="static")
    table = np.load(model.model_path, allow_pickle=False)
    scale = np.load(model.file("scale.npy"), allow_pickle=False)
    idf = np.load(model.file("idf.npy"), allow_pickle=False)
    tokenizer = Tokenizer.from_file(str(model.tokenizer_path))
    assert table.dtype == np.int8
    assert len(table) == len(scale) == len(idf) == tokenizer.get_vocab_size()
    assert np.isfinite(scale.astype(np.float32)).all()
    assert (scale > 0).all()

    def vector(text: str) -> np.ndarray:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        rows = table[ids].astype(np.float32) * scale[ids, None].astype(np.float32)
        total = (rows * idf[ids, None].astype(np.float32)).sum(axis=0)
        return np.asarray(total / np.linalg.norm(total))

    near = vector("the physician treated the illness") @ vector("a doctor cured the disease")
    far = vector("the physician treated the illness") @ vector("the train to Lyon leaves at noon")
    assert near > far + 0.2
    assert idf[tokenizer.token_to_id("the")] < idf[tokenizer.token_to_id("physician")]
    with pytest.raises(ModelNotFoundError, match=r"other\.npy"):
        model.file("other.npy")


def copied_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    original = manifest._bundle_folder()
    folder = tmp_path / "models"
    shutil.copytree(original, folder)
    monkeypatch.setattr(manifest, "_bundle_folder", lambda: folder)
    return folder


def test_a_changed_byte_is_refused_and_the_file_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied_bundle(tmp_path, monkeypatch)
    path = folder / "verify" / "model.onnx"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelIntegrityError, match=r"sha256 of model\.onnx"):
        resolve_model(None, task="nli")
    path.unlink()
    with pytest.raises(ModelIntegrityError, match=r"model\.onnx is missing"):
        resolve_model(None, task="nli")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"models": [{}]}', "{" * 100_000, '{"models": [{"name": 1}]}', "\xff"]
)
def test_a_damaged_manifest_is_an_integrity_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    monkeypatch.setattr(manifest, "_bundle_folder", lambda: tmp_path)
    with pytest.raises(ModelIntegrityError):
        load_manifest()


def test_records_survive_json() -> None:
    for record in list_models():
        assert ModelRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record


# --- names ---


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/x/y",
        "a/b/c",
        "a\\b",
        "",
        ".",
        "a/..",
        "a/b\0",
        "~nobody/x",
        "C:/x",
        "a--b/c",
        "x" * 9999,
        "\ud800/a",
    ],
)
def test_no_name_leads_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ModelNotFoundError, ConfigurationError)):
        resolve_model(name, task="nli", download=True)


@given(st.text(max_size=60))
def test_any_text_as_a_name_gives_a_surefoot_error(name: str) -> None:
    if name in load_manifest():
        return
    with pytest.raises(ModelError):
        resolve_model(name + "\x7f", task="nli")


def test_a_hub_name_is_not_fetched_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadRefusedError) as caught:
        resolve_model("cross-encoder/nli-deberta-v3-small", task="nli")
    assert "surefoot models pull cross-encoder/nli-deberta-v3-small" in str(caught.value)
    assert "download=True" in str(caught.value)


def test_a_wrong_task_or_a_needless_revision_is_the_callers_mistake() -> None:
    with pytest.raises(ConfigurationError, match="task must be one of"):
        resolve_model(None, task="poetry")
    with pytest.raises(ConfigurationError, match="model for nli, not for relevance"):
        resolve_model("verify", task="relevance")
    with pytest.raises(ConfigurationError, match="no revision"):
        resolve_model(None, task="nli", revision="main")
    with pytest.raises(ConfigurationError, match="no revision"):
        resolve_model(MODELS / "bert-nli", task="nli", revision="main")
    with pytest.raises(ModelNotFoundError, match="bundled: "):
        bundled("nonsense")


# --- folders ---


@pytest.mark.parametrize(
    ("name", "task", "labels"),
    [
        ("bert-nli", "nli", ("contradiction", "entailment", "neutral")),
        ("deberta-nli", "nli", ("contradiction", "entailment", "neutral")),
        ("bert-relevance", "relevance", ("LABEL_0",)),
        ("bert-embed", "embed", ()),
    ],
)
def test_a_folder_with_onnx_loads_and_scores_as_pytorch_did(
    name: str, task: str, labels: tuple[str, ...]
) -> None:
    folder = MODELS / name
    for given_as in (folder, str(folder)):
        model = resolve_model(given_as, task=task)
        assert model.source == "folder"
        assert model.record.labels == labels
        assert model.record.name == name
        assert model.record.max_length == 64
    assert model.model_path == folder / "onnx" / "model.onnx"
    assert {item.sha256 for item in model.record.files} == {
        hash_file(model.model_path),
        hash_file(model.tokenizer_path),
    }
    assert worst_difference(model, folder) < 1e-4


def test_a_folder_wins_over_a_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cross-encoder").mkdir()
    shutil.copytree(MODELS / "bert-nli", tmp_path / "cross-encoder" / "nli")
    monkeypatch.chdir(tmp_path)
    assert resolve_model("cross-encoder/nli", task="nli").source == "folder"


def test_a_folder_is_not_mistaken_for_a_model_of_another_task() -> None:
    with pytest.raises(ModelError, match="single output"):
        resolve_model(MODELS / "bert-relevance", task="nli")
    with pytest.raises(ModelError, match="3 outputs"):
        resolve_model(MODELS / "bert-nli", task="relevance")


def test_labels_follow_the_ids_and_not_the_order_of_the_file(tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["id2label"] = {"2": "C", "0": "A", "1": "B"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert resolve_model(folder, task="nli").record.labels == ("A", "B", "C")


@pytest.mark.parametrize(
    "table", [{}, {"0": "a", "2": "b"}, {"0": 1, "1": 2}, [], "abc", {"a": "b", "0": "c"}]
)
def test_labels_with_gaps_are_refused(table: object) -> None:
    with pytest.raises(ModelError, match="id2label"):
        labels_of({"id2label": table})


def test_the_fingerprint_changes_with_the_content_only(tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    first = resolve_model(folder, task="nli").fingerprint
    assert first == resolve_model(MODELS / "bert-nli", task="nli").fingerprint
    assert len(first) == 64
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text("utf-8") + " ", encoding="utf-8")
    assert resolve_model(folder, task="nli").fingerprint != first


def test_pickled_weights_are_refused_unopened(tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    shutil.rmtree(folder / "onnx")
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    with pytest.raises(ModelIntegrityError, match=r"only pickled weights \(pytorch_model\.bin\)"):
        resolve_model(folder, task="nli")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ModelNotFoundError, match=r"neither model\.onnx nor model\.safetensors"):
        resolve_model(folder, task="nli")


def test_a_folder_without_a_config_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        resolve_model(tmp_path, task="nli")


@pytest.mark.parametrize("text", ["", "[1]", "[" * 200_000, "{" + " " * (5 << 20) + "}", '{"id2label": 1'])
def test_a_hostile_config_is_an_integrity_error(text: str, tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelIntegrityError, match=r"config\.json"):
        resolve_model(folder, task="nli")


def test_a_record_in_the_folder_is_checked(tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    shutil.move(folder / "onnx" / "model.onnx", folder / "model.onnx")
    record = resolve_model(folder, task="nli").record
    (folder / "surefoot.json").write_text(
        json.dumps({**record.to_dict(), "license": "MIT", "calibration": {"a": 2.0, "b": -1.0}}),
        encoding="utf-8",
    )
    found = resolve_model(folder, task="nli").record
    assert (found.license, found.calibration.a, found.calibration.b) == ("MIT", 2.0, -1.0)
    with pytest.raises(ConfigurationError, match="model for nli"):
        resolve_model(folder, task="relevance")
    with (folder / "model.onnx").open("ab") as stream:
        stream.write(b"\0")
    with pytest.raises(ModelIntegrityError, match=r"model\.onnx"):
        resolve_model(folder, task="nli")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = copy_of("bert-nli", tmp_path)
    shutil.move(folder / "tokenizer.json", tmp_path / "elsewhere.json")
    (folder / "tokenizer.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ModelIntegrityError, match="link"):
        resolve_model(folder, task="nli")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_snapshot_in_the_hub_clients_own_cache_loads(tmp_path: Path) -> None:
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot = tmp_path / "models--a--b" / "snapshots" / ("0" * 40)
    blobs.mkdir(parents=True)
    for path in (MODELS / "bert-nli").rglob("*"):
        if path.is_file():
            blob = blobs / hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copy(path, blob)
            link = snapshot / path.relative_to(MODELS / "bert-nli")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(blob, link.parent))
    model = resolve_model(snapshot, task="nli")
    assert worst_difference(model, MODELS / "bert-nli") < 1e-4


# --- small parts ---


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "a//x", "./x", "C:\\x", "a\\..\\x", "", "a\0"])
def test_a_path_inside_a_folder_cannot_climb(path: str, tmp_path: Path) -> None:
    with pytest.raises(ModelIntegrityError):
        inside(tmp_path, path)


def test_json_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    assert read_json(path, limit=8) == {"a": 1}
    with pytest.raises(ModelIntegrityError, match="larger than 7"):
        read_json(path, limit=7)


def test_text_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_cache_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("SUREFOOT_CACHE")
    assert cache_dir().name == "surefoot"


@given(st.floats(allow_nan=False), st.floats(0.01, 10), st.floats(-5, 5))
def test_support_is_a_probability_that_grows_with_the_log_odds(x: float, a: float, b: float) -> None:
    calibration = Calibration(a=a, b=b)
    assert 0 <= calibration.support(x) <= 1
    assert calibration.support(x) <= calibration.support(x + 1)
    assert math.isclose(calibration.support(-b / a), 0.5, abs_tol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "isotonic"},
        {"a": 0.0},
        {"a": float("nan")},
        {"review_low": 0.7},
        {"contradiction": 2.0},
        {"b": "1"},
    ],
)
def test_a_calibration_that_cannot_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ModelIntegrityError):
        Calibration(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "tokenizer", "longest"),
    [
        ({"max_position_embeddings": 512}, {}, 512),
        ({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}, {}, 512),
        ({"max_position_embeddings": 130, "model_type": "roberta", "pad_token_id": 1}, {}, 128),
        ({"max_position_embeddings": 8192}, {"model_max_length": 8192}, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 1e30}, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 256}, 256),
        ({}, {"model_max_length": "512"}, 512),
        ({"max_position_embeddings": -3}, {"model_max_length": True}, 512),
    ],
)
def test_the_longest_input(config: dict[str, object], tokenizer: dict[str, object], longest: int) -> None:
    record = describe(config, name="x", task="embed", files=(), tokenizer_config=tokenizer)
    assert record.max_length == longest
