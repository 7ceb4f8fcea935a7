"""Operations that only CUDA has, done by others on the host. A None in the answer is a result whose values
are left alone: what only the backward kernel reads."""

import torch

MOST_SCORES = 1 << 22


def _scores(query, key, bias, causal, scale):
    """Scaled scores with their mask, and the scale."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    rows, columns = query.size(-2), key.size(-2)
    if query[..., 0].numel() * columns > MOST_SCORES:
        raise NotImplementedError
    scores = (query @ key.transpose(-2, -1)) * scale
    if bias is not None:
        scores = scores + bias
    if causal:
        mask = torch.ones(rows, columns, dtype=torch.bool, device="cpu").tril()
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores, scale


def _grouped(query, other):
    """Keys or values for as many heads as the queries have."""
    groups = query.size(-3) // max(other.size(-3), 1)
    return other if groups <= 1 else other.repeat_interleave(groups, dim=-3)


def _attend(query, key, value, bias, causal, scale):
    query32, key32, value32 = (t.float() for t in (query, key, value))
    scores, _ = _scores(query32, _grouped(query32, key32), bias, causal, scale)
    weights = scores.softmax(-1).nan_to_num()  # a row that is masked whole
    return (weights @ _grouped(query32, value32)).to(query.dtype)


def flash(query, key, value, dropout=0.0, causal=False, debug=False, *, scale=None):
    return (_attend(query, key, value, None, causal, scale),)


def efficient(query, key, value, bias, with_sums, dropout=0.0, causal=False, *, scale=None):
    return (_attend(query, key, value, bias, causal, scale),)


def cudnn(query, key, value, bias, with_sums, dropout=0.0, causal=False, debug=False, *, scale=None):
    return (_attend(query, key, value, bias, causal, scale),)


def _attend_backward(grad, query, key, value, bias, causal, scale):
    types = query.dtype, key.dtype, value.dtype
    heads = key.size(-3)
    grad, query, key, value = (t.float() for t in (grad, query, key, value))
    many_keys, many_values = _grouped(query, key), _grouped(query, value)
    scores, scale = _scores(query, many_keys, bias, causal, scale)
    weights = scores.softmax(-1).nan_to_num()
    by_value = weights.transpose(-2, -1) @ grad
    by_weight = grad @ many_values.transpose(-2, -1)
    by_score = weights * (by_weight - (by_weight * weights).sum(-1, keepdim=True))
    by_query = by_score @ many_keys * scale
    by_key = by_score.transpose(-2, -1) @ query * scale

    def ungrouped(gradient):
        return gradient.unflatten(-3, (heads, -1)).sum(-3) if gradient.size(-3) != heads else gradient

    answers = by_query, ungrouped(by_key), ungrouped(by_value)
    return tuple(answer.to(kind) for answer, kind in zip(answers, types))


def flash_backward(grad, query, key, value, out, sums, *rest, scale=None):
    return _attend_backward(grad, query, key, value, None, rest[5], scale)


def efficient_backward(grad, query, key, value, bias, out, *rest, scale=None):
    causal = rest[5] if len(rest) > 5 else False
    return _attend_backward(grad, query, key, value, bias, causal, scale)


def cudnn_backward(grad, query, key, value, out, sums, seed, offset, bias, *rest, scale=None):
    return _attend_backward(grad, query, key, value, bias, rest[5], scale)


def batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon):
    return torch.native_batch_norm(x, weight, bias, mean, variance, training, momentum, epsilon)


def batch_norm_backward(x, grad, weight, mean, variance, save_mean, save_inverse, epsilon, reserve):
    mask = (True, True, True)
    return torch.ops.aten.native_batch_norm_backward.default._op(
        grad, x, weight, None, None, save_mean, save_inverse, True, epsilon, mask
    )


TRANSLATED = {
    "aten::_scaled_dot_product_flash_attention": flash,
    "aten::_scaled_dot_product_efficient_attention": efficient,
    "aten::_scaled_dot_product_cudnn_attention": cudnn,
    "aten::_scaled_dot_product_flash_attention_backward": flash_backward,
    "aten::_scaled_dot_product_efficient_attention_backward": efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": cudnn_backward,
    "aten::cudnn_batch_norm": batch_norm,
    "aten::cudnn_batch_norm_backward": batch_norm_backward,
}

# Which arguments those of them need that do not need all: the rest is what only the device's kernel reads.
NEEDED = {
    "aten::_scaled_dot_product_flash_attention_backward": frozenset({0, 1, 2, 3}),
    "aten::_scaled_dot_product_efficient_attention_backward": frozenset({0, 1, 2, 3, 4}),
    "aten::_scaled_dot_product_cudnn_attention_backward": frozenset({0, 1, 2, 3, 8}),
    "aten::cudnn_batch_norm_backward": frozenset({0, 1, 2, 5, 6}),
}
