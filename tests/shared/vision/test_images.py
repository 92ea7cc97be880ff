import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from docferry.errors import ImageTooLarge, UnreadableImage
from docferry.vision.images import WEBP_MAX_SIDE, ImageLimits, decode, encode_webp, page_count

RED_BGR = (0, 0, 255)


def picture(width=40, height=20):
    """White with a red top left quarter, so that every turn shows."""
    pixels = np.full((height, width, 3), 255, dtype=np.uint8)
    pixels[: height // 2, : width // 2] = (255, 0, 0)
    return Image.fromarray(pixels)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def is_red(pixel):
    return abs(pixel.astype(int) - RED_BGR).max() < 40


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF", "PPM", "AVIF"])
def test_every_format_gives_the_same_upright_bgr_picture(kind):
    options = (
        {"quality": 95, "subsampling": 0} if kind == "JPEG" else {"quality": 95} if kind in ("WEBP", "AVIF") else {}
    )
    pixels = decode(saved(picture(), kind, **options))
    assert pixels.shape == (20, 40, 3)
    assert pixels.dtype == np.uint8
    assert is_red(pixels[4, 8])
    assert pixels[15, 30].min() > 230


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK", "I;16", "I"])
def test_every_pixel_mode_comes_out_as_eight_bit_bgr(mode):
    if mode in ("I;16", "I"):
        kind, image = "TIFF", Image.fromarray(np.full((6, 5), 40000, dtype=np.uint16 if mode == "I;16" else np.int32))
        expected = 40000 >> 8
    elif mode == "CMYK":
        kind, image, expected = "TIFF", Image.new("RGB", (5, 6), (255, 255, 255)).convert("CMYK"), 255
    else:
        kind, image, expected = "PNG", Image.new("L", (5, 6), 255).convert(mode), 255
    pixels = decode(saved(image, kind))
    assert pixels.shape == (6, 5, 3)
    assert (abs(pixels.astype(int) - expected) <= 1).all()


def test_transparency_is_laid_on_white():
    image = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    assert (decode(saved(image, "PNG")) == 255).all()


def test_a_palette_entry_that_is_transparent_is_laid_on_white():
    image = Image.new("P", (4, 4), 0)
    image.putpalette([0, 0, 0, 9, 9, 9])
    assert (decode(saved(image, "PNG", transparency=0)) == 255).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(orientation):
    # The camera stored the picture as `undo` says; the reader must see the red quarter top left again.
    undo = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = picture() if undo is None else picture().transpose(undo)
    exif = Image.Exif()
    exif[0x0112] = orientation
    for kind in ("JPEG", "PNG", "TIFF"):
        pixels = decode(saved(stored, kind, exif=exif))
        assert pixels.shape == (20, 40, 3), kind
        assert is_red(pixels[4, 8]), kind
        assert not is_red(pixels[15, 30]), kind


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_costs_nothing():
    data = saved(picture(), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    assert decode(data).shape == (20, 40, 3)


def test_only_the_first_page_of_many_is_read():
    first, second = picture(), Image.new("RGB", (7, 7))
    assert decode(saved(first, "TIFF", save_all=True, append_images=[second])).shape == (20, 40, 3)
    assert decode(saved(first, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 20))])).shape == (20, 40, 3)


def test_a_huge_jpeg_is_reduced_while_decoding_but_stays_large_enough():
    data = saved(Image.new("RGB", (2000, 1000), "white"), "JPEG")
    reduced = decode(data, enough=480)
    assert 480 <= max(reduced.shape) <= 960
    assert decode(data, enough=1500).shape == (1000, 2000, 3)


@given(
    size=st.tuples(st.integers(17, 90), st.integers(17, 90)),
    grey=st.booleans(),
    progressive=st.booleans(),
    subsampling=st.integers(0, 2),
    enough=st.none() | st.integers(1, 90),
)
@settings(deadline=None)
def test_a_jpeg_has_the_same_pixels_whoever_decodes_it(size, grey, progressive, subsampling, enough):
    noise = np.random.default_rng(5).integers(0, 255, (*size, 3), dtype=np.uint8)
    source = Image.fromarray(noise).convert("L" if grey else "RGB")
    options = {} if grey else {"subsampling": subsampling}
    data = saved(source, "JPEG", quality=80, progressive=progressive, **options)
    pixels = decode(data, enough=enough)
    with Image.open(io.BytesIO(data)) as other:
        reduction = next(by for by in (1, 2, 4, 8) if -(-max(size) // by) == max(pixels.shape[:2]))
        other.draft(None, (max(1, other.width // reduction), max(1, other.height // reduction)))
        expected = np.asarray(other.convert("RGB"))[:, :, ::-1]
    assert enough is None or max(pixels.shape[:2]) >= min(enough, max(size))
    np.testing.assert_array_equal(pixels, expected)


@given(kept=st.floats(0.0, 1.0, exclude_max=True), progressive=st.booleans(), thumbnail=st.booleans())
@settings(deadline=None)
def test_a_jpeg_cut_anywhere_is_whole_or_an_error(kept, progressive, thumbnail):
    noise = np.random.default_rng(7).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    inside = saved(Image.fromarray(noise[:8, :8]), "JPEG") if thumbnail else b""
    data = saved(Image.fromarray(noise), "JPEG", progressive=progressive, exif=b"Exif\x00\x00" + inside)
    try:
        pixels = decode(data[: int(len(data) * kept)])
    except UnreadableImage:
        return
    np.testing.assert_array_equal(pixels, decode(data))


def test_an_empty_file_is_named():
    with pytest.raises(UnreadableImage, match=r"a\.jpg: the file is empty") as caught:
        decode(b"", name="a.jpg")
    assert caught.value.remedy


def test_text_under_an_image_name_is_called_text():
    with pytest.raises(UnreadableImage, match="this is text, not an image"):
        decode(b"Dear Sir or Madam,\n", name="letter.jpg")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"PK\x03\x04\x14\x00", "zip archive"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00", "HEIC"),
        (b"\x00\x01\x02\xff\xfe\xfd", "not an image"),
    ],
)
def test_other_files_are_called_what_they_are(data, kind):
    with pytest.raises(UnreadableImage, match=kind):
        decode(data, name="x.jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF"])
def test_a_file_cut_short_is_an_error_and_not_half_a_page(kind):
    noise = np.random.default_rng(3).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    data = saved(Image.fromarray(noise), kind)
    with pytest.raises(UnreadableImage, match="damaged or cut short") as caught:
        decode(data[: len(data) // 2], name="photo")
    assert "photo" in caught.value.reason


def huge_png(width, height):
    """A valid header, a few bytes of pixels: what a decompression bomb looks like."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(30_000, 30_000), (2**31 - 1, 2**31 - 1), (100_000_001, 1)])
def test_too_many_pixels_are_refused_by_the_header(size):
    with pytest.raises(ImageTooLarge, match="megapixels"):
        decode(huge_png(*size), name="bomb.png")


def test_too_many_bytes_are_refused():
    data = saved(picture(), "PNG")
    with pytest.raises(ImageTooLarge, match="the limit is 10"):
        decode(data, limits=ImageLimits(max_bytes=10))


def test_limits_are_the_callers_choice():
    data = saved(picture(), "PNG")
    assert decode(data, limits=ImageLimits(max_pixels=800)).shape == (20, 40, 3)
    with pytest.raises(ImageTooLarge):
        decode(data, limits=ImageLimits(max_pixels=799))


SEEDS = tuple(saved(picture(), kind) for kind in ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF", "PPM"))


@pytest.mark.filterwarnings("ignore")
@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=12),
    cut=st.integers(1, 10_000),
)
@settings(max_examples=300, deadline=None)
def test_damage_of_any_kind_gives_pixels_or_a_stated_error(seed, changes, cut):
    data = bytearray(seed)
    for place, value in changes:
        data[place % len(data)] = value
    try:
        pixels = decode(bytes(data[:cut]), limits=ImageLimits(max_pixels=1_000_000))
    except (UnreadableImage, ImageTooLarge):
        return
    assert pixels.ndim == 3
    assert pixels.shape[2] == 3
    assert pixels.dtype == np.uint8


def test_webp_keeps_the_picture_and_drops_the_metadata():
    exif = Image.Exif()
    exif[0x0112] = 1
    exif[0x010F] = "Camera"
    pixels = decode(saved(picture(), "JPEG", exif=exif, quality=95, subsampling=0))
    data = encode_webp(pixels, 80)
    with Image.open(io.BytesIO(data)) as again:
        assert not again.getexif()
        assert "icc_profile" not in again.info
    assert is_red(decode(data)[4, 8])


def test_grey_webp_is_grey_and_smaller():
    noise = np.random.default_rng(4).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    grey = encode_webp(noise, 60, grey=True)
    pixels = decode(grey).astype(int)
    assert np.ptp(pixels, axis=2).max() <= 3
    assert len(grey) < len(encode_webp(noise, 60))


def test_webp_refuses_what_it_cannot_express():
    with pytest.raises(ImageTooLarge, match="do not fit WebP"):
        encode_webp(np.zeros((1, WEBP_MAX_SIDE + 1, 3), dtype=np.uint8))


def tiff(*frames, **options):
    return saved(frames[0], "TIFF", save_all=True, append_images=list(frames[1:]), **options)


def marked(grey, size=(12, 8), kind=0):
    image = Image.new("L", size, grey)
    image.encoderinfo = {"tiffinfo": {254: kind}}
    return image


def test_every_page_of_a_tiff_is_counted_and_decoded():
    data = tiff(*(Image.new("L", (10 + grey, 20), grey) for grey in (10, 20, 30)))
    assert page_count(data) == 3
    assert [decode(data, page=number)[0, 0, 0] for number in range(3)] == [10, 20, 30]
    assert decode(data, page=2).shape == (20, 40, 3)
    assert decode(data)[0, 0, 0] == 10


def test_thumbnails_and_masks_in_a_tiff_are_no_pages():
    data = tiff(marked(10), marked(20, kind=1), marked(30, kind=4), marked(40, kind=2))
    assert page_count(data) == 2
    assert decode(data, page=1)[0, 0, 0] == 40


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_one_page(kind):
    data = saved(picture(), kind, save_all=True, append_images=[Image.new("RGB", (40, 20))])
    assert page_count(data) == 1


def test_too_many_pages_are_named_and_a_page_that_is_not_there_too():
    data = tiff(*[Image.new("L", (2, 2))] * 4)
    assert page_count(data, limits=ImageLimits(max_pages=4)) == 4
    with pytest.raises(ImageTooLarge, match="more than 3 pages"):
        page_count(data, limits=ImageLimits(max_pages=3))
    with pytest.raises(UnreadableImage):
        decode(data, page=4)


def test_each_page_of_a_tiff_keeps_to_the_limit_on_pixels():
    data = tiff(Image.new("L", (10, 10)), Image.new("L", (100, 100)))
    limits = ImageLimits(max_pixels=500)
    assert decode(data, limits=limits).shape == (10, 10, 3)
    with pytest.raises(ImageTooLarge):
        decode(data, limits=limits, page=1)


@given(st.integers(8, 400), st.binary(min_size=1, max_size=8))
@settings(max_examples=200)
def test_a_damaged_tiff_ends_in_pages_or_a_named_error(place, instead):
    data = bytearray(tiff(*[Image.new("L", (4, 4))] * 3))
    data[place : place + len(instead)] = instead
    try:
        assert 1 <= page_count(bytes(data)) <= 50
    except (UnreadableImage, ImageTooLarge) as error:
        assert error.remedy
