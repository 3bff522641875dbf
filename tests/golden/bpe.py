"""Writes what bpe_test.cpp compares with: a vocabulary trained by the PyPI package `tokenizers` on bpe/text.txt,
as GPT-2's two files (vocab.json, merges.txt), and the ids that it gives to many texts (texts.json).

    pip install tokenizers && python3 tests/golden/bpe.py
"""

import json
import random
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

FOLDER = Path(__file__).parent / "bpe"
MERGES = 512
END = "<|endoftext|>"

WRITTEN = [
    "",
    " ",
    "a",
    "The fovea is the small spot of the eye that sees sharply.",
    "  two spaces,   three,    four at the end    ",
    "a \n b\n\n c\r\n\t\td \n\n\n  e\n",
    "I'm you're he's we've they'll she'd isn't 'tis 'sit I'M WE'LL it''s ' s 'st",
    "don’t it’s ‘quoted’",
    "0 12 345 6,789.0 1e-5 0x7f ١٢٣ १२३ ๑๒๓ 一二三 ½ ² Ⅳ ④ 3rd a1b2",
    "snake_case CamelCase kebab-case a.b(c)[d]{e} != <= >= && || //",
    "Größe, Übung, là où, mañana",
    "Глаз видит. Το μάτι. العين ترى، העין רואה.",
    "आँख देखती है। ตาเห็น 眼睛看见。目が見て、心がわかる。눈이 보고",
    "👁️👀 👩‍🔬👨‍👩‍👧‍👦 🇩🇪1️⃣🎯",
    "e\u0301a\u0308\u0323 \u0301alone x\u20dd",
    "\u00a0no-break\u2003em\u3000wide\u2028line\u2029paragraph\u0085next\u1680ogham\u202f\u205f",
    "\u180evowel separator \u200bzero \u200d\ufeff width \u001c\u001d\u001e\u001f controls \x00\x01\x7f",
    "\U0001d400\U0001d7d8\U00020000\U000e0001\U0010fffd\ufffd\ue000",
    " " * 40 + "x" + "\n" * 30,
    "a" * 70,
    "abcabcabcabababcbcbc" * 3,
    END,
    "one" + END + "two",
]


def random_texts(count, alphabet, rng):
    return ["".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 40))) for _ in range(count)]


def assigned():
    """Characters that both sides know, whatever their age: those of Unicode 3.2."""
    known = unicodedata.ucd_3_2_0
    return [c for c in map(chr, range(0x110000)) if known.category(c) not in ("Cn", "Cs", "Co")]


def main():
    text = (FOLDER / "text.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=1 + 256 + MERGES,
        min_frequency=2,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.model.save(str(FOLDER))
    # Read again, so that END is a token like any other: a text that says it does not mean it.
    plain = Tokenizer(models.BPE.from_file(str(FOLDER / "vocab.json"), str(FOLDER / "merges.txt")))
    plain.pre_tokenizer = tokenizer.pre_tokenizer

    rng = random.Random(7)
    everyday = " '\n\t.,!?-aeioustrnldhmvéß019яμ目👀\u0301\u00a0"
    texts = WRITTEN + text.split("\n\n")
    texts += random_texts(100, everyday, rng) + random_texts(100, assigned(), rng)
    golden = {
        "tokenizers": tokenizers.__version__,
        "texts": [{"text": t, "ids": plain.encode(t).ids} for t in texts],
    }
    with open(FOLDER / "texts.json", "w", encoding="utf-8") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
