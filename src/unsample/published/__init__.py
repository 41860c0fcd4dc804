"""From what papers print, HR@10 against 99 negatives, to full-catalogue estimates and bounds."""

from unsample.published._front import Published, published
from unsample.published._numbers import Printed

__all__ = ["Printed", "Published", "published"]
