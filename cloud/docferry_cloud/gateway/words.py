"""The result page's words, in the languages it speaks."""

from __future__ import annotations

ENGLISH, CHINESE = "en", "zh"

WORDS: dict[str, dict[str, str]] = {
    ENGLISH: {
        "state": "State",
        "fields": "Fields",
        "name": "Name",
        "value": "Value",
        "normalized": "Normalized",
        "confidence": "Confidence",
        "tables": "Tables",
        "text": "Text",
        "exports": "Export",
        "version": "Version",
        "page": "Page",
        "done": "finished",
        "failed": "failed",
        "cancelled": "cancelled",
        "sending": "waiting for pictures",
        "pending": "waiting for a worker",
        "running": "being read",
        "unknown": "unknown",
        "reload": "The document is not finished. Load this page again in a moment.",
        "problem": "This page cannot be shown",
        "nothing": "Nothing was read.",
    },
    CHINESE: {
        "state": "状态",
        "fields": "字段",
        "name": "名称",
        "value": "值",
        "normalized": "规范值",
        "confidence": "置信度",
        "tables": "表格",
        "text": "文本",
        "exports": "导出",
        "version": "版本",
        "page": "页",
        "done": "已完成",
        "failed": "失败",
        "cancelled": "已取消",
        "sending": "等待图片",
        "pending": "等待处理",
        "running": "正在识别",
        "unknown": "未知",
        "reload": "文档尚未处理完毕，请稍后刷新本页。",
        "problem": "无法显示此页",
        "nothing": "未识别到内容。",
    },
}


def language_of(accept: str) -> str:
    """The language that an Accept-Language header prefers among those spoken here; English where it prefers none."""
    best, weight = ENGLISH, 0.0
    for part in accept[:1000].split(","):
        tag, _, rest = part.strip().partition(";")
        primary = tag.strip().lower().partition("-")[0]
        if primary not in WORDS:
            continue
        given = _weight(rest)
        if given > weight:
            best, weight = primary, given
    return best


def _weight(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 0.0
