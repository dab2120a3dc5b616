"""Attention computed in parts is attention; golden values are torch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [export]: pip install -e '.[export]'")

from engines.export import layers  # noqa: E402

SCALE = 8**-0.5


def random_heads(length: int, seed: int):
    return torch.randn(2, 3, length, 8, generator=torch.Generator().manual_seed(seed))


def expected(query, key, value, bias=None):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)


@pytest.mark.parametrize("most_scores", [1, 30, 121, 122, 363, 10_000])
def test_attention_in_parts_is_attention(monkeypatch, most_scores):
    monkeypatch.setattr(layers, "MOST_SCORES", most_scores)
    query, key, value = random_heads(11, 0) * SCALE, random_heads(11, 1), random_heads(11, 2)
    assert torch.allclose(layers.attention(query, key, value), expected(query, key, value), atol=1e-6)


def test_scores_held_at_once_stay_below_the_limit(monkeypatch):
    monkeypatch.setattr(layers, "MOST_SCORES", 40)
    held = []
    whole = layers._attention

    def noted(query, key, value, bias):
        held.append(query.shape[2] * key.shape[2])
        return whole(query, key, value, bias)

    monkeypatch.setattr(layers, "_attention", noted)
    layers.attention(random_heads(11, 0), random_heads(11, 1), random_heads(11, 2))
    assert max(held) <= 40 and sum(held) == 11 * 11


def test_attention_with_a_bias_stays_whole(monkeypatch):
    monkeypatch.setattr(layers, "MOST_SCORES", 1)
    query, key, value = random_heads(5, 0) * SCALE, random_heads(7, 1), random_heads(7, 2)
    bias = torch.zeros(2, 3, 5, 7)
    bias[..., 3:] = layers.MASKED
    seen = expected(query, key[:, :, :3], value[:, :, :3])
    assert torch.allclose(layers.attention(query, key, value, bias), seen, atol=1e-6)
