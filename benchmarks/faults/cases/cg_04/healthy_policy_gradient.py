"""Policy gradient with a Categorical, a value head and advantages; targets and predictions of equal shapes."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 32)
        self.policy = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)

    def forward(self, s):
        h = torch.tanh(self.body(s))
        return F.softmax(self.policy(h), dim=-1), self.value(h).squeeze(-1)


torch.manual_seed(3)
agent = ActorCritic()
opt = torch.optim.RMSprop(agent.parameters(), lr=1e-3)
for episode in range(30):
    states = torch.randn(25, 4)
    probs, values = agent(states)
    dist = Categorical(probs)
    actions = dist.sample()
    returns = (actions == (states[:, 0] > 0).long()).float()
    advantage = returns - values.detach()
    loss = -(dist.log_prob(actions) * advantage).mean() + F.smooth_l1_loss(values, returns) - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
