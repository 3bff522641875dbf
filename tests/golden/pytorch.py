#!/usr/bin/env python3
"""What PyTorch computes with fixed weights: values and gradients of attention, blocks and models.

    python3 tests/golden/pytorch.py > tests/golden/pytorch.json

Any PyTorch from 1.13 on will do (Debian: python3-torch). Everything is f64. Weights and inputs are multiples
of 1/64, so that f32 holds them exactly as well. Parameters have Fovea's names and layouts; the functions
below translate them into PyTorch's by ops, so that gradients come back under the same names.
"""

import json
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

try:
    from torch.func import functional_call
except ImportError:
    from torch.nn.utils.stateless import functional_call

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(4)


def draw(*shape, scale=0.5):
    return torch.tensor(np.round(rng.normal(0, scale, shape) * 64) / 64 + 0.0)  # + 0.0: no negative zeros


def draw_ids(vocabulary, *shape):
    return torch.tensor(rng.integers(0, vocabulary, shape))


# --- Parameters, as Fovea has them ---


def attention_parameters(C, prefix=""):
    shapes = {"Wq": (C, C), "Wk": (C, C), "Wv": (C, C), "Wo": (C, C), "bq": (C,), "bk": (C,), "bv": (C,), "bo": (C,)}
    return {prefix + name: draw(*shape) for name, shape in shapes.items()}


def norm_parameters(C, prefix):
    return {prefix + "gain": 1 + draw(C, scale=0.2), prefix + "bias": draw(C)}


def block_parameters(C, hidden, prefix=""):
    return {
        **norm_parameters(C, prefix + "norm1."),
        **attention_parameters(C, prefix + "attention."),
        **norm_parameters(C, prefix + "norm2."),
        prefix + "mlp.up.W": draw(C, hidden),
        prefix + "mlp.up.b": draw(hidden),
        prefix + "mlp.down.W": draw(hidden, C),
        prefix + "mlp.down.b": draw(C),
    }


def model_parameters(V, context, C, hidden, layers):
    parameters = {"token_embedding.table": draw(V, C), "position_embedding.table": draw(context, C)}
    for i in range(layers):
        parameters.update(block_parameters(C, hidden, f"blocks.{i}."))
    return parameters


def part(parameters, prefix):
    return {name[len(prefix):]: p for name, p in parameters.items() if name.startswith(prefix)}


# --- The same, as PyTorch's modules have them: y = x W^T + b, and three projections in one ---


def as_attention(p, prefix=""):
    return {
        prefix + "in_proj_weight": torch.cat([p["Wq"].T, p["Wk"].T, p["Wv"].T]),
        prefix + "in_proj_bias": torch.cat([p["bq"], p["bk"], p["bv"]]),
        prefix + "out_proj.weight": p["Wo"].T,
        prefix + "out_proj.bias": p["bo"],
    }


def as_block(p, prefix=""):
    return {
        **as_attention(part(p, "attention."), prefix + "self_attn."),
        prefix + "linear1.weight": p["mlp.up.W"].T,
        prefix + "linear1.bias": p["mlp.up.b"],
        prefix + "linear2.weight": p["mlp.down.W"].T,
        prefix + "linear2.bias": p["mlp.down.b"],
        prefix + "norm1.weight": p["norm1.gain"],
        prefix + "norm1.bias": p["norm1.bias"],
        prefix + "norm2.weight": p["norm2.gain"],
        prefix + "norm2.bias": p["norm2.bias"],
    }


def causal(T):
    return torch.ones(T, T).triu(1).bool()  # True: hidden


def padding(lengths, T):
    return torch.arange(T)[None, :] >= torch.tensor(lengths)[:, None]  # True: hidden


# --- Cases ---


def plain(x):
    if isinstance(x, torch.Tensor):
        return {"shape": list(x.shape), "values": x.detach().flatten().tolist()}
    return x


def case(config, parameters, inputs, f, **rest):
    leaves = {name: t for name, t in {**parameters, **inputs}.items() if t.is_floating_point()}
    for leaf in leaves.values():
        leaf.requires_grad_()
    y = f(parameters, **inputs)
    cotangent = draw(*y.shape, scale=1)
    gradients = dict(zip(leaves, torch.autograd.grad(y, list(leaves.values()), cotangent)))
    found = dict(parameters=parameters, inputs=inputs, output=y, cotangent=cotangent, gradients=gradients)
    for name, value in found.items():
        found[name] = {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else plain(value)
    return dict(config=config, **rest, **found)


def self_attention(C=6, H=3, B=2, T=5):
    module = nn.MultiheadAttention(C, H, batch_first=True)

    def f(p, x):
        options = dict(attn_mask=causal(T), need_weights=False)
        return functional_call(module, as_attention(p), (x, x, x), options)[0]

    return case(dict(d_model=C, heads=H), attention_parameters(C), dict(x=draw(B, T, C)), f)


def cross_attention(C=6, H=2, B=2, queries=5, keys=7, lengths=(7, 4)):
    module = nn.MultiheadAttention(C, H, batch_first=True)

    def f(p, x, context):
        options = dict(key_padding_mask=padding(lengths, keys), need_weights=False)
        return functional_call(module, as_attention(p), (x, context, context), options)[0]

    inputs = dict(x=draw(B, queries, C), context=draw(B, keys, C))
    return case(dict(d_model=C, heads=H), attention_parameters(C), inputs, f, lengths=lengths)


def block(norm_place, mlp, C=6, H=3, hidden=7, B=2, T=5):
    module = nn.TransformerEncoderLayer(
        C, H, hidden, dropout=0, activation=mlp, batch_first=True, norm_first=norm_place == "pre"
    )

    def f(p, x):
        return functional_call(module, as_block(p), (x,), dict(src_mask=causal(T)))

    config = dict(d_model=C, heads=H, d_hidden=hidden, norm_place=norm_place, mlp=mlp)
    return case(config, block_parameters(C, hidden), dict(x=draw(B, T, C)), f)


def gpt(V=11, context=7, C=6, H=2, layers=2, B=2, T=5):
    """GPT-2 in plain ops."""

    def split(x):
        return x.view(B, T, H, C // H).transpose(1, 2)

    def attend(p, x):
        q, k, v = (split(x @ p["W" + n] + p["b" + n]) for n in "qkv")
        scores = q @ k.transpose(-2, -1) / (C // H) ** 0.5
        weights = scores.masked_fill(causal(T), float("-inf")).softmax(-1)
        heads = (weights @ v).transpose(1, 2).reshape(B, T, C)
        return heads @ p["Wo"] + p["bo"]

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))

    def norm(p, x):
        return F.layer_norm(x, (C,), p["gain"], p["bias"])

    def f(p, ids):
        x = p["token_embedding.table"][ids] + p["position_embedding.table"][:T]
        for i in range(layers):
            b = part(p, f"blocks.{i}.")
            x = x + attend(part(b, "attention."), norm(part(b, "norm1."), x))
            h = gelu(norm(part(b, "norm2."), x) @ b["mlp.up.W"] + b["mlp.up.b"])
            x = x + h @ b["mlp.down.W"] + b["mlp.down.b"]
        return norm(part(p, "norm."), x) @ p["token_embedding.table"].T

    parameters = {**model_parameters(V, context, C, 4 * C, layers), **norm_parameters(C, "norm.")}
    config = dict(vocabulary=V, context=context, d_model=C, heads=H, layers=layers)
    return case(config, parameters, dict(ids=draw_ids(V, B, T)), f)


def encoder(norm_place, V=13, context=7, C=6, H=2, hidden=5, layers=2, B=2, T=5, lengths=(5, 3)):
    one = nn.TransformerEncoderLayer(
        C, H, hidden, dropout=0, activation="gelu", batch_first=True, norm_first=norm_place == "pre"
    )
    module = nn.TransformerEncoder(one, layers, norm=nn.LayerNorm(C) if norm_place == "pre" else None)

    def f(p, ids):
        translated = {}
        for i in range(layers):
            translated.update(as_block(part(p, f"blocks.{i}."), f"layers.{i}."))
        if norm_place == "pre":
            translated.update({"norm.weight": p["norm.gain"], "norm.bias": p["norm.bias"]})
        x = p["token_embedding.table"][ids] + p["position_embedding.table"][:T]
        return functional_call(module, translated, (x,), dict(src_key_padding_mask=padding(lengths, T)))

    parameters = model_parameters(V, context, C, hidden, layers)
    if norm_place == "pre":
        parameters.update(norm_parameters(C, "norm."))
    config = dict(vocabulary=V, context=context, d_model=C, heads=H, layers=layers, d_hidden=hidden)
    config["norm_place"] = norm_place
    return case(config, parameters, dict(ids=draw_ids(V, B, T)), f, lengths=lengths)


def main():
    cases = {
        "self-attention, causal": self_attention(),
        "cross-attention, padded": cross_attention(),
        "block, pre-norm, gelu": block("pre", "gelu"),
        "block, pre-norm, relu": block("pre", "relu"),
        "block, post-norm, gelu": block("post", "gelu"),
        "block, post-norm, relu": block("post", "relu"),
        "gpt": gpt(),
        "encoder, pre-norm, padded": encoder("pre"),
        "encoder, post-norm, padded": encoder("post"),
    }
    text = json.dumps(dict(pytorch=torch.__version__, cases=cases), separators=(",", ":"))
    # One tensor a line.
    print(text.replace('},"', '},\n"'))
    print(f"{len(text)} characters", file=sys.stderr)


main()
