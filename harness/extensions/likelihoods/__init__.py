"""Turns that ask how likely given texts are to a model: the form of the reply, and what engines answer it with."""

from .engine import ComputesLikelihoods, Continuation, LikelihoodRequest, mock_scores
from .form import Likelihoods, likelihoods_of, shares, sums

__all__ = [
    "ComputesLikelihoods",
    "Continuation",
    "LikelihoodRequest",
    "Likelihoods",
    "likelihoods_of",
    "mock_scores",
    "shares",
    "sums",
]
