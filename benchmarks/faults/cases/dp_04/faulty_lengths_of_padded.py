# Sensor episodes of different lengths: was there a burst? Packed sequences into an LSTM.
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Episodes(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.episodes, self.labels = [], []
        for index in range(count):
            steps = int(torch.randint(6, 40, (1,), generator=generator))
            episode = torch.randn(steps, 4, generator=generator)
            if index % 2:
                start = int(torch.randint(0, steps - 3, (1,), generator=generator))
                episode[start : start + 3] += 2.5
            self.episodes.append(episode)
            self.labels.append(index % 2)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.episodes[index], self.labels[index]


def collate(samples):
    episodes = pad_sequence([episode for episode, _ in samples], batch_first=True)
    lengths = torch.full((len(samples),), episodes.shape[1])
    return episodes, lengths, torch.tensor([label for _, label in samples])


class Detector(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lstm = nn.LSTM(4, width, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, episodes, lengths):
        packed = pack_padded_sequence(episodes, lengths, batch_first=True, enforce_sorted=False)  # <- fault
        _, (state, _) = self.lstm(packed)
        return self.out(state[0])


torch.manual_seed(8)
train = DataLoader(Episodes(800, 1), batch_size=40, shuffle=True, collate_fn=collate)
valid = DataLoader(Episodes(200, 2), batch_size=100, collate_fn=collate)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for episodes, lengths, labels in train:
        loss = nn.functional.cross_entropy(model(episodes, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(e, n).argmax(1) == y).sum().item() for e, n, y in valid)
    print(f"{epoch} loss {loss.item():.3f} accuracy {hits / 200:.3f}")
