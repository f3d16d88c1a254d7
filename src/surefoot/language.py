"""Whether a text is English, as far as the bundled models are concerned.

A guess made to be safe in one direction: names, numbers and short phrases pass as English, and a text is
called foreign only on positive evidence, namely another script or the function words of another
language. A statistical identifier errs on short claims full of names, and each such error would send a
good claim to review.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = """
    is_english
    """.split()

_WORD: Final = re.compile(r"[^\W\d_]{1,40}")

_ENGLISH: Final = frozenset(
    """
    the of and to in is was are were for that with as on by it from at an be this have has had not or
    but which their they his her its will can may must should would could been who when where there than
    after before no all any each more most other such only into over under between we you he she i
    """.split()
)
# Words that English has too ("die", "in", "an", "was", "on", "no", "me", "come", "son", "met") are left out.
_FOREIGN: Final = (
    frozenset(
        """
    der das und ist nicht mit von zu den dem ein eine einen einer auf für sich auch wird werden sind bei
    nach wurde aus innerhalb können haben oder wenn zum zur le la les des du et est une dans pour pas
    qui que sur au aux avec ce cette sont ont par plus être nous vous leur ses été el los las y una por
    para con se del lo como más pero sus fue esta este ser está tiene sin sobre il di che è della
    per gli nel alla sono dei delle anche dal viene ha non questo o os um uma não dos das em foi ao pela
    pelo são mais de het een van niet en zijn voor te op dat werd wordt ook naar bij deze binnen och
    att som är på för av till inte har den det ett från i w na z się jest nie do że oraz przez
    """.split()
    )
    - _ENGLISH
)


def is_english(text: str) -> bool:
    """``False`` only where the text shows another script or another language's function words.

    Args:
        text: a claim, at most a few hundred words; only the first 4,000 characters are read.
    """
    text = text[:4000]
    letters = [character for character in text if character.isalpha()]
    if not letters:
        return True
    latin = sum(1 for character in letters if character.isascii() or _is_latin(character))
    if latin < 0.6 * len(letters):
        return False
    words = [word.lower() for word in _WORD.findall(text)]
    foreign = sum(word in _FOREIGN for word in words)
    english = sum(word in _ENGLISH for word in words)
    return not (foreign >= 2 and foreign > 2 * english and foreign >= 0.15 * len(words))


def _is_latin(character: str) -> bool:
    return unicodedata.name(character, "").startswith(("LATIN", "MODIFIER", "FEMININE", "MASCULINE"))
