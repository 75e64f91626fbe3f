"""Advantage actor-critic on a corridor: walk right to the goal."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class Corridor:
    """Positions 0..6, start in the middle; reward 1 at the right end, -1 at the left end, -0.02 per move."""

    def reset(self):
        self.position, self.moves = 3, 0
        return self.observe()

    def observe(self):
        return F.one_hot(torch.tensor(self.position), 7).float()

    def step(self, action):
        self.position += 1 if action == 1 else -1
        self.moves += 1
        if self.position == 6:
            return self.observe(), 1.0, True
        if self.position == 0:
            return self.observe(), -1.0, True
        return self.observe(), -0.02, self.moves >= 30


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(7, 32)
        self.action_head = nn.Linear(32, 2)
        self.value_head = nn.Linear(32, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def finish_episode(optimizer, log_probs, values, rewards, gamma=0.95):
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    policy_losses, value_losses = [], []
    for log_prob, value, R in zip(log_probs, values, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R.unsqueeze(0)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()


def main():
    torch.manual_seed(543)
    env, model = Corridor(), Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    running = 0.0
    for episode in range(1, 151):
        state, done = env.reset(), False
        log_probs, values, rewards = [], [], []
        while not done:
            probs, value = model(state)
            dist = Categorical(probs)
            action = dist.sample()
            state, reward, done = env.step(action.item())
            log_probs.append(dist.log_prob(action))
            values.append(value)
            rewards.append(reward)
        finish_episode(optimizer, log_probs, values, rewards)
        running = 0.95 * running + 0.05 * sum(rewards)
        if episode % 50 == 0:
            print(f"episode {episode}\trunning reward {running:.2f}")


if __name__ == "__main__":
    main()
