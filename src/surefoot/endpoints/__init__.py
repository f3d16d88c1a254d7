"""Clients for language models: chat and decision endpoints, within deadlines and budgets.

Importing this is light; the ``openai`` package is loaded when the first endpoint is made.
"""

from __future__ import annotations

from surefoot.endpoints.adapt import as_chat
from surefoot.endpoints.budget import Budget
from surefoot.endpoints.chat import ChatEndpoint
from surefoot.endpoints.decision import DecisionEndpoint
from surefoot.endpoints.records import ChatLike, ChatReply, DecisionReply, Message, TokenLogprob, Usage

__all__ = [
    "Budget",
    "ChatEndpoint",
    "ChatLike",
    "ChatReply",
    "DecisionEndpoint",
    "DecisionReply",
    "Message",
    "TokenLogprob",
    "Usage",
    "as_chat",
]
