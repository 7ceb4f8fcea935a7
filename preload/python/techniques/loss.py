"""The loss in pieces."""

from .refusal import number


def chunked_cross_entropy(scene, options):
    """torch.nn.functional.cross_entropy, a chunk of the rows at a time, each recomputed in backward: what is
    kept of a chunk is its slice of the logits, which is part of them."""
    torch = scene.torch
    chunks = number(options, "chunks", 8)
    functional = torch.nn.functional
    whole = functional.cross_entropy

    def cross_entropy(input, target, *arguments, **keywords):
        plain = not arguments and set(keywords) <= {"ignore_index", "reduction"}
        if not plain or input.dim() != 2 or target.dim() != 1 or input.shape[0] < chunks:
            return whole(input, target, *arguments, **keywords)
        if keywords.get("reduction", "mean") not in ("mean", "sum"):
            return whole(input, target, **keywords)
        from torch.utils.checkpoint import checkpoint

        ignored = keywords.get("ignore_index", -100)

        def part(rows, labels):
            return whole(rows.float(), labels, ignore_index=ignored, reduction="sum")

        pairs = zip(input.chunk(chunks), target.chunk(chunks))
        total = sum(checkpoint(part, rows, labels, use_reentrant=False) for rows, labels in pairs)
        if keywords.get("reduction", "mean") == "sum":
            return total
        return total / (target != ignored).sum()

    functional.cross_entropy = cross_entropy
