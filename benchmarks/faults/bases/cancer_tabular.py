import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def build_model(n_features):
    return nn.Sequential(
        nn.Linear(n_features, 48),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(48, 24),
        nn.BatchNorm1d(24),
        nn.ReLU(),
        nn.Linear(24, 1),
    )


def get_data(seed):
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    scaler = StandardScaler()
    X_train = scaler.fit_transform(X_train)
    X_val = scaler.transform(X_val)
    train_ds = TensorDataset(torch.FloatTensor(X_train), torch.FloatTensor(y_train))
    val_ds = TensorDataset(torch.FloatTensor(X_val), torch.FloatTensor(y_val))
    train_dl = DataLoader(train_ds, batch_size=32, shuffle=True, drop_last=True)
    return train_dl, DataLoader(val_ds, batch_size=64)


def train(model, loader, loss_fn, optimizer):
    model.train()
    total = 0
    for xb, yb in loader:
        optimizer.zero_grad()
        logits = model(xb).squeeze(1)
        loss = loss_fn(logits, yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def validate(model, loader, loss_fn):
    model.eval()
    total, correct, n = 0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            logits = model(xb).squeeze(1)
            total += loss_fn(logits, yb).item() * len(yb)
            correct += ((logits > 0) == yb.bool()).sum().item()
            n += len(yb)
    return total / n, correct / n


def main():
    torch.manual_seed(21)
    train_dl, val_dl = get_data(seed=21)
    model = build_model(30)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(15):
        train_loss = train(model, train_dl, loss_fn, optimizer)
        scheduler.step()
        val_loss, val_acc = validate(model, val_dl, loss_fn)
        print(f"Epoch {epoch + 1:2d}  train {train_loss:.4f}  val {val_loss:.4f}  acc {val_acc:.4f}")


main()
