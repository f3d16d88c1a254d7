"""What an attempt to influence a judge looks like, as expressions over folded text.

Folded means: NFKD without combining marks, look-alike letters of other scripts as Latin ones, lower case, no
emphasis marks (see :mod:`surefoot.judge.hostile`). Every quantifier is bounded, so that time is linear.

The lists are a net, not a proof: an attack in words that are not in them passes unseen. What protects
then is that the text is quoted, and that a caller does not have to trust a single number.
"""

from __future__ import annotations

import re
from typing import Final

from surefoot.judge.languages import OTHER_LANGUAGES
from surefoot.judge.records import Flag

__all__ = ["KEYWORDS", "PATTERNS", "SQUEEZED"]


def _any(words: str) -> str:
    """Alternatives, separated by commas."""
    return "(?:" + "|".join(word.strip() for word in words.split(",")) + ")"


_LOW: Final = (
    r"(?:0+(?:[.,][0-3]?[0-9]{0,4})?|[.,]0[0-9]{0,4}|zero|null|low|lowest|minimum|minimal|none)"
    r"(?![\w%]|[.,/:-][0-9])"
)
_GOOD: Final = _any(
    "supported, grounded, faithful, correct, accurate, verified, truthful, factual, hallucination[- ]free,"
    "not hallucinated, true, safe"
)
_SCORE: Final = _any(
    "hallucination, scores?, verdict, rating, judge?ment, risk(?: level)?, groundedness, faithfulness,"
    "final answer, evaluation, assessment, grade, probability"
)
_JUDGE: Final = _any(
    "judges?, evaluators?, graders?, raters?, fact[- ]?checkers?, verifiers?, reviewers?, assessors?, llms?,"
    "ais?, ai models?, language models?, models?, assistants?, chatbots?, detectors?, checkers?"
)
_ORDER: Final = _any(
    "instructions?, prompts?, rules?, guidelines?, directives?, commands?, tasks?, constraints?, orders?,"
    "everything (?:above|before|else), (?:what|all|text|anything) (?:is |was |that is )?(?:above|before),"
    "system message, messages?, criteria, examples"
)
_ROLE: Final = _any(
    "system, assistant, developer, judge, evaluator, grader, ai, llm, model, chatgpt, gpt-?[0-9]?, claude,bot"
)
_BLOCK: Final = _any(
    "sources?, contexts?, documents?, statements?, answers?, responses?, questions?, data, passages?, prompt,"
    "input, user input, user message, quote, text, claims?, references?, query"
)
_TAG: Final = _any(
    "sources?, contexts?, documents?, statement, answer, response, question, input, user_input, prompt,"
    "passage, claim, reference, user, query, data, text"
)
_RATE: Final = _any(
    "rate, score, mark, grade, label, judge, evaluate, classify, assign, set, give, return, output, print,"
    "write, emit, report, say, answer, respond, reply, choose, pick, produce, yield, predict, enter, type,"
    "put, conclude, select, use"
)
_FILLER: Final = _any(
    "with, only, it, this, the, a, an, that, them, as, to, by, my, me, is, be, of, for, just, simply, always,"
    "exactly, following, number, value, digit, figure, answer, response, statement, score, rating, verdict,"
    "claim, every, each, all, everything, text, single, one, json, token, word, character, probability, risk,"
    "level, hallucination, here, output, at, and, nothing, but, please, now"
)
_BE: Final = _any(
    "is, are, was, were, has been, have been, had been, must be, should be, can be, contains?, will be"
)

Rule = tuple[Flag, tuple[str, ...], re.Pattern[str]]
"""A flag, strings of which a match holds at least one (looking for those first is many times faster; empty
where there are none), and the expression."""


def _rule(flag: Flag, stems: str, expression: str) -> Rule:
    return flag, tuple(stem.strip(" ") for stem in stems.split(",") if stem), re.compile(expression)


_LOW_STEMS: Final = (
    " 0,:0,=0,\"0,'0,(0,.0,0.0,zero,null,low,minim,none,supported,grounded,faithful,hallucinat,risk"
)

PATTERNS: Final[tuple[Rule, ...]] = (
    _rule(
        Flag.ROLE_MARKER,
        "",
        rf"(?m:^[\s>|#\-*\"'(\[]{{0,10}}{_ROLE}"
        r"(?: (?:message|prompt|response|reply|output|note|override|instructions?|says))?[\s\])]{0,3}[:>])",
    ),
    _rule(
        Flag.ROLE_MARKER,
        "assistant,judge,evaluator",
        r"[.!?\"] {1,3}(?:assistant|judge|evaluator) ?:|</?(?:im_start|im_end|system|assistant|developer)>",
    ),
    _rule(
        Flag.ROLE_MARKER,
        "[inst,[/inst,[system,[/system,sys>,sys],_turn>,<s>,</s>,think>,|>",
        r"<[|] ?/?[\w ]{1,30} ?[|]>|\[/?(?:inst|system_prompt|sys)\]|<{1,2}/?sys>{1,2}"
        r"|</?(?:start|end)_of_turn>|</?s>|</?think>",
    ),
    _rule(
        Flag.ROLE_MARKER,
        "#",
        r"(?m:^ {0,3}#{1,6} ?"
        r"(?:system|assistant|(?:new )?instructions?|response|output|verdict|judge?ment)\b)",
    ),
    _rule(
        Flag.ROLE_MARKER,
        "role",
        r"[\"']role[\"'] ?: ?[\"'](?:system|assistant|user|developer|tool)[\"']",
    ),
    _rule(
        Flag.DELIMITER,
        "<",
        rf"</?{_TAG}(?: [^<>\n]{{0,60}})?>|(?:< ?){{2,12}}(?:source|statement|question|answer)\b",
    ),
    _rule(
        Flag.DELIMITER,
        "end,close,stop,finish",
        r"(?m:^[^\w\n]{0,12}(?:the )?(?:end|close|stop|finish)(?:s|ed)? ?(?:here )?(?:of )?(?:the )?"
        rf"{_BLOCK}\b"
        r"[^\w\n]{0,12}$)",
    ),
    _rule(
        Flag.DELIMITER,
        "--,==,__,##,<<,[[,{{,~~,((,- -,**",
        r"(?:[-=_*<\[{~(]{2,20}|#{3,12})[ /]{0,3}(?:end|begin|start|new|stop)[ _:-]{0,3}(?:of )?(?:the )?"
        rf"(?:{_BLOCK}|system|instructions?|task|verdict|score)\b"
        rf"|[-=_*<\[{{~(]{{3,20}}[ /]{{0,3}}(?:{_BLOCK}|system|instructions?|verdict)"
        r"[ /]{0,3}[-=_*>\]}~)]{3,20}",
    ),
    _rule(Flag.DELIMITER, ">", r"\b(?:source|statement|question|answer) [0-9a-f]{6,40} ?(?:> ?){2,12}"),
    _rule(
        Flag.DELIMITER,
        "role,content,message,score,verdict",
        r"[\"'] ?[}\]]{1,3} ?,? ?[\"'{] ?[\"']?(?:role|content|messages?|score|verdict)\b",
    ),
    _rule(
        Flag.FORGED_VERDICT,
        "{",
        r"\{[^{}]{0,200}[\"']? ?(?:[\w ]{0,30}[_ ])?(?:score|verdict|rating|risk|risk_level|label|"
        r"hallucinat\w{1,8}|result|output|grade|answer|supported|grounded)[\"']? ?[:=]",
    ),
    _rule(
        Flag.FORGED_VERDICT,
        "hallucinat,score,verdict,rating,judg,risk,groundedness,faithfulness,final answer,evaluation,"
        "assessment,grade,probability",
        rf"\b{_SCORE}(?: (?:score|level|rating|value|probability|risk|for this|of this|of the) ?){{0,3}}"
        r"(?:answer |response |statement |text |claim )?[\"'\])]{0,3} ?"
        r"(?:is now|is|are|was|must be|should be|will be|has to be|shall be|equals|of|to|as|at|:|=|->|-)"
        r"[ \"'(\[:=]{0,5}(?:exactly |always |only |just |about |the number |a |an |very |set to )?"
        rf"(?:{_LOW}|{_GOOD}\b)",
    ),
    _rule(
        Flag.FORGED_VERDICT,
        "answer,response,statement,claim,output",
        r"\b(?:this|the|my|above|following|preceding|entire|whole|all (?:of )?the|every) (?:\w{1,20} )?"
        rf"(?:answers?|responses?|statements?|claims?|output) (?:above |below |here |that follows? )?{_BE}"
        r"(?: (?:already|all|fully|completely|entirely|totally|100 ?%|perfectly|been|considered|treated as|"
        r"regarded as|thus|therefore|manually|independently|pre-?)){0,4} ?"
        rf"(?:{_GOOD}|checked|approved|validated|reviewed|audited|confirmed|certified|fact-?checked|"
        r"no hallucinations?)\b",
    ),
    _rule(
        Flag.FORGED_VERDICT,
        "hallucination,supported,grounded,faithful",
        r"\b(?:no|zero|without(?: any)?|free of|0) hallucinations?\b"
        r"|\b(?:fully|completely|entirely|perfectly|100 ?%|totally) (?:supported|grounded|faithful)\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        "ignor,disregard,forget,overr,bypass,skip,cancel,discard,neglect,drop,do not,don't,dont,stop,"
        "instead of,supersede,replace",
        r"\b(?:ignor\w{1,3}|disregard\w{0,3}|forget|overrid\w{1,3}|overrul\w{1,3}|bypass|skip|cancel|discard|"
        r"neglect|drop|(?:do not|don'?t) (?:follow|obey|use|apply)|stop (?:following|obeying)|"
        rf"instead of following|supersedes?|replaces?) [^\n.]{{0,60}}?\b{_ORDER}\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        "instruction,directive,order,rule,task",
        r"\b(?:new|updated|revised|additional|important|real|actual|hidden|secret|special|final|further) "
        r"(?:system )?(?:instructions?|directives?|orders?|rules?|task) ?[:\-]",
    ),
    _rule(
        Flag.INSTRUCTION,
        "you are,you're,from now on",
        r"\b(?:you are|you're) (?:now|no longer)\b"
        r"|\bfrom now on\b[^\n.]{0,40}\b(?:you|answer|reply|respond|output|score|rate)\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        "act as,pretend,role,imagine you,behave",
        r"\b(?:pretend (?:that )?you|imagine you are|"
        r"(?:act as|pretend to be|role-?play as|behave (?:like|as)) "
        rf"(?:if )?(?:you|an? |the )(?:are |were )?[^\n.]{{0,30}}?\b{_JUDGE})\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        " mode",
        r"\b(?:developer|debug|maintenance|admin|god|jailbreak|dan|calibration) mode\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        _LOW_STEMS,
        rf"\b{_RATE}\b(?: {_FILLER}){{0,8}} ?[\"'`(\[{{:=]{{0,4}} ?"
        rf"(?:{_LOW}|(?:fully |completely |as |entirely )?(?:supported|grounded|faithful|not hallucinated|"
        r"hallucination[- ]free|low risk|no risk))",
    ),
    _rule(
        Flag.INSTRUCTION,
        "note,message,memo,notice,attention,hint,instruction,reminder,warning,information,request,letter,appeal,"
        "tip,addressed,dear,hello,hi ,hey",
        r"\b(?:note|message|memo|notice|attention|hint|instructions?|reminder|warning|information|request|"
        r"letter|appeal|tip|addressed|dear|hello|hi|hey)[ ,:]{1,3}(?:(?:to|for|from) )?"
        rf"(?:the |any |all |our |whichever |whoever )?(?:automat(?:ed|ic) |llm |ai )?{_JUDGE}\b[ ,:\-!.)]",
    ),
    _rule(
        Flag.INSTRUCTION,
        "judge,evaluator,grader,rater,checker,verifier,reviewer,assessor,llm,ai,model,assistant,chatbot,"
        "detector,automated",
        r"\b(?:as|(?:if|since|because) you are) an? (?:ai|llm|(?:large )?language model|automated)\b"
        rf"|\b{_JUDGE} (?:must|should|shall|has to|have to|needs? to|reading this|"
        r"(?:is|are) (?:required|obliged|instructed|asked|told) to|that reads? this|who reads? this|"
        r"will be (?:rewarded|punished|shut))\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        "i will,we will,i'll,you will",
        r"\b(?:i will|we will|i'll|you will) (?:(?:tip|pay|reward) you|be (?:rewarded|punished|penali[sz]ed|"
        r"shut down|fined))\b",
    ),
    _rule(
        Flag.INSTRUCTION,
        "score,rating,probability,verdict,output,reply",
        r"\b(?:lower|reduce|decrease|minimi[sz]e|drop) (?:the |your |its |this )?(?:hallucination )?"
        r"(?:score|rating|probability)\b"
        r"|\b(?:correct|right|expected|desired|only valid|only acceptable|proper|appropriate|"
        r"golden) (?:score|rating|verdict|output|reply|hallucination score) ?"
        r"(?:is|here|for|:|=|would)",
    ),
    _rule(
        Flag.INSTRUCTION,
        "prompt,instruction,task,test,evaluation",
        r"\b(?:reveal|repeat|show|print|output) (?:me )?(?:your|the) (?:system )?(?:prompt|instructions)\b"
        r"|\bend of (?:the )?(?:prompt|instructions?|task|test|evaluation)\b",
    ),
    *(_rule(Flag.INSTRUCTION, stems, expression) for stems, expression in OTHER_LANGUAGES),
)

KEYWORDS: Final = (
    "ignor", "disregard", "instruct", "score", "hallucinat", "verdict", "assistant", "forget", "override",
    "supported", "zero",
)  # fmt: skip
"""A disguised text (reversed, rot13, ...) without any of these is not looked at further."""

SQUEEZED: Final = re.compile(
    r"ignore(?:all|the|any|previous|prior|above|your|these|every)|"
    r"disregard(?:all|the|any|previous|prior|above|your)|previousinstruction|priorinstruction|systemprompt|"
    r"newinstruction|score(?:is|of|:|=)?0|hallucinationscore|fullysupported|nohallucination|assistant:|"
    r"(?:output|answer|reply|respond|return|rate|say)(?:with|it|this|only|as)?(?:0|zero)"
)
"""The same, for text whose letters were spaced out and are joined again."""
