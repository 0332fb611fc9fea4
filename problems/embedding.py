"""Embedding: a row of a learned table for each token.

    out[t, :] = weight[tokens[t], :]

    tokens: (TOKENS,)             int64      in [0, VOCABULARY)
    weight: (VOCABULARY, WIDTH)   float32
    out:    (TOKENS, WIDTH)       float32
"""

import torch
from torch import nn

LEVEL = 1
TAGS = ("gather", "memory-bound")

VOCABULARY = 32000
WIDTH = 2048
TOKENS = 32768

# "odd": a prime width, so that rows begin at every distance from a multiple of 16 bytes.
SHAPES = {
    "small": {"VOCABULARY": 96, "WIDTH": 640, "TOKENS": 72},
    "odd": {"VOCABULARY": 61, "WIDTH": 599, "TOKENS": 83},
}

# Vocabularies and hidden sizes of published models: decoding of 1 to 256 sequences, prefill, and batches of sentences.
# Each workload has a table of its own. Of the largest ones a GPU has a part, with the vocabulary in parallel.
WORKLOADS = [
    {"name": "BERT base 1x13", "VOCABULARY": 30522, "WIDTH": 768, "TOKENS": 13},
    {"name": "BERT base 32x128", "VOCABULARY": 30522, "WIDTH": 768, "TOKENS": 4096},
    {"name": "CLIP text 64x77", "VOCABULARY": 49408, "WIDTH": 512, "TOKENS": 4928},
    {"name": "GPT-2 XL decode 16", "VOCABULARY": 50257, "WIDTH": 1600, "TOKENS": 16},
    {"name": "GPT-2 XL prefill 1024", "VOCABULARY": 50257, "WIDTH": 1600, "TOKENS": 1024},
    {"name": "Qwen 2.5 0.5B decode 256", "VOCABULARY": 151936, "WIDTH": 896, "TOKENS": 256},
    {"name": "Qwen 2.5 0.5B prefill 2047", "VOCABULARY": 151936, "WIDTH": 896, "TOKENS": 2047},
    {"name": "Llama 3.2 1B prefill 8192", "VOCABULARY": 128256, "WIDTH": 2048, "TOKENS": 8192},
    {"name": "Llama 3 8B on 8 GPUs, decode 1", "VOCABULARY": 16032, "WIDTH": 4096, "TOKENS": 1},
    {"name": "Llama 3 8B on 8 GPUs, decode 33", "VOCABULARY": 16032, "WIDTH": 4096, "TOKENS": 33},
    {"name": "DeepSeek V3 on 8 GPUs, prefill 4096", "VOCABULARY": 16160, "WIDTH": 7168, "TOKENS": 4096},
]


class Model(nn.Module):
    """Looks up the embedding of each token."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embeddings, of shape (tokens, width), of tokens of shape (tokens,)."""
        return self.embedding(tokens)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(VOCABULARY, (TOKENS,))]


def get_init_inputs() -> list[object]:
    return [VOCABULARY, WIDTH]


def work() -> dict[str, int]:
    """What the lookup needs: the tokens and each row that occurs among them read once, the result written once.

    Of VOCABULARY rows a given one is missed by all tokens with the probability (1 - 1 / VOCABULARY) ** TOKENS; the
    number of those that occur varies little around its mean.
    """
    occurring = int(VOCABULARY * (1 - (1 - 1 / VOCABULARY) ** TOKENS))
    return {"bytes": 8 * TOKENS + 4 * WIDTH * (occurring + TOKENS), "flops": 0}
