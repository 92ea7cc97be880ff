"""Hand-set starting weights for the field scorer (log-odds against "absent"); data moves them only where it says so."""

from __future__ import annotations

PRIORS: dict[str, dict[str, float]] = {
    "total": {
        "bias": -4.0, "label_payable": 6.0, "label_total": 5.0, "label_inclusive": 5.0, "label_amount": 2.5,
        "label_subtotal": 1.5, "label_tax": -2.0, "label_service": -3.0, "label_rounding": -4.0,
        "label_discount": -3.0, "label_quantity": -1.0, "label_cash": 1.0, "label_change": -3.0,
        "label_other": -1.0, "label_none": -1.0, "label_nearby": -0.5, "summary": -3.0, "decimals_0": -2.0,
        "decimals_1": -0.5, "decimals_2": 1.0, "currency": 0.7, "zero": -3.0, "implied": -1.0, "small": -1.0,
        "last_in_row": 1.0, "alone_in_row": 0.5, "tall": 1.0, "depth": 0.5, "largest": 0.5, "repeated": 1.0,
        "paid_minus_change": 2.0, "subtotal_plus_tax": 1.0, "after_rounding": 1.5, "before_rounding": -1.0,
        "items_sum": 0.7, "above_rounding": 0.7, "below_cash": 0.7,
    },
    "date": {
        "bias": 1.0, "word_left": 2.0, "word_above": 1.0, "other_date": -3.0, "time": 1.0, "first": 1.0,
        "later": -1.0, "repeated": 0.5, "year_unlikely": -4.0, "style_compact": -1.5, "style_digits": -2.5,
        "glued": -1.5, "style_named": 0.5, "style_cjk": 1.0,
    },
    "merchant": {
        "bias": -2.0, "first": 1.5, "second": 0.5, "lower": -3.0, "joined": -1.5, "joined_suffix_last": 1.0,
        "joined_uneven": -1.0, "joined_continues": 2.0, "joined_wide_gap": -1.0, "generic": -1.0,
        "below_generic": -1.5, "suffix": 2.0, "suffix_last": 1.0, "business": 1.0, "address": -2.0,
        "paperwork": -3.0, "registration": -4.0, "bracketed": -1.0, "digits": -3.0, "short": -2.0, "tall": 0.7,
        "person": -0.5, "below_company": -0.5, "below_suffix": -1.0, "below_address": 1.0,
        "below_registration": 1.0, "seller": 2.0, "buyer": -3.0,
    },
    "address": {
        "bias": -2.0, "label": 3.0, "start": 1.5, "start_like": 1.0, "start_company": -2.0,
        "company_lines": -2.0, "unlike": -1.0, "inner_unlike": 0.5, "last_like": 0.5, "postcode": 1.0,
        "postcode_late": 0.5, "region_last": 0.7, "comma_last": -1.0, "stop_last": 0.5, "bracketed": -1.0,
        "paperwork": -2.0, "second_start": -0.3, "above_like": -1.0, "above_start": -0.5, "above_company": 1.0,
        "above_comma": -1.0, "below_like": -1.5, "below_region": -0.7, "below_paperwork": 0.7, "gap": -1.0,
        "deep": -1.0, "buyer": -3.0,
    },
}  # fmt: skip
