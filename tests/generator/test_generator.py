"""The generator: repeatable, honest about where its text is, and fair between its splits."""

import itertools
import json
from decimal import Decimal

import cv2
import numpy as np
import pytest

from benchmarks.generator import Kind, Language, Split, generate
from benchmarks.generator.__main__ import write
from benchmarks.generator.bills import COUNTRIES, make_bill
from benchmarks.generator.degrade import Bed, Scene
from benchmarks.generator.fapiao import in_words
from benchmarks.generator.fonts import FONTS, Face, Font, load
from benchmarks.generator.layouts import ITEM_LAYOUTS
from benchmarks.generator.make import draw
from benchmarks.generator.phrases import RECEIPT_PHRASES
from benchmarks.generator.words import entries, words
from docferry.errors import ConfigurationError

EVERY = list(itertools.product(Kind, Language))
PAIRS = list(itertools.combinations(Split, 2))
BENT = Scene(bed=Bed.TABLE, rotation=3, perspective=0.04, curl=0.02, margin=0.1)


@pytest.mark.parametrize(("kind", "language"), EVERY)
def test_the_same_seed_gives_the_same_bytes(kind, language):
    first, second = (generate(kind, 7, Split.TRAIN, language=language) for _ in range(2))
    assert np.array_equal(first.image, second.image)
    assert first.truth.as_dict("x.jpg") == second.truth.as_dict("x.jpg")


def test_another_seed_or_split_gives_another_document():
    seen = {str(draw(Kind.RECEIPT, seed, split).fields) for seed in range(3) for split in Split}
    assert len(seen) == 9


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_splits_share_no_font(one, other):
    files = [{font.file for fonts in FONTS[split].values() for font in fonts} for split in (one, other)]
    assert not files[0] & files[1]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("language", Language)
def test_splits_share_no_word_list_entry(one, other, language):
    assert not entries(words(one, language)) & entries(words(other, language))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_splits_share_no_layout_and_no_label_set(one, other):
    assert not set(ITEM_LAYOUTS[one]) & set(ITEM_LAYOUTS[other])
    assert not set(RECEIPT_PHRASES[one].values()) & set(RECEIPT_PHRASES[other].values())


def test_a_missing_font_is_an_error_that_says_what_to_install():
    with pytest.raises(ConfigurationError, match="apt-get install fonts-nowhere"):
        Font("fonts-nowhere", "truetype/nowhere/Nowhere.ttf").path()
    with pytest.raises(ConfigurationError, match="pip install no-such-fonts"):
        Font("no_such_fonts", "Nowhere.otf").path()


@pytest.mark.parametrize("split", Split)
def test_every_font_has_the_glyphs_its_words_need(split):
    latin = set("".join(entries(words(split, Language.EN)))) | set("0123456789.,:;#@%*&()/-+'!$£¥ABCXYZ")
    chinese = set("".join(entries(words(split, Language.ZH)))) | set("壹贰叁肆伍陆柒捌玖拾佰仟万元角分整零：（）。，¥")
    for face, fonts in FONTS[split].items():
        for font in fonts:
            glyphs = load(font.path(), 32)
            missing = glyphs.getmask("\uffff").getbbox(), bytes(glyphs.getmask("\uffff"))
            wanted = (chinese | latin if face is Face.CHINESE else latin) - {" "}
            lost = {c for c in wanted if (glyphs.getmask(c).getbbox(), bytes(glyphs.getmask(c))) == missing}
            assert not lost, f"{font.file} lacks {lost}"


@pytest.mark.parametrize(("kind", "language"), EVERY)
def test_truth_lies_on_ink_inside_the_picture(kind, language):
    sample = generate(kind, 3, Split.JUDGE, language=language, scene=BENT)
    grey = cv2.cvtColor(sample.image, cv2.COLOR_BGR2GRAY).astype(np.float32)
    height, width = grey.shape
    assert (width, height) == (sample.truth.width, sample.truth.height)
    for line in sample.truth.lines:
        low, high = line.polygon.min(axis=0), line.polygon.max(axis=0)
        assert low.min() >= 0
        assert high[0] <= width
        assert high[1] <= height
        assert line.text.strip() == line.text
        inside, around = ink_inside(grey, line.polygon)
        assert inside > around + 0.03, line.text


def ink_inside(grey, polygon):
    """Share of pixels darker than the paper inside a line, and in the strips just above and below it."""
    x0, y0 = np.maximum(np.floor(polygon.min(axis=0)).astype(int) - 12, 0)
    x1, y1 = np.ceil(polygon.max(axis=0)).astype(int) + 12
    part = grey[y0:y1, x0:x1]
    dark = np.abs(part - np.median(part)) > 40
    mask = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(mask, [np.rint(polygon - (x0, y0)).astype(np.int32)], 1)
    rim = cv2.dilate(mask, np.ones((7, 1), np.uint8)) - cv2.dilate(mask, np.ones((3, 1), np.uint8))
    return dark[mask > 0].mean(), dark[rim > 0].mean() if rim.any() else 0.0


@pytest.mark.parametrize("scene", [Scene(perspective=0.05), Scene(curl=0.03), Scene(rotation=7), BENT])
def test_the_truth_moves_with_the_pixels(scene):
    """Each line's polygon, carried to the flat page and cut out of it, shows that line's own clean print."""
    drawing = draw(Kind.RECEIPT, 5, Split.TRAIN)
    sample = generate(Kind.RECEIPT, 5, Split.TRAIN, scene=scene)
    clean = cv2.cvtColor(drawing.pixels, cv2.COLOR_BGR2GRAY)
    taken = cv2.cvtColor(sample.image, cv2.COLOR_BGR2GRAY)
    for flat, moved in zip(drawing.lines, sample.truth.lines, strict=True):
        size = np.rint(flat.polygon[2] - flat.polygon[0]).astype(int)
        if size[0] < 40:
            continue
        corners = np.array([[0, 0], [size[0], 0], size, [0, size[1]]], np.float32)
        strips = [
            cv2.warpPerspective(
                picture, cv2.getPerspectiveTransform(polygon.astype(np.float32), corners), tuple(int(v) for v in size)
            )
            for picture, polygon in ((clean, flat.polygon), (taken, moved.polygon))
        ]
        assert np.corrcoef(strips[0].ravel(), strips[1].ravel())[0, 1] > 0.8, flat.text


def test_a_warp_and_its_inverse_cancel():
    from benchmarks.generator.warp import Curl, Warp, to_quad

    quad = np.array([[30.0, 10], [820, 60], [790, 1500], [5, 1430]])
    warp = Warp(Curl(800, 1400, 18, 11, 0.2, (0.4, 2.0, 5.0)), to_quad(800, 1400, quad))
    points = np.random.default_rng(0).uniform((0, 0), (800, 1400), (500, 2))
    assert np.abs(warp.backward(warp.forward(points)) - points).max() < 1e-5


def test_the_sampled_map_is_exact_to_a_hundredth_of_a_pixel():
    from benchmarks.generator.warp import Curl, Warp, to_quad

    quad = np.array([[30.0, 10], [820, 60], [790, 1500], [5, 1430]])
    warp = Warp(Curl(800, 1400, 18, 11, 0.1, (0.4, 2.0, 5.0)), to_quad(800, 1400, quad))
    across, down = warp.maps(820, 1500)
    y, x = np.random.default_rng(0).integers((0, 0), (1500, 820), (200, 2)).T
    exact = warp.backward(np.stack([x, y], axis=1) + 0.5) - 0.5
    assert np.abs(np.stack([across[y, x], down[y, x]], axis=1) - exact).max() < 0.01


@pytest.mark.parametrize("code", COUNTRIES)
def test_bills_add_up(code):
    import random

    country = COUNTRIES[code]
    for seed in range(40):
        bill = make_bill(random.Random(seed), country, [f"item {n}" for n in range(9)], count=5)
        net = sum(item.quantity * item.price for item in bill.items) - bill.discount
        assert bill.total == net + (0 if country.included else bill.tax) + bill.rounding
        assert bill.total % country.rounding == 0
        assert abs(bill.rounding) <= country.rounding // 2
        assert bill.paid - bill.change == bill.total
        assert bill.change >= 0
        base = net - bill.tax if country.included else net
        assert abs(base * bill.rate / 100 - bill.tax) <= 1


@pytest.mark.parametrize("language", Language)
def test_an_invoice_prints_sums_that_add_up(language):
    for seed in range(6):
        for split in Split:
            sums = draw(Kind.INVOICE, seed, split, language).normalized
            discount = next(
                (Decimal(line) for line in discounts(draw(Kind.INVOICE, seed, split, language))), Decimal(0)
            )
            base = Decimal(sums["subtotal"]) + (discount if language is Language.EN else 0)
            assert base + Decimal(sums["tax"]) == Decimal(sums["total"])


def discounts(drawing):
    texts = [line.text for line in drawing.lines]
    return [texts[index + 1].replace(",", "") for index, text in enumerate(texts) if text == "Discount"]


@pytest.mark.parametrize(("kind", "language"), [(k, v) for k, v in EVERY if k is not Kind.PAGE])
def test_fields_stand_in_the_printed_text(kind, language):
    for seed in range(4):
        drawing = draw(kind, seed, Split.CALIBRATE, language)
        text = " ".join(line.text for line in drawing.lines)
        joined = text.replace(" ", "")
        for name in ("company", "date", "address", "total"):
            assert drawing.fields[name].replace(" ", "") in joined, name


def test_tables_hold_the_items():
    drawing = draw(Kind.INVOICE, 1, Split.JUDGE)
    table = next(region for region in drawing.regions if region.html)
    assert table.html.startswith("<table><tr><th>")
    assert drawing.normalized["subtotal"]
    low, high = table.polygon.min(axis=0), table.polygon.max(axis=0)
    cells = [line for line in drawing.lines if line.region == drawing.regions.index(table)]
    assert cells
    for line in cells:
        assert (line.polygon >= low - 1).all()
        assert (line.polygon <= high + 1).all()


def test_a_page_is_read_left_column_first():
    drawing = draw(Kind.PAGE, 2, Split.TRAIN)
    middle = drawing.pixels.shape[1] / 2
    sides = [region.polygon[:, 0].mean() > middle for region in drawing.regions if region.type == "text"][1:]
    assert sides == sorted(sides)
    assert {"header", "title", "text", "page_number"} <= {region.type for region in drawing.regions}


@pytest.mark.parametrize(
    ("cents", "text"),
    [
        (123450, "壹仟贰佰叁拾肆元伍角整"),
        (100, "壹元整"),
        (10005, "壹佰元零伍分"),
        (1000100, "壹万零壹元整"),
        (10050000, "壹拾万零伍佰元整"),
        (7980, "柒拾玖元捌角整"),
        (50, "伍角整"),
    ],
)
def test_amounts_in_chinese_words(cents, text):
    assert in_words(cents) == text


def test_the_command_writes_pictures_truth_and_a_manifest(tmp_path):
    write(Kind.RECEIPT, Split.TRAIN, Language.EN, range(2), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["count"] == len(manifest["items"]) == 2
    for item in manifest["items"]:
        truth = json.loads((tmp_path / item["gt"]).read_text())
        picture = cv2.imread(str(tmp_path / truth["image"]))
        assert picture.shape[:2] == (truth["height"], truth["width"])
        assert {"company", "date", "address", "total"} <= truth["fields"].keys()
        assert all(len(line["poly"]) == 8 for line in truth["lines"])
        assert truth["order"] == list(range(len(truth["lines"])))
