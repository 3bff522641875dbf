"""The work of tokenizer_bench.cpp with the PyPI package `tokenizers`: prints the median times, in ms.

    python3 bench/peers/tokenizers_bpe.py [text file]

Without a file, it generates the same text as tokenizer_bench.cpp. Fovea learns and encodes on one thread;
with TOKENIZERS_PARALLELISM=false and RAYON_NUM_THREADS=1 in the environment, so does `tokenizers`.
"""

import statistics
import sys
import time

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers


def generated_text(size=1_000_000):
    """Words of 1 to 8 letters, short ones more often, from the generator of tokenizer_bench.cpp."""
    state, text = 1, bytearray()
    while len(text) < size:
        letters = 1
        while True:
            state = (state * 1664525 + 1013904223) % 2**32
            text.append(ord("a") + (state >> 24) % 16)
            if letters == 8 or (state >> 16) % 4 == 0:
                break
            letters += 1
        text += b" "
    return text.decode()


def median_ms(work, times=5):
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1e3


def train(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 512,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def main():
    text = open(sys.argv[1], encoding="utf-8", newline="").read() if len(sys.argv) > 1 else generated_text()
    tokenizer = train(text)
    print(f"tokenizers {tokenizers.__version__}, {len(text.encode()):,} bytes")
    print(f"train   {median_ms(lambda: train(text)):7.1f} ms")
    print(f"encode  {median_ms(lambda: tokenizer.encode(text)):7.1f} ms")
    print(f"ids     {len(tokenizer.encode(text).ids):,}")


if __name__ == "__main__":
    main()
