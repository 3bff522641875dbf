"""Checks the attention layer of gradcheck_bench.cpp with PyTorch: prints the median time, in ms."""

import statistics
import time

import torch
from torch import nn

B, T, C, H = 2, 7, 24, 4


def main():
    torch.manual_seed(1)
    layer = nn.MultiheadAttention(C, H, batch_first=True).double()
    hidden = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    names = [name for name, _ in layer.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    x = torch.randn(B, T, C, dtype=torch.float64, requires_grad=True)

    def attend(x, *parameters):
        return torch.nn.utils.stateless.functional_call(
            layer, dict(zip(names, parameters)), (x, x, x), {"attn_mask": hidden, "need_weights": False}
        )[0]

    times = []
    for _ in range(5):
        begin = time.perf_counter()
        torch.autograd.gradcheck(attend, (x, *values))
        times.append(time.perf_counter() - begin)
    print(f"PyTorch {torch.__version__}: {statistics.median(times) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
