"""The training step of gpt_bench.cpp in PyTorch, written as in nanoGPT: prints the median time in ms.

Where PyTorch multiplies matrices with OpenBLAS, that uses threads of its own: as many as there are cores,
unless OPENBLAS_NUM_THREADS says otherwise.
"""

import math
import os
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

B, T, C, H, LAYERS, V = 12, 64, 128, 4, 4, 65


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.qkv, self.o = nn.Linear(C, 3 * C, bias=False), nn.Linear(C, C, bias=False)
        self.up, self.down = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)
        self.register_buffer("hidden", torch.triu(torch.ones(T, T, dtype=torch.bool), 1))

    def attention(self, x):
        q, k, v = (part.view(B, T, H, C // H).transpose(1, 2) for part in self.qkv(x).split(C, dim=2))
        if hasattr(functional, "scaled_dot_product_attention"):
            heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(C // H)
            heads = scores.masked_fill(self.hidden, -math.inf).softmax(-1) @ v
        return self.o(heads.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(C)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids):
        x = self.token_embedding(ids) + self.position_embedding(torch.arange(T))
        return self.norm(self.blocks(x)) @ self.token_embedding.weight.t()


def main():
    torch.manual_seed(1)
    model = Gpt()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))
    ids, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    times = []
    for step in range(60):
        begin = time.perf_counter()
        loss = functional.cross_entropy(model(ids).view(-1, V), targets.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= 10:
            times.append(time.perf_counter() - begin)
    blas = os.environ.get("OPENBLAS_NUM_THREADS", "all cores")
    print(f"PyTorch {torch.__version__}, threads: {torch.get_num_threads()}, OpenBLAS's threads: {blas}: "
          f"{statistics.median(times) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
