"""Questions answered from what was read, with evidence; what the document does not hold is not answered. Pure."""

from docferry_cloud.meaning.answer import MAX_QUESTION, Found, answer

__all__ = ["MAX_QUESTION", "Found", "answer"]
