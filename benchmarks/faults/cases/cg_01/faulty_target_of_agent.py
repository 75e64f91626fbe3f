"""Deep Q-learning on a line of cells: walk to the right end; a target net keeps the bootstrapped values steady."""
import random
from collections import deque

import torch
from torch import nn

CELLS = 12


class Learner:
    def __init__(self, gamma=0.95, every=100):
        self.online = nn.Sequential(nn.Linear(CELLS, 64), nn.ReLU(), nn.Linear(64, 2))
        self.target = self.online  # <- fault
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=2e-3)
        self.gamma, self.every, self.count = gamma, every, 0

    def act(self, cell, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.online(encoded([cell])).argmax())

    def update(self, batch):
        cells, actions, rewards, following, ends = zip(*batch)
        value = self.online(encoded(cells)).gather(1, torch.tensor(actions)[:, None])[:, 0]
        with torch.no_grad():
            later = self.target(encoded(following)).max(dim=1).values
        wanted = torch.tensor(rewards) + self.gamma * later * (1 - torch.tensor(ends))
        loss = nn.functional.smooth_l1_loss(value, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.count += 1
        if self.count % self.every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def encoded(cells):
    return torch.eye(CELLS)[list(cells)]


def main():
    random.seed(1)
    torch.manual_seed(1)
    learner, memory = Learner(), deque(maxlen=2000)
    for episode in range(120):
        cell, steps, loss = 0, 0, 0.0
        while cell < CELLS - 1 and steps < 60:
            action = learner.act(cell, max(0.05, 1 - episode / 60))
            following = min(max(cell + (1 if action else -1), 0), CELLS - 1)
            end = float(following == CELLS - 1)
            memory.append((cell, action, end - 0.01, following, end))
            cell, steps = following, steps + 1
            if len(memory) >= 200 and steps % 2 == 0:
                loss = learner.update(random.sample(memory, 32))
        if episode % 20 == 19:
            print(f"episode {episode + 1}: {steps} steps, loss {loss:.4f}")


if __name__ == "__main__":
    main()
