"""Builds a small GPT, whole or as pipeline stages, and synthetic tokens to train it on."""

import torch

VOCABULARY, WIDTH, CONTEXT = 64, 32, 16


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        normed = self.norm(x)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device)
        x = x + self.attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
        return x + self.feed_forward(x)


def part(blocks, is_first=True, is_last=True):
    layers = [torch.nn.Embedding(VOCABULARY, WIDTH)] if is_first else []
    layers += [Block() for _ in range(blocks)]
    layers += [torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY)] if is_last else []
    return torch.nn.Sequential(*layers)


def loss(output, target):
    return torch.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def batch(step, size, device):
    """Returns inputs and targets of a step. Each token follows from the one before, so the loss can approach 0."""
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(VOCABULARY, (size, 1), generator=generator)
    tokens = torch.cat([(tokens * 5**i + i) % VOCABULARY for i in range(CONTEXT + 1)], 1).to(device)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
