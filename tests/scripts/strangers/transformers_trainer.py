"""Fine-tune... well, train a very small GPT-2 from scratch with the HF Trainer."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, n, seq_len=16, vocab=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, vocab, (n, 1), generator=g)
        stride = torch.randint(1, 4, (n, 1), generator=g)
        self.ids = (start + stride * torch.arange(seq_len)) % vocab

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "labels": self.ids[i]}


def main():
    set_seed(42)
    config = GPT2Config(vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=32,
            num_train_epochs=3,
            learning_rate=3e-3,
            warmup_steps=5,
            eval_strategy="epoch",
            save_strategy="no",
            logging_steps=10,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = Trainer(model=model, args=args, train_dataset=RandomTokens(256), eval_dataset=RandomTokens(64, seed=1))
        result = trainer.train()
    print("train_loss", result.training_loss)


if __name__ == "__main__":
    main()
