"""What the words of a line say about it: company, address, telephone, paper work. General knowledge, no names."""

from __future__ import annotations

import functools
import re

from docferry.fields.dates import find_dates
from docferry.fields.folding import REMEMBERED, plain, words

_GLUED_LETTERS = 10
"""A run of as many letters may be several words without their spaces: words of five letters count inside it."""


class _Words:
    """A set of words or short phrases that is looked for at word boundaries, the long ones also inside glued runs.

    Args:
        table: Words parted by white space; `_` stands for an optional space inside a phrase.
        more: A regular expression for what is no plain word; matched anywhere.
        glued: Shorter words that are safe inside a run all the same.
    """

    def __init__(self, table: str, more: str = "", glued: str = "") -> None:
        entries = [re.escape(entry).replace("_", " ?") for entry in sorted(table.split(), key=len, reverse=True)]
        long = [entry for entry in entries if len(entry) >= 5] + glued.split()
        self._bounded = re.compile(rf"(?<![A-Z\d])(?:{'|'.join(entries)})(?![A-Z\d])" + (f"|{more}" if more else ""))
        self._inside = re.compile("|".join(long))

    def found_in(self, text: str) -> bool:
        """Whether any of the words occurs in `text` (any case)."""
        upper = plain(text)
        if self._bounded.search(upper):
            return True
        return any(len(run) >= _GLUED_LETTERS and self._inside.search(run) for run in re.findall(r"[A-Z&.']+", upper))

    def removed_from(self, upper: str) -> str:
        """`upper` (already plain) with the words at word boundaries taken out."""
        return self._bounded.sub(" ", upper)


_SUFFIX = re.compile(
    r"(?<![A-Z])(?:SENDIRIAN BERHAD|BERHAD|BHD|S/B|LTD|LIMITED|LLC|LLP|PLT|INC|CORP|CORPORATION|GMBH|MBH"
    r"|CO\.? ?KG|AG|B\.?V|N\.?V|S\.?A\.?R\.?L|S\.?A\.?S|PTY|PTE|CO\.(?! ?(?:REG|NO|RFG))|COMPANY(?! ?(?:REG|NO)))"
    r"\.?(?![A-Z])"
    r"|S[D0O]N\.?\s?B[HN]D\.?(?![A-Z])"
    r"|公司|商店|商行|酒店|超市|便利店|便利商店|餐厅|饭店|药店|药房|门市|专卖店|店(?![名员长])"
)
_BUSINESS = _Words(
    """
    ENTERPRISE TRADING RESTAURANT RESTORAN RESTAURANTS KEDAI SYARIKAT PERNIAGAAN PERUSAHAAN CAFE CAFÉ BISTRO
    KOPITIAM BAKERY BAKERIES CONFECTIONERY MART MINIMART SUPERMARKET HYPERMARKET MARKET SHOP STORE STORES
    STATIONERY HARDWARE PHARMACY FARMASI CLINIC KLINIK HOTEL FLORIST BOOKSTORE BOOKSTORES BOOKS ELECTRICAL
    ELECTRONICS MACHINERY MOTOR MOTORS AUTO FOOD FOODS FOODSTUFF KITCHEN HOUSE CORNER BAR PUB GRILL PIZZA COFFEE
    TEA NOODLE SEAFOOD VEGETARIAN SALON BOUTIQUE FASHION GALLERY STUDIO CENTRE CENTER SERVICES SERVICE HOLDINGS
    GROUP INDUSTRIES MARKETING DISTRIBUTOR SUPPLY SUPPLIES PARKING PETROL STATION PETROLEUM GIFT GIFTS DECO
    FURNITURE PRINTING ADVERTISING DELI DINER EATERY WORKSHOP TYRE OPTICAL JEWELLERY TOYS SPORTS BEAUTY SPA
    CINEMA MUSEUM BROS BROTHERS SONS HYPERMART EMPORIUM PASARAYA CASH_&_CARRY
    """,
    more=r"餐饮|超市|餐厅|酒楼|茶|咖啡|小吃|面馆|书店|药|商贸|贸易|百货",
    glued="CAFE MART",
)
_ADDRESS = _Words(
    """
    JALAN JLN JL LORONG LRG LEBUH LEBUHRAYA PERSIARAN TAMAN TMN KAMPUNG KG BANDAR BDR SEKSYEN SEK SECTION MUKIM
    DAERAH LOT BLOK BLOCK BLK TINGKAT LEVEL FLOOR UNIT WISMA MENARA PLAZA KOMPLEKS BANGUNAN BATU KM PUSAT
    DATARAN KAWASAN PERINDUSTRIAN MEDAN DESA BUKIT SUNGAI PT PTD STREET ST ROAD RD AVENUE AVE LANE LN DRIVE DR
    BOULEVARD BLVD HIGHWAY HWY COURT SQUARE PARK SUITE STE BUILDING BLDG MALL CITY TOWN TOWER STRASSE STR PLATZ
    WEG ALLEE RUE PLACE STRAAT LAAN OFF GROUND
    """,
    more=r"STRASSE\b|STRAßE\b|STRAAT\b|STR\.|[省市区县镇乡路街道巷弄楼室栋幢](?!场)|\d号|大厦|广场",
    glued="JLN TMN",
)
_REGION = _Words(
    """
    SELANGOR KUALA_LUMPUR K.L KL W.P WP WILAYAH JOHOR PENANG PULAU_PINANG PERAK PAHANG KEDAH KELANTAN TERENGGANU
    MELAKA MALACCA NEGERI_SEMBILAN SEREMBAN SABAH SARAWAK PERLIS LABUAN PUTRAJAYA MALAYSIA SINGAPORE DARUL_EHSAN
    DARUL_TAKZIM DARUL_RIDZUAN D.E S.D.E JAYA BAHRU USA U.S.A UNITED_STATES UNITED_KINGDOM ENGLAND LONDON
    DEUTSCHLAND GERMANY FRANCE NEDERLAND NETHERLANDS CANADA AUSTRALIA HONG_KONG CHINA TAIWAN JAPAN INDIA
    """,
    more="中国|北京|上海|天津|重庆",
)
_POSTCODE = re.compile(
    r"(?<![\d-])\d{5}(?![\d-])\.?,?(?:\s*[A-Z])?|\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b|\b\d{4} ?[A-Z]{2}\b(?=\s+[A-Z])"
)
_ADDRESS_START = re.compile(
    r"^\W*(?:NO\b|NO\.|N[O0]\s?[.,:]?\s?\d|LOT|UNIT|SUITE|BLOCK|BLK|BLOK|LEVEL|GROUND|\d+(?:ST|ND|RD|TH) FLOOR"
    r"|[A-Z]{0,3}[-.]?\d+[A-Z]?\s*[,&.\-/]|(?!\d{5})\d+[A-Z]?\s+[A-Z]|JALAN|JLN|PT\b|PTD\b|G[-. ]?\d|S?\d+[A-Z]?,"
    r"|(?!\d{5})\d+[A-Z]?(?:JALAN|JLN|LORONG)|地址|ADDRESS|ADD\b|.{1,4}[省市区县])"
)
_PAPERWORK = _Words(
    """
    TEL TELP TELEPHONE TELEFON PHONE FAX HP H/P MOBILE WHATSAPP WHATSAPPS HOTLINE CALL EMAIL E-MAIL WWW HTTP
    HTTPS GST SST VAT ROC REG REGN REGISTRATION CO_NO CO._NO CO_REG CO._REG CO_RFG CO._RFG COMPANY_NO
    COMPANY_REG INVOICE RECEIPT RESIT DATE TARIKH CASHIER TIME TABLE BILL TAX SALES MEMBER SERVER STAFF COUNTER
    ORDER SLIP TRANS POS DOC DOCUMENT QTY DESCRIPTION ITEM PRICE AMOUNT TOTAL WELCOME THANK OWNED_BY OPERATED_BY
    CUSTOMER ID_NO TAX_ID BRN
    """,
    more=(
        r"\b(?:TEL|FAX)[\s:.]*[\d+(]|\bCASH (?!&|AND)|[\w.]+@[\w.]+"
        r"|电话|热线|传真|税号|识别号|校验码|密码区|机器编号|发票|日期|收银|时间|单号|网址|欢迎|谢谢|小票|桌号"
        r"|\.COM\b(?! )|\bTAX ?INV|\bGST ?(?:ID|NO|REG)|\bTEL ?(?:NO|/)|THANK ?YOU"
    ),
)
_CONTACT = re.compile(
    r"[\s(/,;|\-]*(?:\b(?:TEL|TELP|TELEPHONE|TELEFON|PHONE|FAX|H/?P|MOBILE|HOTLINE|E-?MAIL|GST|SST|VAT)\b"
    r"|\b(?:CO\.? ?REG|REG|ROC|INVOICE|WWW)\b|\bTEL[\s:.]*\d|\bTEL ?NO\b|\bGST ?(?:ID|NO|REG)|电\s?话|传\s?真|税号|邮编"
    r"|\s*(?<!\d)\+?\(?0\d{1,3}\)?[-\s]?\d{6,8}\W*$|\s\d{1,2}:\d{2}(?:\W|$))"
)
_REGISTRATION = re.compile(
    r"\s*[\[(]\s*(?:COMPANY|CO|REG(?:N|ISTRATION)?|ROC|NO|BRN|\W)*\s*[A-Z]{0,3}\s?\d[\dA-Z]{3,}\s?[-.]?\s?[A-Z\d]{0,2}"
    r"\s*(?:[\])].*|\W*)$"
    r"|\s+(?:CO\.?\s?(?:REG|NO)|REG\.?\s?NO|ROC\s?NO).*$|\s+[A-Z]{0,2}\d{5,}\s?-\s?[A-Z]\b.*$",
    re.IGNORECASE,
)
_REGISTRATION_LINE = re.compile(
    r"^\W*(?:COMPANY|CO|REG(?:N|ISTRATION)?|RFG|ROC|NO|BRN|ID|\W)*\s*[A-Z]{0,3}(?:\d{4,}[\dA-Z]*\s?[-.]\s?[A-Z\d]{1,2}|\d{6,}[A-Z]?)\W*$"
)
_NUMBERS_ONLY = re.compile(r"^[^\w]*(?:\d[^\w]*){7,}$")
_SELLER = re.compile(
    r"^\W*(?:(?:店\s?名|商\s?户(?:\s?名\s?称)?|门\s?店|公\s?司(?:\s?名\s?称)?|(?:销\s?售\s?方|销\s?货\s?单\s?位)(?:\s?名\s?称)?|名?\s?称"
    r"|MERCHANT(?:\s?NAME)?|SOLD BY|SELLER|VENDOR|SUPPLIER)\s*[::]|销\s?售\s?方\s+(?:名\s?称\s*[::])?)\s*"
)
_SELLER_WORDS = re.compile(r"店\s?名|商\s?户|门\s?店|销\s?售\s?方|销\s?货|MERCHANT|SOLD BY|SELLER|VENDOR|SUPPLIER")
_BUYER = re.compile(
    r"购\s?买\s?方|购\s?货|买\s?方|客\s?户"
    r"|\b(?:BILL(?:ED)? ?TO|SHIP ?TO|SOLD TO|CUSTOMER|BUYER|DELIVER TO|ATTN|MESSRS|CLIENT|INVOICE TO)\b"
)
_ADDRESS_LABEL = re.compile(
    r"^\W*(?:地\s?址(?:、?\s?电\s?话)?|(?:HQ\s?|HEAD ?OFFICE\s?|SHOP\s?)?ADD(?:RESS|R)?|ALAMAT|ANSCHRIFT)\s*[.::]\s*"
)


@functools.lru_cache(maxsize=REMEMBERED)
def has_company_suffix(text: str) -> bool:
    """A legal form or a shop's type word: SDN BHD, LTD, GMBH, 公司, 店."""
    return bool(_SUFFIX.search(plain(text)))


def ends_with_company_suffix(text: str) -> bool:
    """Whether the text ends with the legal form."""
    upper = plain(text).rstrip(" .,)-")
    return any(match.end() >= len(upper) - 1 for match in _SUFFIX.finditer(upper))


@functools.lru_cache(maxsize=REMEMBERED)
def has_business_word(text: str) -> bool:
    """A word for a trade: TRADING, RESTAURANT, MART, 餐饮."""
    return _BUSINESS.found_in(text)


@functools.lru_cache(maxsize=REMEMBERED)
def is_generic_name(text: str) -> bool:
    """No name by itself: only trade words and legal forms (`STATIONERY SDN BHD`), or a continuation (`& SONS`)."""
    upper = plain(text).strip()
    if upper[:1] in "&+" or upper.startswith(("AND ", "OF ", "DAN ")):
        return True
    rest = _BUSINESS.removed_from(_SUFFIX.sub(" ", upper))
    return not any(len(word) > 1 for word in words(re.sub(r"\(.*?\)", " ", rest)))


@functools.lru_cache(maxsize=REMEMBERED)
def has_address_word(text: str) -> bool:
    """A word for a place: JALAN, ROAD, LOT, FLOOR, 路, 号."""
    return _ADDRESS.found_in(text)


@functools.lru_cache(maxsize=REMEMBERED)
def has_region(text: str) -> bool:
    """The name of a state or a country."""
    return _REGION.found_in(text)


@functools.lru_cache(maxsize=REMEMBERED)
def has_postcode(text: str) -> bool:
    """Five digits standing alone, or a British or Dutch code."""
    return bool(_POSTCODE.search(plain(text)))


@functools.lru_cache(maxsize=REMEMBERED)
def starts_like_address(text: str) -> bool:
    """The beginning of an address: NO. 5, LOT, UNIT, 12,"""
    return bool(_ADDRESS_START.match(plain(text)))


@functools.lru_cache(maxsize=REMEMBERED)
def is_paperwork(text: str) -> bool:
    """Telephone, tax id, document number, date and the like: neither a merchant nor an address."""
    return _PAPERWORK.found_in(text) or bool(_NUMBERS_ONLY.match(text)) or bool(find_dates(text))


@functools.lru_cache(maxsize=REMEMBERED)
def is_registration(text: str) -> bool:
    """A line that holds only a registration number."""
    return bool(_REGISTRATION_LINE.match(plain(text)))


@functools.lru_cache(maxsize=REMEMBERED)
def names_buyer(text: str) -> bool:
    """The label of the buyer's block."""
    return bool(_BUYER.search(plain(text)))


@functools.lru_cache(maxsize=REMEMBERED)
def names_seller(text: str) -> bool:
    """A label that says the seller's name follows."""
    return bool(_SELLER_WORDS.search(plain(text)))


def without_contact(text: str) -> str:
    """`text` up to the first telephone, tax or registration label; all of it if there is none."""
    upper = plain(text)
    match = _CONTACT.search(upper) if len(upper) == len(text) else None
    return text[: match.start()].rstrip() if match else text


def without_address_label(text: str) -> str:
    """`text` without a leading `地址:` or `Address:`."""
    upper = plain(text)
    match = _ADDRESS_LABEL.match(upper) if len(upper) == len(text) else None
    return text[match.end() :] if match else text


def has_address_label(text: str) -> bool:
    """Whether the text begins with `地址:` or `Address:`."""
    return bool(_ADDRESS_LABEL.match(plain(text)))


def merchant_name(text: str) -> str:
    """`text` without a leading label and a trailing registration number."""
    upper = plain(text)
    match = _SELLER.match(upper) if len(upper) == len(text) else None
    bare = text[match.end() :] if match else text
    return _REGISTRATION.sub("", bare).strip(" *-=:;,~_|") if bare else ""
