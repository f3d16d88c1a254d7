"""How other languages say "ignore the instructions" and "answer with zero"; without accents."""

from __future__ import annotations

import unicodedata
from typing import Final

__all__ = ["OTHER_LANGUAGES"]


def _apart(text: str) -> str:
    """Korean as NFKD leaves it: syllables taken apart."""
    return unicodedata.normalize("NFKD", text)


_NEAR: Final = r"[^\n.。।]{0,40}"
_ZERO: Final = r"(?:0[.,]0|\b0\b|\bzero\b)"

OTHER_LANGUAGES: Final = (
    # stems of which a match holds one, and the expression; French
    (
        "instruction,consigne,regle",
        rf"\b(?:ignore[zr]?|oublie[zr]?|ne tene[zs] pas compte)\b{_NEAR}"
        r"\b(?:instructions?|consignes?|regles?)\b",
    ),
    (
        "repond,donne,ecri,attribue,mette",
        rf"\b(?:reponde[zs]|repondre|donne[zr]?|ecri(?:s|vez)|attribue[zr]?|mette[zs])\b{_NEAR}{_ZERO}",
    ),
    # German
    (
        "anweisung,instruktion,regel,vorgabe",
        rf"\b(?:ignorier\w{{0,3}}|vergiss|vergessen|missacht\w{{0,3}}|uberspring\w{{0,3}})\b{_NEAR}"
        r"\b(?:anweisung\w{0,4}|instruktion\w{0,4}|regeln?|vorgaben?)\b",
    ),
    (
        "antwort,gib,geben,schreib,bewert,setz",
        rf"\b(?:antwort\w{{0,3}}|gib|geben|schreib\w{{0,3}}|bewert\w{{0,3}}|setz\w{{0,3}})\b{_NEAR}"
        rf"(?:{_ZERO}|\bnull\b)",
    ),
    # Spanish and Portuguese
    (
        "instrucciones,instrucoes,reglas,regras,ordenes,indicaciones",
        rf"\b(?:ignor[ae]n?|olvid[ae]n?|descart[ae]n?|esquec[ae]|desconsider[ae])\b{_NEAR}"
        r"\b(?:instrucciones|instrucoes|reglas|regras|ordenes|indicaciones)\b",
    ),
    (
        "responda,responde,devuelv,escrib,asign,califi,escreva,atribua",
        rf"\b(?:respond[ae]n?|devuelv[ae]n?|escrib[ae]n?|asign[ae]n?|califi[cq]u?[ae]n?|escreva|atribua)\b{_NEAR}"
        rf"(?:{_ZERO}|\bcero\b)",
    ),
    # Italian
    (
        "istruzioni,regole,indicazioni",
        rf"\b(?:ignor[ai]|ignorate|dimentic[ai]|dimenticate|trascur[ai])\b{_NEAR}"
        r"\b(?:istruzioni|regole|indicazioni)\b",
    ),
    (
        "rispond,scriv,assegn",
        rf"\b(?:rispond[ie]|rispondete|scriv[ie]|assegn[ai])\b{_NEAR}{_ZERO}",
    ),
    # Dutch, Polish, Turkish
    (
        "instructies,aanwijzingen,regels",
        rf"\b(?:negeer|vergeet)\b{_NEAR}\b(?:instructies|aanwijzingen|regels)\b",
    ),
    ("antwoord,geef", rf"\b(?:antwoord|geef)\b{_NEAR}(?:{_ZERO}|\bnul\b)"),
    (
        "instrukcj,polecen",
        rf"\b(?:zignoruj|pomin|zapomnij)\b{_NEAR}\b(?:instrukcj\w{{1,3}}|polecen\w{{1,3}})\b",
    ),
    ("odpowiedz,napisz,podaj", rf"\b(?:odpowiedz|napisz|podaj)\b{_NEAR}{_ZERO}"),
    (
        "talimat,kural",
        rf"\b(?:talimat|kural)\w{{0,6}}{_NEAR}(?:yok say|yoksay|gormezden gel|unut)",
    ),
    # Russian; without its breve the short i is an и
    (
        "игнорируи,забудь,не обращаи,пропусти",
        rf"(?:игнорируи|забудь|не обращаи|пропусти)\w{{0,4}}{_NEAR}(?:инструкци|указани|правил)",
    ),
    (
        "ответь,напиши,выведи,поставь",
        rf"(?:ответь|напиши|выведи|поставь)\w{{0,3}}{_NEAR}(?:{_ZERO}|ноль)",
    ),
    # Chinese, Japanese (kana without voicing marks), Korean
    (
        "忽略,无视,無視,忘记,忘記,不要理会",
        r"(?:忽略|无视|無視|忘记|忘記|不要理会)[^\n。]{0,20}(?:指令|指示|说明|說明|要求|提示|规则|規則)",
    ),
    (
        "输出,輸出,回答,打分,评分,給出,给出,返回",
        r"(?:输出|輸出|回答|打分|评分|給出|给出|返回)[^\n。]{0,12}(?:0|零)",
    ),
    ("無視,忘れ", r"(?:指示|命令|指令|ルール|フロンフト)[^\n。]{0,12}(?:無視|忘れ)"),
    ("答え,出力,回答,返", r"(?:0|セロ)[^\n。]{0,8}(?:と答え|と出力|を出力|と回答|を返)"),
    (_apart("무시,잊"), _apart(r"(?:지시|명령|지침|규칙)[^\n.]{0,24}(?:무시|잊)")),
    # Arabic, Hindi
    ("تجاهل,انس", rf"(?:تجاهل|انس){_NEAR}(?:التعليمات|الاوامر|القواعد)"),
    ("निर्देश,नियम", rf"(?:निर्देश|नियम){_NEAR}(?:अनदेखा|नजरअंदाज)"),
)
