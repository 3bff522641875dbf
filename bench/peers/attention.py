"""The work of attention_bench.cpp in PyTorch: prints the median time of a forward and backward pass, in ms.

It is done twice: with matmul and softmax ("composed"), and with PyTorch's own scaled dot-product attention
("built in"), whose name depends on the version.
"""

import math
import statistics
import time

import torch
from torch.nn import functional

H, D = 4, 32


def composed(q, k, v, hidden):
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v


def built_in(q, k, v, hidden):
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return functional._scaled_dot_product_attention(q, k, v, is_causal=True)[0]


def measure(function, T):
    q, k, v = (torch.randn(1, H, T, D, requires_grad=True) for _ in range(3))
    dy = torch.randn(1, H, T, D)
    hidden = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    times = []
    while len(times) < 4 or sum(times) < 1:
        begin = time.perf_counter()
        torch.autograd.grad(function(q, k, v, hidden), (q, k, v), dy)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) * 1e3


def main():
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads")
    for T in (1024, 2048, 4096, 8192):
        print(f"T = {T}: composed {measure(composed, T):.1f} ms, built in {measure(built_in, T):.1f} ms")


if __name__ == "__main__":
    main()
