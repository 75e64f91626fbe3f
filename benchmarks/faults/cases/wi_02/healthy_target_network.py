"""Q-learning on a small corridor: the target network is synchronised with the online one from time to time."""

import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
LENGTH = 8


def q_network():
    return nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))


def encode(state):
    return nn.functional.one_hot(torch.tensor(state), LENGTH).float()


online, target = q_network(), q_network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
memory = deque(maxlen=2000)
updates = 0
for episode in range(40):
    state = 0
    for t in range(30):
        with torch.no_grad():
            greedy = int(online(encode(state)).argmax())
        action = random.randrange(2) if random.random() < 0.3 else greedy
        nxt = min(max(state + (1 if action else -1), 0), LENGTH - 1)
        done = nxt == LENGTH - 1
        memory.append((state, action, float(done), nxt, done))
        state = nxt
        if len(memory) >= 64 and t % 4 == 0:
            s, a, r, n, d = zip(*random.sample(memory, 32))
            with torch.no_grad():
                future = target(encode(list(n))).max(1).values
            goal = torch.tensor(r) + 0.95 * future * (1 - torch.tensor(d).float())
            value = online(encode(list(s))).gather(1, torch.tensor(a).unsqueeze(1)).squeeze(1)
            loss = nn.functional.smooth_l1_loss(value, goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            updates += 1
            if updates % 20 == 0:
                target.load_state_dict(online.state_dict())
        if done:
            break
