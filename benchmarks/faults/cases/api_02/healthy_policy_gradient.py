"""Reinforcement learning: acting without gradients, then an update on the states that were met."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(12):
    state = torch.randn(4)
    states, actions, rewards = [], [], []
    for _ in range(20):
        with torch.no_grad():
            logits = policy(state.unsqueeze(0))
        action = torch.distributions.Categorical(logits=logits[0]).sample()
        states.append(state)
        actions.append(action)
        rewards.append(1.0 if action.item() == int(state[0] > 0) else -1.0)
        state = 0.8 * state + 0.6 * torch.randn(4)
    chances = torch.distributions.Categorical(logits=policy(torch.stack(states)))
    loss = -(chances.log_prob(torch.stack(actions)) * torch.tensor(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, sum(rewards))
