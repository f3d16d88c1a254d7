"""What a sentence of an answer is: a claim to check, or something that states nothing.

English heuristics over the sentence alone. They are one-sided on purpose: a sentence with a figure or a
second clause beside the recognised phrase stays a claim, because an unchecked claim is the worse error. Every
pattern looks at a bounded part of the sentence.
"""

from __future__ import annotations

import re
from itertools import islice

from surefoot.schema import ClaimKind
from surefoot.segment.sentences import MARKERS

__all__ = ["classify", "is_title"]

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
    r"|above|retrieved|uploaded|attached|relevant|current|following|reference|source) ){0,5}"
)
_BASED_ON = (
    rf"(?:based (?:up)?on|according to|from|given|WORD) {_THE}{_SOURCES}"
    r"(?: (?:provided|given|available|above))?"
)
_SILENT = (
    r"(?:say|mention|state|specify|contain|provide|include|cover|discuss|address|give|describe|indicate|offer"
    r"|list|answer|define|explain|reference"
    r"|have (?:any |enough |sufficient |the )?(?:information|details?|data|answers?)"
    r"|talk about|refer to|tell|reveal|clarify|appear to|seem to|go into)"
)
_PASSIVE = (
    r"(?:mentioned|specified|stated|provided|discussed|covered|addressed|included|available|given|found|listed"
    r"|described|defined|explained|contained|disclosed|indicated|present|clear)"
)
_NOT = r"(?:do(?:es)? not|do(?:es)?n['’]t|did not|didn['’]t)"
_CANNOT = (
    r"(?:can(?:not| not|['’]t)|could(?: not|n['’]t)"
    r"|(?:(?:am|was|['’]m) not able|(?:(?:am|was|['’]m) )?unable) to)"
)
_FIND = (
    r"(?:answer|find|determine|locate|confirm|verify|tell|say|see any|identify|provide|give|respond|assist"
    r"|help (?:you )?with|comment|access)"
)
_INFO = (
    r"(?:information|mention|data|details?|evidence|reference|answer|indication|record|discussion|context)"
)
_REFUSAL = re.compile(
    rf"(?:{_THE}{_SOURCES}(?: (?:that )?(?:you |i )?(?:have |was |were )?"
    r"(?:provided|given|supplied|retrieved|shared))?"
    rf" (?:{_NOT} (?:\w{{2,20}}ly )?{_SILENT}\b"
    r"|(?:is|are) (?:silent|insufficient|not sufficient|not enough)\b"
    r"|(?:lacks?|contains? no|provides? no|makes? no mention|gives? no|says? nothing|has no|have no)\b)"
    rf"|none of {_THE}{_SOURCES} {_SILENT}s?\b"
    r"|(?:there (?:is|was|are|were) |i (?:have|see|found|could find|find) )?(?:no|not enough|insufficient)"
    rf" (?:\w{{2,20}} ){{0,2}}{_INFO}\b"
    rf"(?=[^.;]{{0,200}}(?:\b{_SOURCES}\b|\b(?:provided|available|given|found)\b(?! to\b)))"
    rf"|(?:there (?:is|was)n['’]t|there (?:is|was) not) (?:any |enough )?(?:\w{{2,20}} )?{_INFO}\b"
    rf"|i(?:['’]m| am)? ?{_CANNOT} {_FIND}\b|{_CANNOT} {_FIND}\b|i (?:do not|don['’]t) know\b"
    rf"|i (?:do not|don['’]t) (?:have (?:\w{{2,20}} ){{0,4}}|(?:see|find) (?:any )?){_INFO}\b"
    rf"|(?:it|this|that) (?:is|was)(?: not|n['’]t) (?:possible to {_FIND}|{_PASSIVE})"
    rf"(?=[^.;]{{0,120}}\b{_SOURCES}\b))",
    re.IGNORECASE,
)
_PASSIVE_REFUSAL = re.compile(
    rf"[^.;:,\d]{{1,160}}? (?:is|are|was|were)(?: not|n['’]t) (?:\w{{2,20}}ly )?{_PASSIVE}"
    rf" (?:anywhere )?(?:in|by|within|from) {_THE}{_SOURCES}\b",
    re.IGNORECASE,
)
_BEFORE_REFUSAL = re.compile(
    r"(?:(?:i['’]m|i am) (?:sorry|afraid)(?:,? but)?(?: that)?|sorry|apologies|i apologi[sz]e|unfortunately"
    r"|however|but|regrettably|as an ai(?: \w{2,20}){0,2}|note that|please note that"
    rf"|{_BASED_ON.replace('WORD', 'in')})[,;:]? {{0,2}}",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r";|,? \b(?:but|however|although|though|yet|while|whereas|instead|only|except|because|since"
    r"|and (?:the|it|they))\b ?|, (?=so\b|which\b)",
    re.IGNORECASE,
)

_GREETING = re.compile(
    r"(?:(?P<opening>hello|hi|hey|greetings|good (?:morning|afternoon|evening|day|luck|bye)|dear|welcome"
    r"|thank(?:s| you)|(?:great|good|excellent) question)\b|interesting question\b"
    r"|you(?:['’]re| are) (?:very |most )?welcome\b"
    r"|(?:i(?:['’]m| am|['’]d be)? |we(?:['’]re| are)? )?(?:happy|glad|pleased)"
    r" to (?:help|assist|answer|clarify)\b"
    r"|(?:i |we )?hope (?:this|that|it|you|these)\b|(?:please )?(?:just )?let (?:me|us) know\b(?! is\b)"
    r"|(?:please )?(?:do not|don['’]t) hesitate to\b"
    r"|(?:please )?feel free to (?:ask|reach|contact|let|share|provide|message|get)\b"
    r"|(?P<offer>if|should) you (?:have|need|want|would like)"
    r" (?:any |more |further |other |additional |to know |me )"
    r"|have a (?:nice|great|good|lovely|wonderful) \w{2,12}\b|(?:kind|best|warm) (?:regards|wishes)\b"
    r"|yours (?:sincerely|truly|faithfully)\b|(?:sincerely|take care|goodbye|bye|cheers)\b)",
    re.IGNORECASE,
)
_OFFERS = re.compile(r"\b(?:let|ask|reach|contact|feel free|here to|happy to|glad to)\b", re.IGNORECASE)
_BARE_GREETING = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|definitely|no problem|gladly|okay|ok|got it"
    r"|understood|i see|my pleasure|thanks)[.!, ]{0,4}",
    re.IGNORECASE,
)

_LEAD = re.compile(
    r"^(?:(?:sure|certainly|of course|absolutely|okay|ok|yes)[,!.]? "
    rf"|{_BASED_ON.replace('WORD', 'using')}[,:]? ?"
    r"|(?:in|to) (?:summary|short|conclusion|brief|sum up|summari[sz]e|conclude|recap|answer your question)"
    r"[,:]? ?"
    r"|(?:overall|finally|additionally|also|next|first)[,:]? )+",
    re.IGNORECASE,
)
_HERE = re.compile(
    r"(?:here(?:['’]s| is| are| was)|below (?:is|are)|(?:these|the following|they|those) are|this is)"
    r" (?:\w{1,20} ){0,4}?(?:summary|summaries|overview|list|breakdown|answers?|steps?|details?|explanation"
    r"|information|(?:key |main )?points?|outline|comparison|instructions?|examples?|options?|ways?|reasons?"
    r"|responses?|takeaways?|facts?|findings?|highlights?|table|recap|results?)\b",
    re.IGNORECASE,
)
_PLAN = re.compile(
    r"(?:let(?:['’]s| us| me) (?:break|look|go|walk|start|summari[sz]e|explain|take|see|dive|review)\b"
    r"|i(?:['’]ll| will) (?:now )?(?:explain|summari[sz]e|describe|outline|list|break|walk|go|answer"
    r"|provide)\b|to (?:answer|address) (?:your|this|the) question\b)",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"\b(?:(?:is|are|were|was) (?:as follows|the following|(?:listed|given|shown|summari[sz]ed) below)"
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


def _count(plain: str) -> int:
    """Words; in scripts without spaces, two for three letters."""
    plain, unspaced = (plain, 0) if plain.isascii() else _UNSPACED.subn(" ", plain)
    words = sum(1 for _ in islice(_WORD.finditer(plain), 1000))
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
    """What kind of sentence ``text`` is. Headings and code are recognised by their block, not here.

    A question ends in a question mark outside quotation marks. A refusal says what *the documents* or the
    writer cannot tell: "The policy does not cover dental care" is a claim, "The documents do not mention
    dental care" is a refusal, and "... do not mention it, but the fee is 5 euros" is a claim.

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
    pair = (tabular or _KEY_VALUE.match(head)) and any(char.isdigit() for char in plain)
    return ClaimKind.CLAIM if pair and _count(plain) >= min(2, min_words) else ClaimKind.TOO_SHORT


def _is_question(plain: str) -> bool:
    end = plain.rstrip(" )]}")
    if end.endswith(("?", "？", "؟", "⁇", "?!", "？！")):
        return True
    quoted = len(end) > 2 and _OPEN_CLOSE.get(end[0]) == end[-1] and end[-2] in "?？؟"
    return quoted and end[-1] not in end[1:-1]  # the sentence is one quoted question


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
    rest = head[contrast.end() :].strip() if contrast else ""
    return not rest or _is_refusal(rest)


def _is_greeting(head: str) -> bool:
    if _BARE_GREETING.fullmatch(head):
        return True
    if any(char.isdigit() for char in head) or _count(head) > 25 or _CONTRAST.search(head):
        return False
    match = _GREETING.match(head)
    rest = head[match.end() :] if match else ""
    if match and match["opening"]:
        # "Hello Bob!", "Thank you for asking." greet; "Hi-fi sets are ...", "Good day rates are low." do not
        return not _FINITE.search(rest) and not rest.startswith("-") and _count(rest) <= 8
    return match is not None and (not match["offer"] or _OFFERS.search(rest) is not None)


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
