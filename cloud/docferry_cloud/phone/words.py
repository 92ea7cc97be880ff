"""The pages' words, in the languages they speak."""

from __future__ import annotations

ENGLISH, CHINESE = "en", "zh"

WORDS: dict[str, dict[str, str]] = {
    ENGLISH: {
        "other": "中文",
        "fields": "Details",
        "copy": "Copy",
        "copied": "Copied",
        "check": "please check",
        "show": "show on the page",
        "tables": "Tables",
        "table": "Table",
        "text": "Text",
        "more": "There is more: it is in the files.",
        "exports": "Files",
        "version": "Version",
        "page": "Page",
        "picture": "Page {} of the document",
        "done": "Done",
        "failed": "This could not be read",
        "cancelled": "Cancelled",
        "sending": "Being sent",
        "pending": "Waiting its turn",
        "running": "Being read",
        "unknown": "Unknown",
        "reload": "It goes on by itself as soon as there is more.",
        "problem": "This page cannot be shown",
        "gone": "This link leads nowhere any more. It was opened on another phone, its time is over, or it was taken"
        " back. Scan the code again, or ask for a new one.",
        "nothing": "Nothing was read.",
        "ask": "Ask about this document",
        "question": "Your question",
        "send": "Ask",
        "asking": "Looking …",
        "no_answer": "The document does not say.",
        "ask_failed": "The question could not be answered. Try again in a moment.",
        "notify": "Tell me when something changes",
        "notified": "You will be told.",
        "notify_failed": "This browser cannot be told.",
        "claim": "Open your document",
        "claim_more": "The first phone that opens it keeps it. Nobody else can then.",
        "open": "Open it here",
        "start": "Your documents",
        "latest": "Latest documents",
        "drop": "Choose or drop a photo",
        "dropping": "Being sent …",
        "drop_failed": "This cannot be taken.",
        "start_more": "Scan the code on a kiosk's screen to see your document here.",
        "offline": "There is no connection",
        "offline_more": "Your document is shown again as soon as there is one.",
        "again": "Try again",
    },
    CHINESE: {
        "other": "English",
        "fields": "明细",
        "copy": "复制",
        "copied": "已复制",
        "check": "请核对",
        "show": "在页面上显示",
        "tables": "表格",
        "table": "表格",
        "text": "文本",
        "more": "还有更多内容，请查看文件。",
        "exports": "文件",
        "version": "版本",
        "page": "页",
        "picture": "文件第 {} 页",
        "done": "已完成",
        "failed": "无法识别此文件",
        "cancelled": "已取消",
        "sending": "正在发送",
        "pending": "等待处理",
        "running": "正在识别",
        "unknown": "未知",
        "reload": "一有新内容，本页会自动更新。",
        "problem": "无法显示此页",
        "gone": "此链接已失效：它已在另一部手机上打开、已过期或已被收回。请重新扫码，或索取新的链接。",
        "nothing": "未识别到内容。",
        "ask": "就此文件提问",
        "question": "您的问题",
        "send": "提问",
        "asking": "正在查找……",
        "no_answer": "文件中没有相关内容。",
        "ask_failed": "暂时无法回答，请稍后再试。",
        "notify": "有变化时通知我",
        "notified": "届时会通知您。",
        "notify_failed": "此浏览器无法接收通知。",
        "claim": "打开您的文件",
        "claim_more": "最先打开的手机拥有它，其他人将无法再打开。",
        "open": "在此打开",
        "start": "您的文件",
        "latest": "最近的文件",
        "drop": "选择照片或拖放到此处",
        "dropping": "正在发送……",
        "drop_failed": "无法接收此文件。",
        "start_more": "扫描自助机屏幕上的二维码，即可在此查看您的文件。",
        "offline": "没有网络连接",
        "offline_more": "恢复连接后会再次显示您的文件。",
        "again": "重试",
    },
}

FIELD_NAMES = {
    "merchant": "商家",
    "address": "地址",
    "date": "日期",
    "total": "合计",
    "invoice_number": "发票号码",
    "currency": "币种",
    "subtotal": "小计",
    "tax": "税额",
}
"""The core fields' names in Chinese; others are shown as they are."""


def field_name(name: str, language: str) -> str:
    """A field's name as people read it."""
    if language == CHINESE and name in FIELD_NAMES:
        return FIELD_NAMES[name]
    return name.replace("_", " ")


def language_of(accept: str, wished: str = "") -> str:
    """The language that is wished, or that an Accept-Language header prefers among those spoken here, or English."""
    if wished in WORDS:
        return wished
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
