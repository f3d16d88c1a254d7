"""Index this project's own documents, save the index, and search it. Run it again to update the index.

Run it from anywhere: python examples/search_docs.py ["a question"]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from surefoot import Index

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(tempfile.gettempdir()) / "surefoot-docs-index"


def main(question: str) -> None:
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    sources = [
        {"id": path.relative_to(ROOT).as_posix(), "text": path.read_text(encoding="utf-8")} for path in paths
    ]
    index = Index.load(FOLDER) if FOLDER.exists() else Index.build([])
    changes = index.add(
        sources,
        checkpoint=f"{FOLDER}.journal",
        progress=lambda done, total: print(f"{done} of {total} passages"),
    )
    index.save(FOLDER)
    Path(f"{FOLDER}.journal").unlink(missing_ok=True)
    print(f"{changes.added} documents added, {changes.replaced} replaced, {changes.unchanged} unchanged")
    for hit in index.search(question, k=3):
        print(f"\n{hit.rank}. {hit.source_id}, characters {hit.start} to {hit.end}")
        print("   " + " ".join(hit.text.split())[:160])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "What happens when no model can be loaded?")
