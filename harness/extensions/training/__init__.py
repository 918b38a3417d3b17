"""Episodes for trainers: `TrainingEnv` plays a spec with the trainer's own model in chosen seats.

from harness.extensions.training import TrainingEnv

with TrainingEnv("tiny", learn=["default"]) as env:
    for rollout in env.rollouts(generate, group_size=8):
        for conversation in rollout.conversations:
            conversation.messages, conversation.reward, conversation.samples()
"""

from .conversations import AgentConversation, ReplyStep, TokenSample
from .environment import EnvTask, TrainingEnv
from .game import SteppedRollout
from .groups import Advantages, advantages
from .learner import ByPolicy, Generate, PendingTurn, TrainerError
from .rewards import NoRewardError, PaidEpisode, RewardRule, Rewards
from .rollout import Rollout

__all__ = [
    "Advantages",
    "AgentConversation",
    "ByPolicy",
    "EnvTask",
    "Generate",
    "NoRewardError",
    "PaidEpisode",
    "PendingTurn",
    "ReplyStep",
    "RewardRule",
    "Rewards",
    "Rollout",
    "SteppedRollout",
    "TokenSample",
    "TrainerError",
    "TrainingEnv",
    "advantages",
]
