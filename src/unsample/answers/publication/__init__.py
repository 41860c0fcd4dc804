"""From what papers print, HR@10 against 99 negatives, to full-catalogue estimates and bounds."""

from unsample.answers.publication._numbers import Printed
from unsample.answers.publication._published import Published, published

__all__ = ["Printed", "Published", "published"]
