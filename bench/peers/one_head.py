"""The training step of one_head_bench.cpp in PyTorch: prints the median time of a step, in microseconds."""

import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

B, T, C, V = 64, 16, 32, 70


class OneHeadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, C)
        self.q, self.k, self.v, self.o = (nn.Linear(C, C, bias=False) for _ in range(4))
        self.output = nn.Linear(C, V)
        rate = torch.exp(torch.arange(0, C, 2) * (-math.log(10000.0) / C))
        angle = torch.arange(T)[:, None] * rate
        self.register_buffer("positions", torch.stack((angle.sin(), angle.cos()), -1).reshape(T, C))
        self.register_buffer("hidden", torch.triu(torch.ones(T, T, dtype=torch.bool), 1))

    def forward(self, ids):
        x = self.embedding(ids) + self.positions
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / math.sqrt(C)
        weights = scores.masked_fill(self.hidden, -math.inf).softmax(-1)
        return self.output(x + self.o(weights @ self.v(x)))


def main():
    torch.manual_seed(1)
    model = OneHeadModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    times = []
    for step in range(1100):
        begin = time.perf_counter()
        loss = functional.cross_entropy(model(ids).view(-1, V), targets.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= 100:
            times.append(time.perf_counter() - begin)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads: {statistics.median(times) * 1e6:.0f} us")


if __name__ == "__main__":
    main()
