"""Reading requests: what is accepted, and that what is wrong is said with its place."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.cli import request as module
from surefoot.cli.request import CheckRequest, parse_request, read_files, read_request
from surefoot.errors import InputError

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.json"))


def parse(value: Any) -> CheckRequest:
    return parse_request(json.dumps(value))


def attempt(data: bytes | str) -> CheckRequest | str:
    """The request, or the message of the ``InputError``."""
    try:
        return parse_request(data)
    except InputError as error:
        return str(error)


def refused(data: bytes | str) -> str:
    with pytest.raises(InputError) as caught:
        parse_request(data, name="r.json")
    return str(caught.value)


def test_a_whole_request() -> None:
    request = parse(
        {
            "question": "q",
            "answer": "a",
            "sources": ["text", {"id": "x", "text": "t", "title": "T", "metadata": {"page": 3}}],
            "citations": [{"marker": "[1]"}],
        }
    )
    assert request == CheckRequest(
        answer="a",
        sources=("text", {"id": "x", "text": "t", "title": "T", "metadata": {"page": 3}}),
        question="q",
        citations=({"marker": "[1]"},),
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_requests(path: Path) -> None:
    request = read_request(str(path))
    assert request.answer
    assert 3 <= len(request.sources) <= 6
    for source in request.sources:
        assert isinstance(source, dict)
        assert 60 <= len(source["text"].split()) <= 250


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {"policy.json", "legal.json", "news.json"}


def test_null_and_empty_are_kept() -> None:
    request = parse({"answer": None, "sources": [None, "", {"text": None}, {"id": None, "text": ""}]})
    assert request.answer is None
    assert request.sources == (None, "", {"text": ""}, {"text": ""})
    assert parse({"answer": "", "sources": []}).sources == ()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"text": "c", "chunk_text": "b", "expanded_context": "a"}, "a"),
        ({"text": "c", "chunk_text": "b"}, "b"),
        ({"text": "c", "chunk_text": "", "expanded_context": None}, "c"),
    ],
)
def test_the_first_text_that_is_not_empty_is_read(source: dict[str, Any], text: str) -> None:
    assert parse({"answer": "", "sources": [source]}).sources == ({"text": text},)


def test_numbers_are_ids_too() -> None:
    assert parse({"answer": "", "sources": [{"id": 7, "text": "t"}]}).sources == ({"id": "7", "text": "t"},)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "r.json: expected an object, got an array"),
        ({"sources": []}, 'r.json: the field "answer" is missing'),
        ({"answer": ""}, 'r.json: the field "sources" is missing'),
        ({"answer": 3, "sources": []}, "r.json: answer: expected a string, got a number"),
        ({"answer": "", "sources": None}, "r.json: sources: expected an array, got null"),
        ({"answer": "", "sources": {"text": "t"}}, "r.json: sources: expected an array, got an object"),
        (
            {"answer": "", "sources": ["", "", {"text": 5}]},
            "r.json: sources[2].text: expected a string, got a number",
        ),
        (
            {"answer": "", "sources": [{"id": True, "text": ""}]},
            "r.json: sources[0].id: expected a string, got a boolean",
        ),
        (
            {"answer": "", "sources": [5]},
            "r.json: sources[0]: expected a string, an object or null, got a number",
        ),
        (
            {"answer": "", "sources": [{"id": "x"}]},
            "r.json: sources[0]: no text: expected one of expanded_context, chunk_text, text",
        ),
        (
            {"answer": "", "sources": [{"text": "", "metadata": []}]},
            "r.json: sources[0].metadata: expected an object, got an array",
        ),
        (
            {"answer": "", "sources": [], "citations": ["[1]"]},
            "r.json: citations[0]: expected an object, got a string",
        ),
        ({"answer": "", "sources": [], "sorces": []}, "r.json: sorces: unknown field; did you mean sources?"),
    ],
)
def test_a_wrong_shape_is_said_with_its_path(value: Any, message: str) -> None:
    assert refused(json.dumps(value)) == message


def test_unknown_fields_of_a_source_belong_into_its_metadata() -> None:
    message = refused('{"answer": "", "sources": [{"text": "", "rank of x": 1}]}')
    assert message.startswith('r.json: sources[0]["rank of x"]: unknown field; known are id, title, metadata')
    assert message.endswith("put anything of your own under metadata")


def test_malformed_json_is_said_with_line_and_column() -> None:
    assert refused('{"answer": "",\n "sources": [}').startswith("r.json: line 2, column 14: ")
    assert refused("").startswith("r.json: line 1, column 1: ")
    assert refused('{"answer": "", "sources": []} x').startswith("r.json: line 1, column 31: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"answer": "a", "answer": "b", "sources": []}', 'the key "answer" appears twice'),
        (
            '{"answer": "", "sources": [{"text": "", "metadata": {"a": [{"b": 1, "b": 1}]}}]}',
            'sources[0].metadata.a[0]: the key "b" appears twice',
        ),
        (
            '{"answer": "", "sources": [{"text": "", "metadata": {"x": NaN}}]}',
            "sources[0].metadata.x: NaN is not JSON",
        ),
        ('{"answer": -Infinity, "sources": []}', "answer: -Infinity is not JSON"),
        ('{"answer": 1e999, "sources": []}', "answer: the number 1e999 is out of range"),
        ('{"answer": ' + "9" * 5000 + ', "sources": []}', "answer: the number has too many digits"),
    ],
)
def test_what_parsers_disagree_about_is_refused(text: str, message: str) -> None:
    assert refused(text) == f"r.json: {message}"


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_a_clear_error(depth: int) -> None:
    assert "nested too deeply" in refused("[" * depth + "]" * depth)
    assert "nested too deeply" in refused('{"a":' * depth + "1" + "}" * depth)


def test_metadata_may_be_nested_a_little() -> None:
    value: Any = 1
    for _ in range(40):
        value = {"k": [value]} if isinstance(value, int) else {"k": value}
    assert parse({"answer": "", "sources": [{"text": "", "metadata": {"m": value}}]}).sources


def test_json_is_utf_8_with_or_without_a_byte_order_mark() -> None:
    data = '{"answer": "é", "sources": []}'.encode()
    assert parse_request(data).answer == "é"
    assert parse_request(b"\xef\xbb\xbf" + data).answer == "é"
    assert parse_request("\ufeff" + data.decode()).answer == "é"
    assert refused(b'{"answer": "\xff"') == "r.json: JSON has to be UTF-8; byte 12 is not"


def test_lone_surrogates_are_passed_on() -> None:
    assert parse_request('{"answer": "\\ud800", "sources": []}').answer == "\ud800"


def test_too_many_sources_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SOURCES", 3)
    assert len(parse({"answer": "", "sources": [""] * 3}).sources) == 3
    assert (
        refused('{"answer": "", "sources": ["", "", "", ""]}')
        == "r.json: sources: 4 sources are more than the limit of 3"
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {"answer": json_values, "sources": st.lists(json_values, max_size=3)},
        optional={"question": json_values, "citations": json_values, "x": json_values},
    )
    | json_values
)
def test_any_json_is_read_or_refused_with_a_message(value: Any) -> None:
    result = attempt(json.dumps(value))
    if isinstance(result, str):
        assert result.startswith("request: ")
    else:
        assert len(result.sources) == len(value["sources"])


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_a_message(data: bytes) -> None:
    result = attempt(data)
    assert isinstance(result, CheckRequest) or result.startswith("request: ")


# files


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(InputError, match="cannot be read"):
            read_request(str(path))


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_text(json.dumps({"answer": "x" * 5_000, "sources": []}))
    assert read_request(str(path), max_mb=0.01).answer == "x" * 5_000
    with pytest.raises(InputError, match=r"larger than 0\.002 MB; raise the limit with --max-mb"):
        read_request(str(path), max_mb=0.002)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"answer": "a", "sources": [""]}')))
    assert read_request("-").answer == "a"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    with pytest.raises(InputError, match=r"^standard input: line 1, column 2"):
        read_request("-")


def test_text_files(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_bytes("\ufeffAn answer.".encode())
    (tmp_path / "a.md").write_text("# Title\n\nText.", encoding="utf-8")
    (tmp_path / "b.txt").write_bytes("notepad é".encode("utf-16"))
    request = read_files(
        str(tmp_path / "answer.txt"), [str(tmp_path / "a.md"), str(tmp_path / "b.txt")], question="q"
    )
    assert request == CheckRequest(
        "An answer.", ({"id": "a.md", "text": "# Title\n\nText."}, {"id": "b.txt", "text": "notepad é"}), "q"
    )


def test_text_that_is_not_utf_8_is_read_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("fine")
    (tmp_path / "old.txt").write_bytes(b"caf\xe9 au lait")
    request = read_files(str(tmp_path / "answer.txt"), [str(tmp_path / "old.txt")])
    assert request.sources == ({"id": "old.txt", "text": "caf\ufffd au lait"},)
    assert len(request.warnings) == 1
    assert "old.txt: byte 3 is not UTF-8" in request.warnings[0]


def test_files_of_the_same_name_keep_apart(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "page.txt")
        paths[-1].write_text(folder)
    request = read_files(str(paths[0]), [str(path) for path in paths])
    assert [source["id"] for source in request.sources if isinstance(source, dict)] == [
        str(path) for path in paths
    ]


@pytest.mark.parametrize(
    ("content", "sources"),
    [
        ('{"text": "t", "title": "T"}', ({"id": "s.json", "text": "t", "title": "T"},)),
        ('{"id": "own", "text": "t"}', ({"id": "own", "text": "t"},)),
        ('["a", {"text": "b"}, null]', ("a", {"text": "b"}, None)),
        ('"just text"', ({"id": "s.json", "text": "just text"},)),
        ('{"price": 12.50, "text": "t"}', ({"id": "s.json", "text": '{"price": 12.50, "text": "t"}'},)),
        ("[1, 2]", ({"id": "s.json", "text": "[1, 2]"},)),
    ],
)
def test_json_files_are_sources_or_data(tmp_path: Path, content: str, sources: tuple[Any, ...]) -> None:
    (tmp_path / "s.json").write_text(content)
    (tmp_path / "a.txt").write_text("a")
    assert read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.json")]).sources == sources


def test_of_a_request_as_a_source_only_its_sources_are_read(tmp_path: Path) -> None:
    """Its answer would support itself."""
    request = {"question": "q", "answer": "a", "sources": ["one", {"id": "x", "text": "two"}]}
    (tmp_path / "s.json").write_text(json.dumps(request))
    (tmp_path / "a.txt").write_text("a")
    read = read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.json")])
    assert read.sources == ("one", {"id": "x", "text": "two"})
    assert "a request: only its sources are read" in read.warnings[0]
    (tmp_path / "s.json").write_text(json.dumps({**request, "sources": ["one", 2]}))
    with pytest.raises(InputError, match=r"s\.json: sources\[1\]: expected a string"):
        read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.json")])
    (tmp_path / "s.json").write_text(json.dumps({**request, "id": "faq-7"}))  # a record of some other kind
    (source,) = read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.json")]).sources
    assert isinstance(source, dict)
    assert source["id"] == "s.json"


def test_a_malformed_json_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"text": ')
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(InputError, match=r"s\.json: line 1, column"):
        read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.json")])


def html_source(tmp_path: Path, markup: str) -> Any:
    pytest.importorskip("bs4")
    (tmp_path / "s.html").write_text(markup, encoding="utf-8")
    (tmp_path / "a.txt").write_text("a")
    return read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.html")]).sources[0]


def test_html_is_read_as_text_with_its_structure(tmp_path: Path) -> None:
    source = html_source(
        tmp_path,
        "<html><head><title> The  page </title><style>p {}</style></head><body><h2>Returns</h2>"
        "<p>Within <b>10</b>\n days.<br>Not later.</p><!-- hidden --><script>evil()</script>"
        "<ul><li>one</li><li>two</li></ul>"
        "<table><tr><th>size</th><th>price</th></tr><tr><td>S</td><td>5</td></tr></table>"
        "<pre>a\n b</pre></body></html>",
    )
    assert source["title"] == "The page"
    assert source["text"] == (
        "## Returns\n\nWithin 10 days.\nNot later.\n\n- one\n\n- two\n\nsize | price\n\nS | 5\n\na\nb"
    )


def test_deeply_nested_html_is_read(tmp_path: Path) -> None:
    source = html_source(tmp_path, "<div>" * 5_000 + "deep" + "</div>" * 5_000)
    assert source["text"] == "deep"


def one_page_pdf(text: str) -> bytes:
    """The smallest PDF with a line of text, its cross-reference table included (ISO 32000-1, 7.5)."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1") if text else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (The paper) >>",
    ]
    data = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def test_pdf_files(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "s.pdf").write_bytes(one_page_pdf("Items may be returned within 10 days."))
    request = read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.pdf")])
    assert request.sources == (
        {"id": "s.pdf", "title": "The paper", "text": "Items may be returned within 10 days."},
    )
    assert request.warnings == ()


def test_a_pdf_without_text_is_read_with_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "scan.pdf").write_bytes(one_page_pdf(""))
    request = read_files(str(tmp_path / "a.txt"), [str(tmp_path / "scan.pdf")])
    assert [source["text"] for source in request.sources if isinstance(source, dict)] == [""]
    assert "no text in this PDF" in request.warnings[0]


WHOLE = one_page_pdf("Items may be returned within 10 days.")
TRUNCATED = WHOLE[:-30]
OVERWRITTEN = WHOLE[:100] + b"\0" * 30 + WHOLE[130:]


@pytest.mark.parametrize("data", [b"", TRUNCATED, b"%PDF-1.7\nnot really", b"\0" * 100])
def test_a_damaged_pdf_is_an_input_error(tmp_path: Path, data: bytes) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "s.pdf").write_bytes(data)
    with pytest.raises(InputError, match="not a PDF that can be read"):
        read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.pdf")])


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (TRUNCATED, 2, "error: {}: not a PDF that can be read"),
        (OVERWRITTEN, 0, "warning: {}: the PDF is damaged, text may be missing: "),
    ],
)
def test_a_damaged_pdf_is_one_line_and_not_the_log_of_its_reader(
    tmp_path: Path, data: bytes, code: int, line: str
) -> None:
    """In a process of its own: pytest takes over logging."""
    pytest.importorskip("pypdf")
    answer, source = tmp_path / "a.txt", tmp_path / "s.pdf"
    answer.write_text("Items may be returned within 10 days.")
    source.write_bytes(data)
    words = [sys.executable, "-m", "surefoot", "check", "--answer", answer, "--source", source, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code
    expected = f"surefoot: {line.format(source)}"
    assert [said[: len(expected)] for said in done.stderr.splitlines()] == [expected]
    assert bool(done.stdout) == (code == 0)


def test_the_handlers_of_the_program_still_get_what_the_pdf_reader_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "s.pdf").write_bytes(OVERWRITTEN)
    read = read_files(str(tmp_path / "a.txt"), [str(tmp_path / "s.pdf")])
    assert len(read.warnings) == 1
    assert caplog.messages
    assert not logging.getLogger("pypdf").handlers


@pytest.mark.parametrize(("name", "extra", "package"), [("s.html", "html", "bs4"), ("s.pdf", "pdf", "pypdf")])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, extra: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / name).write_text("x")
    with pytest.raises(ImportError, match=rf"pip install 'surefoot\[{extra}\]'"):
        read_files(str(tmp_path / "a.txt"), [str(tmp_path / name)])
