"""What a sentence of an answer is: a claim to check, or something that makes none.

English heuristics over the sentence alone. They are one-sided on purpose: whatever carries a figure or a
second clause beside the phrase that was recognised stays a claim, because leaving a claim unchecked is
the worse error. Every pattern looks at a bounded part of the sentence.
"""

from __future__ import annotations

import re

from surefoot.schema import ClaimKind
from surefoot.segment.sentences import MARKERS

__all__ = ["classify", "count_words", "is_title"]

_LOOK = 600  # code points of a sentence that the patterns read
_MARKERS = re.compile(MARKERS)
_TAGS = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|&[a-zA-Z]{2,8};|&#\d{1,7};")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,600}\)")
_EMPHASIS = re.compile(r"[*_~`]{1,3}")
_WORD = re.compile(r"[^\W_]+(?:['’.,:/@&+-][^\W_]+){0,20}")
_UNSPACED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
)

_SOURCES = (
    r"(?:documents?|docs?|sources?|contexts?|passages?|excerpts?|texts?|materials?|articles?|files?|snippets?"
    r"|(?:search|retrieved) results|knowledge base|information|data|content|references?|pages?"
    r"|context documents?)"
)
_THE = (
    r"(?:(?:the|these|those|this|that|your|any|any of|none of|all|my|our|provided|given|supplied|available"
    r"|above"
    r"|retrieved|uploaded|attached|relevant|current|following|reference|source) ){0,5}"
)
_SILENT = (
    r"(?:say|mention|state|specify|contain|provide|include|cover|discuss|address|give|describe|indicate|offer"
    r"|list|answer|define|explain|have (?:any |enough |sufficient |the )?(?:information|details?|data"
    r"|answers?)|reference|talk about|refer to|tell|reveal|clarify|appear to|seem to|go into)"
)
_PASSIVE = (
    r"(?:mentioned|specified|stated|provided|discussed|covered|addressed|included|available|given|found"
    r"|listed"
    r"|described|defined|explained|contained|disclosed|indicated|present|clear)"
)
_NOT = r"(?:do(?:es)? not|do(?:es)?n['’]t|did not|didn['’]t)"
_CANNOT = (
    r"(?:cannot|can not|can['’]t|could not|couldn['’]t"
    r"|(?:am|was|['’]m) (?:unable|not able) to|(?:am )?unable to)"
)
_FIND = (
    r"(?:answer|find|determine|locate|confirm|verify|tell|say|see any|identify|provide|give|respond|assist"
    r"|help (?:you )?with|comment|access)"
)
_INFO = (
    r"(?:information|mention|data|details?|evidence|reference|answer|indication|record|discussion|context)"
)
_REFUSAL = re.compile(
    r"(?:"
    rf"{_THE}{_SOURCES}(?: (?:that )?(?:you |i )?(?:have |was |were )?(?:provided|given|supplied|retrieved"
    rf"|shared))?"
    rf" (?:{_NOT} (?:\w{{2,20}}ly )?{_SILENT}\b|(?:is|are) (?:silent|insufficient|not (?:sufficient"
    rf"|enough))\b"
    r"|(?:lacks?|contains? no|provides? no|makes? no mention|gives? no|says? nothing|has no|have no)\b)"
    rf"|none of {_THE}{_SOURCES} {_SILENT}s?\b"
    r"|(?:there (?:is|was|are|were) |i (?:have|see|found|could find|find) )?(?:no|not enough|insufficient)"
    rf" (?:\w{{2,20}} ){{0,2}}{_INFO}\b(?=[^.;]{{0,200}}(?:\b{_SOURCES}\b|\b(?:provided|available|given"
    rf"|found)\b(?! to\b)))"
    rf"|(?:there (?:is|was)n['’]t|there (?:is|was) not) (?:any |enough )?(?:\w{{2,20}} )?{_INFO}\b"
    rf"|i(?:['’]m| am)? ?{_CANNOT} {_FIND}\b|{_CANNOT} {_FIND}\b|i (?:do not|don['’]t) know\b"
    rf"|i (?:do not|don['’]t) have (?:\w{{2,20}} ){{0,4}}{_INFO}\b|i (?:do not|don['’]t) (?:see"
    rf"|find) (?:any )?{_INFO}\b"
    rf"|(?:it|this|that) (?:is|was)(?: not|n['’]t) (?:possible to {_FIND}|{_PASSIVE})"
    rf"(?=[^.;]{{0,120}}\b{_SOURCES}\b)"
    r")",
    re.IGNORECASE,
)
_PASSIVE_REFUSAL = re.compile(
    rf"[^.;:,\d]{{1,160}}? (?:is|are|was|were)(?: not|n['’]t) (?:\w{{2,20}}ly )?{_PASSIVE}"
    rf" (?:anywhere )?(?:in|by|within|from) {_THE}{_SOURCES}\b",
    re.IGNORECASE,
)
_BEFORE_REFUSAL = re.compile(
    r"(?:(?:i['’]m|i am) (?:sorry|afraid)(?:,? but)?(?: that)?|sorry|apologies|i apologi[sz]e"
    r"|unfortunately|however|but"
    r"|regrettably|as an ai(?: \w{2,20}){0,2}|note that|please note that"
    rf"|(?:based (?:up)?on|according to|from|given|in) {_THE}{_SOURCES}(?: (?:provided|given|available"
    rf"|above))?)"
    r"[,;:]? {0,2}",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r";|,? \b(?:but|however|although|though|yet|while|whereas|instead|only|except|because|since|and (?:the"
    r"|it|they))\b"
    r" ?|, (?=so\b|which\b)",
    re.IGNORECASE,
)

_GREETING = re.compile(
    r"(?:(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day)|dear|welcome)\b"
    r"|thank(?:s| you)\b|you(?:['’]re| are) (?:very |most )?welcome\b|(?:great|good|excellent"
    r"|interesting) question\b"
    r"|(?:i(?:['’]m| am|['’]d be)? |we(?:['’]re| are)? )?(?:happy|glad|pleased) to (?:help|assist|answer"
    r"|clarify)\b"
    r"|(?:i |we )?hope (?:this|that|it|you|these)\b|(?:please )?(?:just )?let (?:me|us) know\b(?! is\b)"
    r"|(?:please )?(?:do not|don['’]t) hesitate to\b"
    r"|(?:please )?feel free to (?:ask|reach|contact|let|share|provide|message|get)\b"
    r"|(?:if|should) you (?:have|need|want|would like) (?:any |more |further |other |additional |to know "
    r"|me )"
    r"|have a (?:nice|great|good|lovely|wonderful) \w{2,12}\b|(?:kind|best|warm) (?:regards|wishes)\b"
    r"|yours (?:sincerely|truly|faithfully)\b|sincerely\b|take care\b|good ?bye\b|bye\b|cheers\b"
    r"|good luck\b)",
    re.IGNORECASE,
)
_BARE_GREETING = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|definitely|no problem|gladly|okay|ok|got it"
    r"|understood"
    r"|i see|my pleasure|thanks)[.!, ]{0,4}",
    re.IGNORECASE,
)

_LEAD = re.compile(
    r"^(?:(?:sure|certainly|of course|absolutely|okay|ok|yes)[,!.]? "
    rf"|(?:based (?:up)?on|according to|from|given|using) {_THE}{_SOURCES}(?: (?:provided|given|available"
    rf"|above))?[,:]? ?"
    r"|(?:in|to) (?:summary|short|conclusion|brief|sum up|summarize|summarise|conclude|recap"
    r"|answer your question)[,:]? ?"
    r"|(?:overall|finally|additionally|also|next|first)[,:]? )+",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"(?:here(?:['’]s| is| are| was)|below (?:is|are)|(?:these|the following|they|those) are|this is)"
    r" (?:\w{1,20} ){0,4}?(?:summary|summaries|overview|list|breakdown|answers?|steps?|details?"
    r"|explanation|information"
    r"|(?:key |main )?points?|outline|comparison|instructions?|examples?|options?|ways?|reasons?|responses?"
    r"|takeaways?|facts?|findings?|highlights?|table|recap|results?)\b",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"(?:let(?:['’]s| us| me) (?:break|look|go|walk|start|summari[sz]e|explain|take|see|dive|review)\b"
    r"|i(?:['’]ll| will) (?:now )?(?:explain|summari[sz]e|describe|outline|list|break|walk|go|answer"
    r"|provide)\b"
    r"|to (?:answer|address) (?:your|this|the) question\b)",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"\b(?:(?:is|are|were|was) (?:as follows|the following|listed below|given below|shown below"
    r"|summari[sz]ed below)"
    r"|here(?:['’]s| is| are)|below (?:is|are)|(?:the )?following|as follows)\b",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|could|will|would|shall|should|may|might|must|cannot)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_KEY_VALUE = re.compile(r"[^:：\n]{1,80}[:：]\s{0,4}(?=\S)")
_OPEN_CLOSE = {'"': '"', "“": "”", "«": "»", "„": "“", "‘": "’", "「": "」", "『": "』"}


def count_words(text: str) -> int:
    """Words without markers, tags and Markdown; in scripts without spaces, two for three letters."""
    return _count(_plain(text))


def _count(plain: str) -> int:
    unspaced = len(_UNSPACED.findall(plain)) if not plain.isascii() else 0
    if unspaced:
        plain = _UNSPACED.sub(" ", plain)
    words = 0
    for words, _ in enumerate(_WORD.finditer(plain), start=1):
        if words >= 1000:
            break
    return words + unspaced * 2 // 3  # a Chinese word has about one and a half letters


def _plain(text: str) -> str:
    """The words a reader sees: no citation markers, link targets, tags or emphasis."""
    text = _MARKERS.sub(" ", text)
    text = _LINK.sub(r"\1", text) if "](" in text else text
    text = _TAGS.sub(" ", text) if "<" in text or "&" in text else text
    return " ".join(_EMPHASIS.sub("", text).split())


def is_title(text: str) -> bool:
    """Whether a line of bold text reads as a heading: short, no end punctuation, and no verb."""
    plain = _plain(text[: _LOOK * 2])
    if not plain or plain[-1] in ".!?。！？؟।,;":
        return False
    body = plain.rstrip(":： ")
    return (
        any(char.isalpha() for char in body)
        and 0 < _count(body) <= 10
        and not _FINITE.search(body)
        and not _KEY_VALUE.match(body)
    )


def classify(text: str, *, min_words: int = 4, tabular: bool = False) -> ClaimKind:
    """What kind of sentence ``text`` is; headings and code are told by their block, not here.

    A question ends in a question mark outside quotation marks. A refusal speaks about what *the
    documents* or the writer can say: "The policy does not cover dental care" is a claim, "The documents
    do not mention dental care" a refusal, and "... do not mention it, but the fee is 5 euros" a claim.

    Args:
        text: one sentence, list item or table row, Markdown and markers allowed.
        min_words: sentences with fewer words are ``too_short``, unless they pair a name with a figure
            ("Term: 15 days").
        tabular: the text is a table row: its cells are such pairs.
    """
    plain = _plain(text)
    head = plain[:_LOOK]
    if not head:
        return ClaimKind.TOO_SHORT
    if _is_question(plain):
        return ClaimKind.QUESTION
    if not tabular:
        if _is_refusal(head):
            return ClaimKind.REFUSAL
        if _is_greeting(head):
            return ClaimKind.GREETING
        if _is_meta(head):
            return ClaimKind.META
    if _count(plain) >= min_words:
        return ClaimKind.CLAIM
    pair = tabular or _KEY_VALUE.match(head) is not None
    if pair and any(char.isdigit() for char in plain) and _count(plain) >= min(2, min_words):
        return ClaimKind.CLAIM
    return ClaimKind.TOO_SHORT


def _is_question(plain: str) -> bool:
    end = plain.rstrip(" )]}")
    if end.endswith(("?", "？", "؟", "⁇", "?!", "？！")):
        return True
    if len(end) > 2 and _OPEN_CLOSE.get(end[0]) == end[-1] and end[-2] in "?？؟":
        return end[-1] not in end[1:-1]  # the sentence is one quoted question
    return False


def _is_refusal(head: str) -> bool:
    at = 0
    for _ in range(4):
        lead = _BEFORE_REFUSAL.match(head, at)
        if lead is None or lead.end() == at:
            break
        at = lead.end()
    match = _REFUSAL.match(head, at) or _PASSIVE_REFUSAL.match(head, at)
    if match is None:
        return False
    contrast = _CONTRAST.search(head, match.end())
    if contrast is None:
        return True
    rest = head[contrast.end() :].strip()
    return len(rest) < len(head) and (not rest or _is_refusal(rest))


def _is_greeting(head: str) -> bool:
    if _BARE_GREETING.fullmatch(head):
        return True
    if any(char.isdigit() for char in head) or _count(head) > 25 or _CONTRAST.search(head):
        return False
    match = _GREETING.match(head)
    if match is None:
        return False
    rest = head[match.end() :]
    opened = match[0].lower()
    if opened.startswith(
        ("hello", "hi", "hey", "greetings", "good ", "dear", "welcome", "thank", "great", "excel")
    ):
        # "Hello Bob!", "Thank you for asking." greet; "Hi-fi sets are ...", "Good day rates are low." do not
        return not _FINITE.search(rest) and not rest.startswith("-") and _count(rest) <= 8
    if opened.startswith(("if", "should")):
        return (
            re.search(r"\b(?:let|ask|reach|contact|feel free|here to|happy to|glad to)\b", rest, re.I)
            is not None
        )
    return True


def _is_meta(head: str) -> bool:
    lead = _LEAD.match(head)
    body = head[lead.end() :].strip() if lead else head
    if not body.strip(" .:,!"):
        return True
    if re.search(r"\d\s?%|[$€£]\s?\d|\d[.,]\d", body):
        return False
    here = _HERE.match(body)
    if here is not None:
        rest = body[here.end() :]
        inner = rest.rstrip(" :.").find(":")
        return inner < 0 and not _FINITE.search(rest) and not re.search(r"\d", rest) and _count(rest) <= 18
    if _PLAN.match(body):
        return not re.search(r"\d", body) and _count(body) <= 16 and ":" not in body[:-1]
    if not body.endswith((":", "：")):
        return False
    rest = _INTRODUCES.sub(" ", body)
    if _FINITE.search(rest) or ":" in body[:-1]:
        return False
    return not re.search(r"\d", rest) and _count(rest) <= 10
