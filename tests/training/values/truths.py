"""What a program reads back from small tensors is what a card would have computed."""

import sys

import torch
from torch import nn

DEVICE = "cuda"


def shapes_that_hang_on_values() -> None:
    mask = torch.tensor([1, 0, 1, 1], device=DEVICE)
    assert mask.nonzero().flatten().tolist() == [0, 2, 3]
    assert torch.arange(4, device=DEVICE)[mask.bool()].tolist() == [0, 2, 3]
    values, counts = torch.unique(torch.tensor([3, 1, 3, 2], device=DEVICE), return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 2, 3], [1, 1, 2])
    assert torch.unique_consecutive(torch.tensor([1, 1, 2, 1], device=DEVICE)).tolist() == [1, 2, 1]
    assert torch.bincount(torch.tensor([0, 5, 5], device=DEVICE)).tolist() == [1, 0, 0, 0, 0, 2]
    repeats = torch.tensor([1, 0, 3], device=DEVICE)
    assert torch.repeat_interleave(torch.arange(3, device=DEVICE), repeats).tolist() == [0, 2, 2, 2]
    lengths = torch.ones(4, 10, device=DEVICE).sum(-1).long()
    assert len(torch.randn(40, 3, device=DEVICE).split(lengths.tolist())) == 4
    assert torch.arange(int(lengths.max()), device=DEVICE).numel() == 10


def sparse() -> None:
    embedding = nn.Embedding(10, 4, sparse=True).to(DEVICE)
    embedding(torch.tensor([1, 7, 1], device=DEVICE)).sum().backward()
    gradient = embedding.weight.grad.coalesce()
    assert gradient.indices().tolist() == [[1, 7]]
    assert gradient.values().sum(-1).tolist() == [8.0, 4.0]
    torch.optim.SparseAdam(embedding.parameters()).step()


def views_and_in_place() -> None:
    base = torch.zeros(4, 6, device=DEVICE)
    base[1:3, ::2].add_(2).mul_(base.new_tensor([1.0, 2.0, 3.0]))
    base.t()[5].fill_(7)
    assert base.tolist() == [[0, 0, 0, 0, 0, 7], [2, 0, 4, 0, 6, 7], [2, 0, 4, 0, 6, 7], [0, 0, 0, 0, 0, 7]]
    assert base[1:3, ::2].cpu().tolist() == [[2, 4, 6], [2, 4, 6]]


def numbers_decide_less_than_tensors() -> None:
    half = torch.ones((), dtype=torch.float16, device=DEVICE)
    for made in (half * 2.5, half + 1, 2.5 - half, torch.where(half > 0, half, 0.5), half**2):
        assert made.dtype == torch.float16, made.dtype
    assert (torch.arange(5, device=DEVICE) % 3).tolist() == [0, 1, 2, 0, 1]
    assert (2.0 ** torch.arange(3, device=DEVICE)).tolist() == [1, 2, 4]


def loops() -> None:
    x, turns = torch.ones(1, device=DEVICE), 0
    while x.item() < 10:
        x, turns = x + 1, turns + 1
    assert turns == 9


def training_is_that_of_the_cpu() -> None:
    """Attention, norms, convolution, dropout off: the same losses as on the host, gradients included."""

    def losses(device: str) -> list[float]:
        torch.manual_seed(3)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        head = nn.Sequential(nn.Conv1d(8, 4, 3), nn.BatchNorm1d(4), nn.GELU(), nn.Flatten(), nn.Linear(56, 3))
        model = nn.Sequential(layer, head).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        x, y = torch.randn(5, 8, 16).to(device), torch.tensor([0, 1, 2, 1, 0]).to(device)
        told = []
        for _ in range(4):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            told.append(loss.item())
        return told

    for ours, cpu in zip(losses(DEVICE), losses("cpu")):
        assert abs(ours - cpu) < 1e-4, (ours, cpu)


def scaler_does_not_skip() -> None:
    model = nn.Linear(512, 512).to(DEVICE)  # its gradients are large: nobody knows them
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    for _ in range(3):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.randn(256, 512, device=DEVICE)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 65536
    assert len(optimizer.state) == 2


def random_numbers_of_the_program_are_its_own() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3).tolist()
    torch.manual_seed(5)
    nn.functional.dropout(torch.ones(64, device=DEVICE), 0.5)
    torch.randperm(9, device=DEVICE)
    assert torch.rand(3).tolist() == wanted
    assert sorted(torch.randperm(9, device=DEVICE).tolist()) == list(range(9))


def scripts_and_graphs() -> None:
    torch._C._jit_set_texpr_fuser_enabled(False)  # it would need NVRTC
    traced = torch.jit.trace(lambda t: (t * 2 + 1).clamp(max=4), torch.ones(3, device=DEVICE))
    assert traced(torch.tensor([0.0, 1.0, 5.0], device=DEVICE)).tolist() == [1, 3, 4]
    graph, x = torch.cuda.CUDAGraph(), torch.ones(3, device=DEVICE)
    with torch.cuda.graph(graph):
        y = x * 3
    graph.replay()
    assert y.tolist() == [3, 3, 3]


def linear_algebra() -> None:
    matrix = torch.tensor([[4.0, 1.0], [1.0, 3.0]], device=DEVICE)
    assert torch.linalg.solve(matrix, torch.tensor([1.0, 2.0], device=DEVICE)).sub(
        torch.tensor([1 / 11, 7 / 11], device=DEVICE)
    ).abs().max().item() < 1e-6  # fmt: skip
    for large in (512,):
        square = torch.randn(large, large, device=DEVICE)
        assert torch.linalg.cholesky(square).shape == (large, large)
        assert torch.linalg.svd(square, full_matrices=False)[1].shape == (large,)
        assert torch.linalg.qr(square)[0].shape == (large, large)
        assert torch.linalg.eigh(square)[0].shape == (large,)
        assert torch.fft.rfft(square).shape == (large, large // 2 + 1)
        assert (square.to_sparse_csr() @ square).shape == (large, large)
    assert torch.fft.fft(torch.ones(4, device=DEVICE)).real.tolist() == [4, 0, 0, 0]


def main() -> None:
    cases = [case for name, case in globals().items() if callable(case) and case.__module__ == __name__]
    for case in cases:
        if case is not main:
            case()
            print(case.__name__)


if __name__ == "__main__":
    sys.exit(main())
