"""What lies on the disk: crashes, damage, foreign files, and builds that are taken up again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.errors import ConfigurationError, InputError
from surefoot.inference.embedding import Embedder
from surefoot.retrieve import Index, PassageChunker
from surefoot.retrieve import store as store_module
from surefoot.retrieve.journal import Journal
from surefoot.retrieve.store import CONTENTS

FIXTURE = Path(__file__).parent / "fixtures" / "models" / "bert-embed"
TEXTS = [
    "A dog ran along the river.",
    "Our refund policy.",
    "Größe 日本 \ud800 x",
    "The store opens at nine.",
]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(FIXTURE, pooling="mean", threads=1)


@pytest.fixture
def saved(tmp_path: Path, embedder: Embedder) -> Path:
    folder = tmp_path / "index"
    Index.build(TEXTS, embedder=embedder).save(folder)
    return folder


def data_of(folder: Path) -> Path:
    return folder / str(json.loads((folder / CONTENTS).read_text())["data"])


# --- save and load -------------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dense", ["flat", "hnsw"])
def test_what_was_saved_comes_back(tmp_path: Path, embedder: Embedder, mmap: bool, dense: Any) -> None:
    index = Index.build(TEXTS, embedder=embedder, dense=dense, chunker=PassageChunker(size=60))
    index.remove(["2"])
    index.save(tmp_path / "index")
    again = Index.load(tmp_path / "index", embedder=embedder, mmap=mmap)
    assert [again.source(name) for name in again.source_ids] == [
        index.source(name) for name in index.source_ids
    ]
    for mode in ("fusion", "dense", "bm25"):
        assert again.search("dog river 日本", mode=mode) == index.search("dog river 日本", mode=mode)
    said = again.describe()
    assert said["dense"]["mapped"] is mmap
    assert said["dense"]["kind"] == dense
    assert said["chunker"]["size"] == 60
    changes = again.add(["A new dog.", {"id": "1", "text": "No animal here."}])
    assert (changes.added, changes.replaced) == (1, 1)
    again.save(tmp_path / "index")  # over the files that it is itself mapped from
    third = Index.load(tmp_path / "index", embedder=embedder, mmap=mmap)
    assert third.search("dog animal") == again.search("dog animal")
    assert len(list((tmp_path / "index").glob("data-*"))) == 1


def test_the_same_index_makes_the_same_files(tmp_path: Path, embedder: Embedder) -> None:
    for name in ("a", "b"):
        Index.build(TEXTS, embedder=embedder).save(tmp_path / name)
    a, b = data_of(tmp_path / "a"), data_of(tmp_path / "b")
    names = sorted(path.relative_to(a) for path in a.rglob("*") if path.is_file())
    assert len(names) > 8
    for name in names:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name


def test_numbers_are_not_given_twice(saved: Path, embedder: Embedder) -> None:
    """A removed source's number is not handed to the next unnamed one after loading."""
    index = Index.load(saved, embedder=embedder)
    index.add(["fifth"])
    assert index.source_ids == ["1", "2", "3", "4", "5"]


def test_a_custom_chunker_is_asked_for_again(tmp_path: Path, embedder: Embedder) -> None:
    def chunker(source: Any) -> list[tuple[int, int]]:
        return [(0, len(source.text))]

    Index.build(["a dog"], embedder=embedder, chunker=chunker).save(tmp_path / "index")
    index = Index.load(tmp_path / "index", embedder=embedder)
    assert index.search("dog", mode="bm25")
    with pytest.raises(ConfigurationError, match="chunker"):
        index.add(["another"])
    Index.load(tmp_path / "index", embedder=embedder, chunker=chunker).add(["another"])


def test_another_embedder_is_refused(saved: Path) -> None:
    with pytest.raises(ConfigurationError, match="pooling"):
        Index.load(saved, embedder=Embedder(FIXTURE, pooling="cls"))
    with pytest.raises(ConfigurationError, match="query_prefix"):
        Index.load(saved, embedder=Embedder(FIXTURE, pooling="mean", query_prefix="q: "))


def test_nothing_on_disk_is_a_pickle(saved: Path) -> None:
    files = [path for path in saved.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        assert path.suffix in {".npy", ".json", ".jsonl", ".bin", ".faiss"}
        if path.suffix == ".npy":
            assert np.load(path, allow_pickle=False).dtype != np.dtype(object)


# --- crashes -------------------------------------------------------------------------------------


class CrashError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("step", range(1, 40, 3))
def test_a_crash_while_saving_leaves_an_index(
    saved: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The process ends at one of the calls that reach the disk; what is loaded next is the old or the new."""
    old = Index.load(saved, embedder=embedder, mmap=False)
    new = Index.load(saved, embedder=embedder, mmap=False)
    new.add(["something new"])
    calls = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= step:
                raise CrashError
            return call(*args, **options)

        return wrapper

    with monkeypatch.context() as patch:
        for owner, name in (
            (os, "fsync"),
            (Path, "rename"),
            (Path, "replace"),
            (Path, "mkdir"),
            (np, "save"),
        ):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        patch.setattr(shutil, "rmtree", counted(shutil.rmtree))  # nobody tidies up after a crash either
        crashed = False
        try:
            new.save(saved)
        except CrashError:
            crashed = True
    loaded = Index.load(saved, embedder=embedder)
    assert loaded.source_ids in (old.source_ids, new.source_ids)
    assert crashed or loaded.source_ids == new.source_ids
    expected = old if loaded.source_ids == old.source_ids else new
    assert loaded.search("dog something") == expected.search("dog something")
    new.save(saved)  # and saving works again
    assert Index.load(saved, embedder=embedder).source_ids == new.source_ids


def test_what_a_crash_left_is_tidied_up_later(saved: Path, embedder: Embedder) -> None:
    stale, recent = (saved / f"unfinished-{digit * 16}" for digit in "ab")
    for folder in (stale, recent):
        folder.mkdir()
        (folder / "part").write_text("x")
    os.utime(stale, (1, 1))
    Index.load(saved, embedder=embedder).save(saved)
    assert not stale.exists()
    assert recent.exists()  # somebody may be writing it


# --- damage and foreign files --------------------------------------------------------------------


def test_every_damaged_file_is_noticed(saved: Path, embedder: Embedder, tmp_path: Path) -> None:
    names = [path.relative_to(saved) for path in sorted(saved.rglob("*")) if path.is_file()]
    assert len(names) > 8
    for name in names:
        for damage in ("flip", "cut", "remove"):
            copy = tmp_path / "copy"
            shutil.copytree(saved, copy)
            path = copy / name
            data = bytearray(path.read_bytes())
            if damage == "flip":
                data[len(data) // 2] ^= 0x55
                path.write_bytes(bytes(data))
            elif damage == "cut":
                path.write_bytes(bytes(data[: len(data) // 2]))
            else:
                path.unlink()
            with pytest.raises(InputError) as caught:
                Index.load(copy, embedder=embedder)
            assert str(copy) in str(caught.value), (name, damage)
            shutil.rmtree(copy)


def rewrite(folder: Path, **changes: Any) -> None:
    """Change what describes an index, and make the checksum fit."""
    contents = json.loads((folder / CONTENTS).read_text())
    contents |= changes
    del contents["sha256"]
    contents["sha256"] = store_module._digest(contents)
    (folder / CONTENTS).write_text(json.dumps(contents))


def test_a_newer_format_is_refused(saved: Path, embedder: Embedder) -> None:
    rewrite(saved, version=2)
    with pytest.raises(InputError, match="update surefoot"):
        Index.load(saved, embedder=embedder)


@pytest.mark.parametrize("data", ["..", "../other", "/etc", "data-../../x", "", None])
def test_no_path_leads_out_of_the_folder(saved: Path, embedder: Embedder, data: object) -> None:
    rewrite(saved, data=data)
    with pytest.raises(InputError, match="names no data"):
        Index.load(saved, embedder=embedder)


def test_no_file_name_leads_out_of_the_folder(saved: Path, embedder: Embedder) -> None:
    files = json.loads((saved / CONTENTS).read_text())["files"]
    rewrite(saved, files={**files, "../../secret": {"sha256": "0" * 64, "bytes": 1}})
    with pytest.raises(InputError, match="not a path inside"):
        Index.load(saved, embedder=embedder)


def test_parts_that_do_not_fit_are_refused(saved: Path, embedder: Embedder, tmp_path: Path) -> None:
    """Every file is whole, but the vectors are those of another index."""
    Index.build(TEXTS[:2], embedder=embedder).save(tmp_path / "other")
    shutil.copyfile(data_of(tmp_path / "other") / "vectors.faiss", data_of(saved) / "vectors.faiss")
    path = data_of(saved) / "vectors.faiss"
    contents = json.loads((saved / CONTENTS).read_text())
    contents["files"]["vectors.faiss"] = {
        "sha256": store_module.hash_file(path),
        "bytes": path.stat().st_size,
    }
    rewrite(saved, files=contents["files"])
    with pytest.raises(InputError, match="different lengths"):
        Index.load(saved, embedder=embedder)


def test_folders_that_hold_no_index(tmp_path: Path, embedder: Embedder) -> None:
    with pytest.raises(InputError, match="no index"):
        Index.load(tmp_path / "nowhere", embedder=embedder)
    (tmp_path / "foreign").mkdir()
    with pytest.raises(InputError, match="no index"):
        Index.load(tmp_path / "foreign", embedder=embedder)
    for text in ("{}", "[]", "not json", '{"format": "other"}', "[" * 100_000):
        (tmp_path / "foreign" / CONTENTS).write_text(text)
        with pytest.raises(InputError):
            Index.load(tmp_path / "foreign", embedder=embedder)


def test_foreign_files_are_not_overwritten(tmp_path: Path, embedder: Embedder) -> None:
    index = Index.build(["a dog"], embedder=embedder)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.txt"):
        index.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="cannot be written"):
        index.save(tmp_path / "thesis.txt")


# --- builds that are taken up again --------------------------------------------------------------


class Interrupted(Embedder):
    """Ends like Ctrl-C after so many passages; everything else is the real thing."""

    def __init__(self, most: int | None) -> None:
        super().__init__(FIXTURE, pooling="mean", threads=1)
        self.most = most
        self.passages = 0

    def embed(self, texts: Any, *, query: bool = False, progress: Any = None) -> Any:
        texts = list(texts)
        if not query and self.most is not None and self.passages + len(texts) > self.most:
            raise KeyboardInterrupt
        self.passages += 0 if query else len(texts)
        return super().embed(texts, query=query, progress=progress)


def test_an_interrupted_build_goes_on(tmp_path: Path, embedder: Embedder) -> None:
    texts = [f"Passage number {n} about dogs." for n in range(700)]
    path = tmp_path / "vectors.journal"
    first = Interrupted(most=300)
    with pytest.raises(KeyboardInterrupt):
        Index.build(texts, embedder=first, checkpoint=path)
    assert first.passages == 256
    second = Interrupted(most=None)
    seen: list[tuple[int, int]] = []
    index = Index.build(
        texts, embedder=second, checkpoint=path, progress=lambda done, total: seen.append((done, total))
    )
    assert second.passages == 700 - 256
    assert seen[0] == (256, 700)
    assert index.search("number 650 dogs") == Index.build(texts, embedder=embedder).search("number 650 dogs")


def test_a_torn_journal_gives_what_is_whole(tmp_path: Path) -> None:
    settings = {"dimension": 4, "pooling": "mean"}
    path = tmp_path / "journal"
    vectors = np.arange(12, dtype=np.float32).reshape(3, 4)
    with Journal(path, settings) as journal:
        journal.put(["a", "b", "\ud800"], vectors)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with Journal(path, settings) as journal:
            found = [journal.get(text) for text in ("a", "b", "\ud800")]
            assert len(journal) == sum(item is not None for item in found) < 3
            for index, item in enumerate(found):
                assert item is None or np.array_equal(item, vectors[index])
            journal.put(["c"], vectors[:1])
        with Journal(path, settings) as journal:
            assert np.array_equal(journal.get("c"), vectors[0])  # type: ignore[arg-type]
    path.write_bytes(whole[:-30] + b"\xff" + whole[-29:])
    with Journal(path, settings) as journal:
        assert journal.get("a") is not None
        assert journal.get("\ud800") is None


def test_a_journal_of_other_settings_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, {"dimension": 2, "pooling": "mean"}) as journal:
        journal.put(["a"], np.ones((1, 2), dtype=np.float32))
    with Journal(path, {"dimension": 2, "pooling": "cls"}) as journal:
        assert journal.get("a") is None
    path.write_text("a letter to a friend")
    with pytest.raises(InputError, match="no journal"):
        Journal(path, {"dimension": 2})
    assert path.read_text() == "a letter to a friend"
    journal = Journal(tmp_path / "other", {"dimension": 2})
    journal.put(["a"], np.ones((1, 2), dtype=np.float32))
    journal.remove()
    assert not (tmp_path / "other").exists()
