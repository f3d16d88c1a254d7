"""What a checkpoint says about selected claims: logits of every premise, kept in one array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from training.verify.measured import Item
from training.verify.model import Network, pick_device
from training.verify.pairs import Encoded, _batch

__all__ = ["score_items", "score_pairs"]


def score_pairs(
    folder: Path,
    pairs: Sequence[tuple[str, str]],
    *,
    device: str = "auto",
    tokens: int = 4096,
    most: int = 512,
    precision: str = "float32",
) -> np.ndarray:
    """Logits [pairs, 3] in the order of :data:`~training.verify.model.CLASSES`.

    What is longer than ``most`` tokens loses the end of its premise. Where the claim alone fills that room,
    the logits are NaN.
    """
    where = pick_device(device)
    network = Network.load(folder).to(where).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    room = [most - len(tokenizer.encode("", claim).ids) for _, claim in pairs]
    tokenizer.enable_truncation(most, strategy="only_first")
    rows, kept = [], [index for index, left in enumerate(room) if left > 0]
    for premise, claim in (pairs[index] for index in kept):
        encoding = tokenizer.encode(premise, claim)
        sides = encoding.sequence_ids
        second = sides.index(1) if 1 in sides else len(sides)
        rows.append(Encoded(np.asarray(encoding.ids, np.int32), second, 0, 1.0))
    logits = np.full((len(pairs), 3), np.nan, dtype=np.float32)
    order = sorted(range(len(rows)), key=lambda index: len(rows[index].ids))
    with torch.inference_mode():
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end + 1 - start) * len(rows[order[end]].ids) <= tokens:
                end += 1
            members = order[start:end]
            batch = _batch([rows[index] for index in members])
            ids, segments, mask = (
                torch.from_numpy(array).to(where) for array in (batch.ids, batch.segments, batch.mask)
            )
            with torch.autocast(where.type, torch.bfloat16, enabled=precision == "bfloat16"):
                found = network(ids, segments, mask)
            logits[[kept[index] for index in members]] = found.float().cpu().numpy()
            start = end
    return logits


def score_items(folder: Path, items: Sequence[Item], *, device: str = "auto") -> np.ndarray:
    """Logits [items, 3, 3]: of the joined premise and of the two passages; NaN where there is none."""
    found = np.full((len(items), 3, 3), np.nan, dtype=np.float32)
    pairs, places = [], []
    for index, item in enumerate(items):
        if item.selected is None:
            continue
        for place, premise in enumerate(item.selected.premises):
            if premise:
                pairs.append((premise, item.selected.claim))
                places.append((index, place))
    logits = score_pairs(folder, pairs, device=device)
    if np.isnan(logits).any():  # a figure must not rest on a claim that was never read
        raise ValueError("a claim is too long to be scored with any premise")
    for (index, place), row in zip(places, logits, strict=True):
        found[index, place] = row
    return found
