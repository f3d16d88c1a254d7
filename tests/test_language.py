"""The language guess errs on the side of English."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.language import is_english

ENGLISH = [
    "The refund period is ten days.",
    "Angela Merkel met Emmanuel Macron in Berlin.",
    "Die Hard is a 1988 film.",
    "Les Misérables opened in Paris in 1862.",
    "GDP grew 3.2% in 2023.",
    "La Niña conditions were observed in the Pacific.",
    "El Niño and La Niña are phases of one cycle.",
    "",
    "12345",
    "The word 'für' means 'for' in German.",
    "David's son met Anna's son.",
    "São Paulo and Rio de Janeiro are cities.",
]
FOREIGN = [
    "Die Rückgabe ist innerhalb von zehn Tagen nach der Lieferung möglich.",
    "Le délai de remboursement est de dix jours après la livraison.",
    "El plazo de devolución es de diez días después de la entrega.",
    "Il rimborso viene accreditato sulla carta di credito entro dieci giorni dalla consegna.",
    "退款期限为交货后十天。",
    "返品期間は配達後10日間です。",
    "Срок возврата составляет десять дней.",
    "فترة الاسترداد عشرة أيام",
    "वापसी की अवधि दस दिन है।",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_english(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign(text: str) -> None:
    assert not is_english(text)


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text: str) -> None:
    assert is_english(text) in (True, False)
