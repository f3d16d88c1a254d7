from __future__ import annotations

import json
import logging
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from huggingface_hub import close_session, constants

from fakehub import FakeHub
from surefoot import Reranker
from surefoot.errors import (
    ConfigurationError,
    DownloadRefusedError,
    ModelError,
    ModelIntegrityError,
    ModelNotFoundError,
)
from surefoot.models import hub
from surefoot.models.manifest import resolve_model

MODELS = Path(__file__).parent / "fixtures" / "models"
NAMES = {
    "cross-encoder/nli-deberta-v3-small": ("nli", "deberta-nli"),
    "cross-encoder/ms-marco-MiniLM-L-6-v2": ("relevance", "bert-relevance"),
    "sentence-transformers/all-MiniLM-L6-v2": ("embed", "bert-embed"),
}
NLI = "cross-encoder/nli-deberta-v3-small"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    running = FakeHub()
    monkeypatch.setenv("HF_ENDPOINT", running.url)
    yield running
    running.close()
    close_session()


def place(tmp_path: Path, name: str) -> Path:
    return tmp_path / "cache" / "hub" / name.replace("/", "--")


def leftovers(tmp_path: Path, name: str) -> list[Path]:
    folder = place(tmp_path, name)
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_pulled_once_and_then_loads_without_the_network(
    name: str, server: FakeHub, tmp_path: Path
) -> None:
    task, fixture = NAMES[name]
    commit = server.add(name, MODELS / fixture)
    folder = hub.pull(name)
    assert folder == place(tmp_path, name) / commit
    asked = len(server.requests)
    assert asked > 0

    for download in (False, True):
        model = resolve_model(name, task=task, download=download)
        assert (model.source, model.record.name) == ("hub", name)
    assert hub.pull(name) == folder
    assert len(server.requests) == asked, "a cached model must not ask the hub anything"

    session = onnxruntime.InferenceSession(str(model.model_path), providers=["CPUExecutionProvider"])
    case = json.loads((MODELS / fixture / "expected.json").read_text("utf-8"))[1]
    output = session.run(None, {k: np.array(v, np.int64) for k, v in case["inputs"].items()})[0]
    output = output[:, 0] if output.ndim == 3 else output
    assert np.abs(output - np.array(case["output"])).max() < 1e-4


def test_a_reranker_takes_its_model_by_name(server: FakeHub) -> None:
    name = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    server.add(name, MODELS / "bert-relevance")
    passages = ["a dog ran along the river", "the store opens on monday", "two dogs"]
    refused = Reranker(name, self_test=False).rerank("dogs", passages)
    assert refused.degraded, "nothing is fetched without being asked"
    assert [item.index for item in refused] == [0, 1, 2]
    assert not server.requests
    # The weights are random, so the self-test would rightly refuse them.
    named = Reranker(name, download=True, self_test=False).rerank("dogs", passages)
    assert not named.degraded, named.detail
    local = Reranker(MODELS / "bert-relevance", self_test=False).rerank("dogs", passages)
    assert [item.reranker_score for item in named] == [item.reranker_score for item in local]


def test_safetensors_are_taken_and_converted_where_there_is_no_onnx(server: FakeHub) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    server.add("someone/tiny", MODELS / "bert-nli-safetensors")
    model = resolve_model("someone/tiny", task="nli", download=True)
    assert model.source == "hub"
    assert model.record.name == "someone/tiny"
    assert model.record.labels == ("contradiction", "entailment", "neutral")
    asked = len(server.requests)
    assert resolve_model("someone/tiny", task="nli").fingerprint == model.fingerprint
    assert len(server.requests) == asked


def test_only_data_files_are_asked_for(server: FakeHub) -> None:
    files = dict.fromkeys(("modeling.py", "pytorch_model.bin", "README.md", "onnx/model_O4.onnx"), b"{}")
    for path in ("config.json", "tokenizer.json", "onnx/model.onnx"):
        files[path] = (MODELS / "bert-nli" / path).read_bytes()
    files["model.safetensors"] = b"not needed: there is an ONNX file"
    server.add(NLI, files)
    folder = hub.pull(NLI)
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert present == {"config.json", "tokenizer.json", "onnx/model.onnx"}
    fetched = {path.split("/", 5)[-1] for _, path, _ in server.requests if "/resolve/" in path}
    assert fetched == present


def test_only_pickled_weights_are_refused_before_any_file_is_fetched(server: FakeHub, tmp_path: Path) -> None:
    server.add("a/b", {"config.json": b"{}", "tokenizer.json": b"{}", "pytorch_model.bin": b"\x80\x04."})
    with pytest.raises(ModelIntegrityError, match="pickled"):
        hub.pull("a/b")
    assert not [path for _, path, _ in server.requests if "/resolve/" in path]
    assert leftovers(tmp_path, "a/b") == []


@pytest.mark.parametrize("files", [{"config.json": b"{}"}, {"onnx/model.onnx": b"x"}, {}])
def test_a_repository_that_is_no_model(files: dict[str, bytes], server: FakeHub) -> None:
    server.add("a/b", files)
    with pytest.raises(ModelNotFoundError):
        hub.pull("a/b")


def test_a_new_commit_is_ignored_until_it_is_asked_for(server: FakeHub) -> None:
    old = server.add(NLI, MODELS / "deberta-nli")
    assert hub.pull(NLI).name == old
    new = server.add(NLI, MODELS / "bert-nli", version="2")
    assert hub.pull(NLI).name == old
    assert resolve_model(NLI, task="nli", download=True).record.architecture.startswith("Deberta")

    assert hub.pull(NLI, revision="main").name == new
    assert resolve_model(NLI, task="nli").record.architecture.startswith("Bert")
    asked = len(server.requests)
    assert resolve_model(NLI, task="nli", revision=old).record.architecture.startswith("Deberta")
    assert len(server.requests) == asked
    assert hub.locate(NLI).name == new, "looking at an old commit must not pin it"


def test_a_revision_for_one_load_does_not_move_the_pin(server: FakeHub) -> None:
    old = server.add(NLI, MODELS / "deberta-nli")
    hub.pull(NLI)
    new = server.add(NLI, MODELS / "bert-nli", branch="next", version="2")
    with pytest.raises(DownloadRefusedError, match="'next'"):
        resolve_model(NLI, task="nli", revision="next")
    model = resolve_model(NLI, task="nli", revision="next", download=True)
    assert model.model_path.parent.parent.name == new
    assert hub.locate(NLI).name == old
    assert hub.locate(NLI, revision="next").name == new


def test_nothing_is_fetched_without_being_asked(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    with pytest.raises(DownloadRefusedError, match=f"surefoot models pull {NLI}"):
        resolve_model(NLI, task="nli")
    assert server.requests == []


def test_the_offline_switch_of_the_hub_client_is_obeyed(
    server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    server.add(NLI, MODELS / "deberta-nli")
    with pytest.raises(DownloadRefusedError, match="HF_HUB_OFFLINE"):
        hub.pull(NLI)
    assert server.requests == []


def test_a_changed_cached_file_is_refused(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    folder = hub.pull(NLI)
    config = folder / "config.json"
    config.write_text(config.read_text("utf-8").replace("entailment", "entailmenT"), encoding="utf-8")
    asked = len(server.requests)
    with pytest.raises(ModelIntegrityError, match=r"config\.json is not what was downloaded"):
        resolve_model(NLI, task="nli", download=True)
    config.unlink()
    with pytest.raises(ModelIntegrityError, match=r"config\.json is missing"):
        resolve_model(NLI, task="nli")
    assert len(server.requests) == asked
    shutil.rmtree(folder)
    with pytest.raises(ModelIntegrityError, match="pull the model again"):
        resolve_model(NLI, task="nli")
    server.add(NLI, MODELS / "bert-nli", version="2")
    assert hub.pull(NLI) == folder, "the pinned commit again, not the newest"
    assert resolve_model(NLI, task="nli").source == "hub"


def test_a_commit_whose_files_changed_on_the_hub_is_refused(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    folder = hub.pull(NLI)
    shutil.rmtree(folder)
    server.add(NLI, MODELS / "bert-nli")
    with pytest.raises(ModelIntegrityError, match="other files"):
        hub.pull(NLI)
    assert not folder.exists()


def test_a_file_that_surefoot_did_not_download_is_refused(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    folder = hub.pull(NLI)
    (folder / "surefoot.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelIntegrityError, match=r"surefoot\.json was not downloaded"):
        resolve_model(NLI, task="nli")


@pytest.mark.parametrize("text", ["", "{}", '{"commits": []}', '{"commits": {"../../x": {}}}'])
def test_a_damaged_lock_is_an_integrity_error(text: str, server: FakeHub, tmp_path: Path) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    hub.pull(NLI)
    (place(tmp_path, NLI) / "lock.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelIntegrityError, match="lock"):
        resolve_model(NLI, task="nli")


@pytest.mark.parametrize("fault", ["truncate", "corrupt"])
def test_a_transfer_that_goes_wrong_leaves_nothing_behind(
    fault: str, server: FakeHub, tmp_path: Path
) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    server.fault = fault
    with pytest.raises(ModelError):
        hub.pull(NLI)
    assert leftovers(tmp_path, NLI) == []
    with pytest.raises(DownloadRefusedError):
        resolve_model(NLI, task="nli")
    server.fault = None
    assert resolve_model(NLI, task="nli", download=True).source == "hub"


def test_a_hub_that_stops_sending_times_out(
    server: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.05)
    server.add(NLI, MODELS / "deberta-nli")
    server.fault = "stall"
    with pytest.raises(ModelError, match="could not be downloaded"):
        hub.pull(NLI)
    assert leftovers(tmp_path, NLI) == []


def test_a_failing_hub_is_not_a_missing_model(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    server.fault = "500"
    with pytest.raises(ModelError, match="HTTP 500") as caught:
        hub.pull(NLI)
    assert not isinstance(caught.value, ModelNotFoundError)


def test_an_unreachable_hub(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    with pytest.raises(ModelError, match="could not be downloaded"):
        hub.pull(NLI)


def test_an_unknown_model_or_revision(server: FakeHub) -> None:
    with pytest.raises(ModelNotFoundError, match="no/such"):
        hub.pull("no/such")
    server.add(NLI, MODELS / "deberta-nli")
    with pytest.raises(ModelNotFoundError, match="'v9'"):
        hub.pull(NLI, revision="v9")


def test_a_token_is_sent_and_never_shown(server: FakeHub) -> None:
    server.add(NLI, MODELS / "deberta-nli")
    server.token = "hf_right"
    with pytest.raises(ModelNotFoundError) as caught:
        hub.pull(NLI, token="hf_wrong_secret")
    error: BaseException | None = caught.value
    while error is not None:
        assert "hf_wrong_secret" not in str(error)
        error = error.__cause__ or error.__context__
    folder = hub.pull(NLI, token="hf_right")
    assert all(
        "hf_right" not in path.read_text("latin-1") for path in folder.parent.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(
    "name", ["../x", "/a/b", "a/b/c", "a", "", "a/..", "../..", "a--b/c", "a/b\n", "-a/b", None]
)
def test_names_that_are_no_hub_names(name: Any, server: FakeHub) -> None:
    with pytest.raises(ConfigurationError):
        hub.pull(name)
    assert server.requests == []


@pytest.mark.parametrize("revision", ["", "../main", "a b", "x?y", "-x", "a" * 101])
def test_revisions_that_are_none(revision: str, server: FakeHub) -> None:
    with pytest.raises(ConfigurationError):
        hub.pull(NLI, revision=revision)
    assert server.requests == []
