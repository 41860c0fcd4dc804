"""What rank a target gets when other items have exactly its score: the rules of `unsample.evidence._ties`."""

from unsample.evidence import TIE_RULES, TieRule, check_ties, rank_with_ties

__all__ = ["TIE_RULES", "TieRule", "check_ties", "rank_with_ties"]
