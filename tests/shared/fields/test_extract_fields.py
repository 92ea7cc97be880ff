"""The fields of small invented papers, in English and Chinese, whole and as a careless reader hands them over."""

from __future__ import annotations

import gc
import random
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docferry.document import Document, Page
from docferry.fields import DocumentType, classify, extract_fields, find_rows
from tests.shared.fields.papers import CAFE, NOODLES, TWO_COLUMNS, US_INVOICE, VAT_INVOICE, paper

CAFE_TRUTH = {
    "merchant": "BLUE HERON CAFE SDN BHD",
    "address": "NO. 7, JALAN TIGA PELITA, TAMAN EMBUN, 43999 KOTA CONTOH, SELANGOR.",
    "date": "2018-09-14",
    "total": "18.95",
    "invoice_number": "A-20417",
    "currency": "MYR",
    "subtotal": "17.90",
    "tax": "1.07",
}
NOODLES_TRUTH = {
    "merchant": "福满楼小面馆",
    "address": "云川市青石区槐花路18号",
    "date": "2024-03-15",
    "total": "40.00",
    "invoice_number": "202403150087",
    "currency": "CNY",
}
VAT_TRUTH = {
    "merchant": "青禾文具(云川)有限公司",
    "address": "云川市北港区明德路9号",
    "date": "2023-11-05",
    "total": "113.00",
    "invoice_number": "70654321",
    "currency": "CNY",
    "subtotal": "100.00",
    "tax": "13.00",
}
US_TRUTH = {
    "merchant": "Larkspur Tools, Inc.",
    "address": "4120 Quarry Road, Suite 9 Millbrook, OR 97999",
    "date": "2023-03-04",
    "total": "162.00",
    "invoice_number": "LT-00481",
    "currency": "USD",
    "subtotal": "150.00",
    "tax": "12.00",
}


def values(document: Document) -> dict[str, str]:
    return {field.name: field.normalized for field in extract_fields(document)}


def changed(document: Document, change) -> Document:
    page = document.pages[0]
    lines = tuple(replace(line, text=change(line.text)) for line in page.lines)
    return Document((replace(page, regions=(replace(page.regions[0], lines=lines),)),))


@pytest.mark.parametrize(
    ("rows", "truth"),
    [(CAFE, CAFE_TRUTH), (NOODLES, NOODLES_TRUTH), (VAT_INVOICE, VAT_TRUTH), (US_INVOICE, US_TRUTH)],
    ids=["cafe", "noodles", "vat-invoice", "us-invoice"],
)
def test_all_fields_of_a_clean_paper_are_found(rows, truth):
    assert values(paper(*rows)) == truth


def test_the_printed_value_is_kept_beside_the_normalized_one():
    fields = {field.name: field for field in extract_fields(paper(*CAFE))}
    assert fields["total"].value == "RM 18.95"
    assert fields["date"].value == "14/09/2018"
    assert fields["currency"].value == "RM"


def test_evidence_names_the_lines_the_value_was_read_from():
    document = paper(*CAFE)
    lines = {line.id: line for line in document.lines}
    for field in extract_fields(document):
        assert field.evidence
        for evidence in field.evidence:
            assert evidence.page == 0
            assert evidence.box == lines[evidence.line].box
    total = next(field for field in extract_fields(document) if field.name == "total")
    assert [lines[evidence.line].text for evidence in total.evidence] == ["RM 18.95"]


def test_the_order_of_the_lines_does_not_matter():
    document = paper(*CAFE)
    page = document.pages[0]
    lines = list(page.lines)
    random.Random(7).shuffle(lines)
    mixed = Document((replace(page, regions=(replace(page.regions[0], lines=tuple(lines)),)),))
    assert values(mixed) == CAFE_TRUTH


def test_words_run_together_are_still_understood():
    found = values(changed(paper(*CAFE), lambda text: text.replace(" ", "")))
    assert (found["total"], found["date"], found["merchant"]) == ("18.95", "2018-09-14", "BLUEHERONCAFESDNBHD")


def test_look_alike_glyphs_in_keywords_and_digits_are_survived():
    found = values(changed(paper(*CAFE), lambda text: text.replace("TOTAL", "T0TAL").replace("14/09", "l4/O9")))
    assert (found["total"], found["date"]) == ("18.95", "2018-09-14")


def test_a_keyword_and_its_amount_in_one_box_do_as_well_as_in_two():
    rows = tuple(" ".join(part.strip() for part in row.split("|") if part.strip()) for row in CAFE)
    assert values(paper(*rows)) == CAFE_TRUTH


def test_a_lost_decimal_point_is_put_back_where_the_other_amounts_have_theirs():
    rows = [row.replace("RM 18.95", "RM 1895") for row in CAFE]
    assert values(paper(*rows))["total"] == "18.95"


def test_the_rounded_total_wins_over_the_one_before_rounding_and_over_cash():
    assert values(paper(*CAFE))["total"] == "18.95"


def test_the_sum_of_a_tax_table_is_not_the_total():
    rows = (*CAFE[:-1], "GST SUMMARY | AMOUNT(RM) | TAX(RM)", "SR 6% | 17.90 | 1.07", "TOTAL | 17.90 | 1.07")
    assert values(paper(*rows))["total"] == "18.95"


def test_a_persons_name_above_the_shop_is_not_the_merchant():
    assert values(paper("MIRA OLSEN", "", "", *CAFE))["merchant"] == "BLUE HERON CAFE SDN BHD"


def test_a_name_broken_over_two_lines_is_joined():
    assert values(paper("BLUE HERON RIVERSIDE", "TRADING SDN BHD", *CAFE[1:]))["merchant"] == (
        "BLUE HERON RIVERSIDE TRADING SDN BHD"
    )


def test_the_buyer_is_not_taken_for_the_merchant():
    assert values(paper(*VAT_INVOICE))["merchant"] != "长河师范学校"
    assert values(paper(*US_INVOICE))["merchant"] != "Fennel & Daughters LLC"


def test_an_american_invoice_reads_the_month_first_and_a_malaysian_receipt_the_day():
    assert values(paper(*US_INVOICE))["date"] == "2023-03-04"
    rows = [row.replace("14/09/2018", "03/04/2018") for row in CAFE]
    assert values(paper(*rows))["date"] == "2018-04-03"


def test_what_is_not_on_the_paper_stays_absent():
    rows = [row for row in CAFE if not row.startswith(("DATE", "INVOICE NO"))]
    found = values(paper(*rows))
    assert "date" not in found
    assert "invoice_number" not in found


def test_a_tax_that_does_not_add_up_is_left_out():
    rows = [row.replace("1.07", "7.01") for row in CAFE]
    found = values(paper(*rows))
    assert "tax" not in found
    assert "subtotal" not in found


def test_a_page_of_running_text_in_two_columns_has_no_fields():
    document = paper(*TWO_COLUMNS)
    assert classify(find_rows(document)) is DocumentType.PAGE
    assert extract_fields(document) == ()


def test_receipt_and_invoice_are_told_apart():
    assert classify(find_rows(paper(*CAFE))) is DocumentType.RECEIPT
    assert classify(find_rows(paper(*VAT_INVOICE))) is DocumentType.INVOICE
    assert classify(find_rows(paper(*US_INVOICE))) is DocumentType.INVOICE


def test_an_empty_document_has_no_fields():
    assert extract_fields(Document(())) == ()
    assert extract_fields(Document((Page(10, 10),))) == ()


def test_a_field_is_never_surer_than_its_worst_line():
    for field in extract_fields(paper(*CAFE, score=0.6)):
        assert field.confidence <= 0.6
    for field in extract_fields(paper(*CAFE, score=0.99, confidence=0.4)):
        assert field.confidence <= 0.4


def test_a_fainter_answer_has_less_confidence():
    clear = next(field for field in extract_fields(paper(*CAFE)) if field.name == "total")
    rows = [row for row in CAFE if "TOTAL" not in row or row.startswith("SUB")]
    faint = next(field for field in extract_fields(paper(*rows)) if field.name == "total")
    assert faint.confidence < clear.confidence


def test_a_scorer_handed_in_takes_the_place_of_the_built_in_one():
    class Last:
        def scores(self, name, candidates):
            return [float(place) for place, _ in enumerate(candidates, 1)]

        def confidence(self, name, probability):
            return 0.25

    fields = {field.name: field for field in extract_fields(paper(*CAFE), Last())}
    assert fields["total"].normalized == "1.05"
    assert fields["total"].confidence == pytest.approx(0.25 * 0.99)


@settings(max_examples=60)
@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",)), max_size=40), max_size=25))
def test_any_text_is_survived(texts):
    extract_fields(paper(*texts, "TOTAL RM 5.00", "RECEIPT", "CASH 5.00"))


@pytest.mark.parametrize(
    "text",
    ["CO." * 300, "REG" * 300, "NO. " * 300, "(" + " " * 1500 + "1", "1," * 1500, "9" * 3000, "- " * 900, "TAX " * 500],
)
def test_text_made_to_confuse_a_parser_takes_no_longer_than_other_text(text):
    # A pattern that backtracks without bound would never return.
    extract_fields(paper(text, text + "!", "TOTAL RM 5.00", "RECEIPT", "CASH 5.00"))


def test_a_process_that_reads_for_months_does_not_keep_what_it_read() -> None:
    def read(numbers: range) -> int:
        for number in numbers:
            extract_fields(paper(*(f"SHOP {number} JALAN {row} TOTAL {number}.{row:02}" for row in range(30))))
        gc.collect()
        return sys.getallocatedblocks()

    before = read(range(160))
    assert read(range(160, 260)) - before < 20_000
