"""The reranker: a query and passages in, the passages ordered by relevance out."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Final

from surefoot.checks import check_positive, check_share, check_whole
from surefoot.errors import InputError, MissingExtraError, ModelError
from surefoot.inference.pairs import Progress
from surefoot.inference.relevance import RelevanceModel
from surefoot.inference.session import Arithmetic, check_arithmetic
from surefoot.models.manifest import resolve_model
from surefoot.models.records import Calibration, Fusion
from surefoot.rerank.explain import sentence_effects
from surefoot.rerank.fusion import fused_scores
from surefoot.rerank.ordering import distinct_texts, order
from surefoot.rerank.passages import TEXT_FIELDS, PassageLike, read_passages
from surefoot.rerank.records import Explanation, Ranking, RankingReason
from surefoot.rerank.scoring import Best, score_texts

__all__ = ["Reranker"]

_LEAST_LENGTH: Final = 16
_LEAST_ROOM: Final = 8
"""One in so many of the model's tokens is kept for the passage; a longer query is refused."""

_models: dict[tuple[object, ...], RelevanceModel] = {}
_models_lock = threading.Lock()


class _QueryError(InputError):
    """No passage can be ranked by this query."""

    def __init__(self, reason: RankingReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Reranker:
    """Orders passages by relevance to a query with a cross-encoder.

    The model is loaded at the first call (or by :meth:`load`) and shared by all rerankers of the process that
    name the same one. A reranker may be used from many threads at once.

    If reranking is impossible (no model can be loaded, the model fails, the query is empty or leaves no room
    for a passage), the passages come back in their original order, with ``ranking.degraded`` and
    ``ranking.reason`` set. A failed load is remembered; only :meth:`load` and ``strict`` try again.

    Args:
        model: ``None`` for the bundled model, else a bundled model's name, a folder, or a Hugging Face name.
            It has one output, or two with labels that say which one means relevant.
        max_length: tokens of query, passage and special tokens together, at least 16. The default is also the
            most: what the model reads (512 or fewer). Longer passages are split into windows.
        threads: number of pairs scored at a time; by default one per available core.
        download: allow one download of a Hugging Face model that is not on this machine yet.
        revision: commit, tag or branch of a Hugging Face model.
        strict: raise an error instead of returning a degraded result. A deadline still gives a partial one.
        self_test: refuse a model that puts plainly irrelevant passages first. Switch it off only for a model
            that does not read English.
        fusion: combine the logit with other signals if the model's manifest asks for it.
        arithmetic: ``"int8"`` is faster on processors with VNNI or AMX and changes scores a little; on others
            it stays ``"float32"`` (:class:`~surefoot.inference.pairs.PairModel`). ``ranking.model`` says
            which one is used.

    Raises:
        ConfigurationError: an option is out of range.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        max_length: int | None = None,
        threads: int | None = None,
        download: bool = False,
        revision: str | None = None,
        strict: bool = False,
        self_test: bool = True,
        fusion: bool = True,
        arithmetic: Arithmetic = "float32",
    ) -> None:
        check_whole(_LEAST_LENGTH, optional=True, max_length=max_length)
        check_whole(1, optional=True, threads=threads)
        check_arithmetic(arithmetic)
        self._name = model
        self._arithmetic: Arithmetic = arithmetic
        self._max_length = max_length
        self._threads = threads
        self._download = download
        self._revision = revision
        self._strict = strict
        self._self_test = self_test
        self._fusion = fusion
        self._model: RelevanceModel | None = None
        self._failure: tuple[type[ModelError | MissingExtraError], str] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def load(self) -> None:
        """Load the model now rather than at the first call; after a failure, try again.

        Raises:
            ModelError: the model cannot be found, is damaged, or fails its self-test; ``strict`` or not.
            MissingExtraError: it has to be converted first, and the extra ``convert`` is not installed.
        """
        self._loaded()

    def rerank(
        self,
        query: str,
        passages: Iterable[PassageLike],
        *,
        top_k: int | None = 5,
        text_fields: Sequence[str] = TEXT_FIELDS,
        threshold: float | None = None,
        deadline_ms: float | None = None,
        progress: Progress | None = None,
    ) -> Ranking:
        """Order passages, the most relevant first.

        The order follows the logits, or the fused scores if the model's manifest has a fusion. Equal scores
        keep the order in which the passages came. Empty passages and ``None`` have no score and come last. A
        repeated text is scored once, and each passage that has it gets its place.

        Args:
            query: never cut.
            passages: strings, mappings, :class:`~surefoot.schema.Source` records or ``None``, in the order
                of the first stage; a generator works too. A long passage is scored by its best window.
            top_k: how many to return; ``None`` for all.
            text_fields: the keys of a mapping that may hold its text; the first that is not empty is read.
            threshold: drop empty passages and those with a lower ``relevance``, 0 to 1. A passage that could
                not be scored is kept; the result is then degraded.
            deadline_ms: stop scoring after so many milliseconds. Passages are scored in the order given.
                Those with a score come first, by score; the others follow as they came, and the result is
                ``partial``. Loading the model counts towards the time and is not interrupted.
            progress: called with (texts scored, texts to score); repeated texts count once.

        Raises:
            InputError: an argument has the wrong type; with ``strict``, also for a query that is empty or
                leaves no room for a passage.
            ConfigurationError: an option is out of range, or the model is for another task.
            ModelError, MissingExtraError: with ``strict``, if the model cannot be loaded or fails.
        """
        started = time.monotonic()
        _check_query(query)
        check_whole(1, optional=True, top_k=top_k)
        check_share(threshold=threshold)
        check_positive(deadline_ms=deadline_ms)
        read = read_passages(passages, text_fields)
        firsts = distinct_texts(read)
        texts = list(firsts)
        scored: dict[str, Best] = {}
        fused: dict[str, float] | None = None
        reached = 0
        reason: RankingReason | None = None
        detail: str | None = None
        model = self._model
        if texts:
            try:
                _refuse_empty(query)
                model = self._loaded(retry=self._strict)
                best, reached = score_texts(
                    model,
                    query,
                    texts,
                    room=self._room(model, query),
                    deadline=None if deadline_ms is None else started + deadline_ms / 1000,
                    progress=progress,
                )
                found = {text: one for text, one in zip(texts, best, strict=True) if one is not None}
                if (fusion := self._fusion_of(model)) is not None:
                    logits = {text: one.score for text, one in found.items()}
                    fused = fused_scores(fusion, query, logits)
                scored = found
            except _QueryError as error:
                if self._strict:
                    raise
                reason, detail = error.reason, str(error)
            except (ModelError, MissingExtraError) as error:
                if self._strict:
                    raise
                reason = RankingReason.NO_MODEL if model is None else RankingReason.MODEL_FAILED
                detail = str(error)
                reached = 0
        partial = reason is None and reached < len(texts)
        if partial:
            reason = RankingReason.DEADLINE
            detail = f"{reached} of {len(texts)} texts were scored within {deadline_ms:g} ms"
        calibration = self._calibration(model)
        ordered = order(
            read,
            firsts,
            scored,
            set(texts[reached:]),
            calibration=calibration,
            threshold=threshold,
            fused=fused,
        )
        return Ranking(
            query=query,
            sources=tuple(ordered[:top_k]),
            degraded=reason is not None,
            reason=reason,
            detail=detail,
            partial=partial,
            passages=len(read),
            scored=sum(passage.text in scored for passage in read),
            model=None if model is None else model.title,
            calibrated=(calibration.a, calibration.b) != (1.0, 0.0),
            seconds=time.monotonic() - started,
        )

    async def arerank(
        self,
        query: str,
        passages: Iterable[PassageLike],
        *,
        top_k: int | None = 5,
        text_fields: Sequence[str] = TEXT_FIELDS,
        threshold: float | None = None,
        deadline_ms: float | None = None,
        progress: Progress | None = None,
    ) -> Ranking:
        """Run :meth:`rerank` in a thread, without blocking the event loop; ``progress`` is called there."""
        return await asyncio.to_thread(
            self.rerank,
            query,
            passages,
            top_k=top_k,
            text_fields=text_fields,
            threshold=threshold,
            deadline_ms=deadline_ms,
            progress=progress,
        )

    def explain(
        self,
        query: str,
        passage: PassageLike,
        *,
        text_fields: Sequence[str] = TEXT_FIELDS,
        progress: Progress | None = None,
    ) -> Explanation:
        """What each sentence of a passage does to its score, see :class:`SentenceEffect`.

        Args:
            query: never cut.
            passage: as for :meth:`rerank`. For a long one, the window with the best score is explained.
            text_fields: as for :meth:`rerank`.
            progress: called with (pairs done, pairs to do); there are two pairs per sentence.

        Raises:
            InputError: an argument has the wrong type, the query or the passage is empty, or the query is
                too long.
            ModelError, MissingExtraError: the model cannot be loaded, or fails.
        """
        _check_query(query)
        _refuse_empty(query)
        text = read_passages([passage], text_fields)[0].text
        model = self._loaded()
        room = self._room(model, query)
        best = score_texts(model, query, [text], room=room)[0][0] if text else None
        if best is None:
            raise InputError("the passage has no text to explain")
        return Explanation(
            query=query,
            text=text,
            reranker_score=best.score,
            relevance=model.record.calibration.support(best.score),
            window=best.window,
            sentences=sentence_effects(
                model, query, text, best.window, best.score, room=room, progress=progress
            ),
            model=model.title,
        )

    def _loaded(self, *, retry: bool = True) -> RelevanceModel:
        if self._model is not None:
            return self._model
        if self._failure is not None and not retry:
            kind, message = self._failure
            raise kind(message)
        name = None if self._name is None else os.fspath(self._name)
        # "verify" is a bundled model and Path("verify") a folder.
        key = (
            isinstance(self._name, str),
            name,
            self._threads,
            self._revision,
            self._self_test,
            self._arithmetic,
        )
        try:
            with _models_lock:
                loaded = _models.get(key)
                if loaded is None:
                    resolved = resolve_model(
                        self._name, task="relevance", download=self._download, revision=self._revision
                    )
                    loaded = RelevanceModel(
                        resolved,
                        threads=self._threads,
                        self_test=self._self_test,
                        arithmetic=self._arithmetic,
                    )
                    _models[key] = loaded
        except (ModelError, MissingExtraError) as error:
            self._failure = type(error), str(error)  # not the error: it would hold on to the passages
            raise
        except OSError as error:
            message = f"the model cannot be read: {error.strerror or error}"
            self._failure = ModelError, message
            raise ModelError(message) from error
        self._model, self._failure = loaded, None
        return loaded

    def _fusion_of(self, model: RelevanceModel) -> Fusion | None:
        return model.record.fusion if self._fusion else None

    def _calibration(self, model: RelevanceModel | None) -> Calibration:
        """From the score that decides the order to relevance."""
        if model is None:
            return Calibration()
        fusion = self._fusion_of(model)
        return model.record.calibration if fusion is None else Calibration(a=fusion.a, b=fusion.b)

    def _room(self, model: RelevanceModel, query: str) -> int:
        """Tokens that a passage may have beside the query."""
        longest = min(self._max_length or model.pairs.max_length, model.pairs.max_length)
        room = model.pairs.room(query) - (model.pairs.max_length - longest)
        if room < max(longest // _LEAST_ROOM, 1):
            raise _QueryError(
                RankingReason.QUERY_TOO_LONG,
                f"the query is too long: it leaves {max(room, 0)} of {longest} tokens for a passage",
            )
        return room


def _check_query(query: object) -> None:
    if not isinstance(query, str):
        raise InputError(f"query must be a string, not {type(query).__name__}")


def _refuse_empty(query: str) -> None:
    if not query or query.isspace():
        raise _QueryError(RankingReason.EMPTY_QUERY, "the query is empty")
