"""Questions answered from what was read, with evidence; what the document does not hold is not answered. Pure."""

from docferry_cloud.meaning.answer import MAX_QUESTION, Answerer, Found, answer
from docferry_cloud.meaning.filling import Filled, filled

__all__ = ["MAX_QUESTION", "Answerer", "Filled", "Found", "answer", "filled"]
