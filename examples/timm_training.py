"""timm's conventions: its optimizer factory leaves the inserted norm without decay, its EMA carries T along,
and its reparameterize_model folds the head."""

import timm
import torch
import torch.nn.functional as F
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3, reparameterize_model
from torch.utils.data import DataLoader

import tstar
from digits import accuracy, data
from tstar.output_layer import tempered_heads


def main(samples: int = 1797, epochs: int = 5) -> float:
    train_set, held_out = data(samples)
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", in_chans=1, num_classes=10)
    head = tstar.find_head(model)
    T = tstar.temperature(num_features=head.num_features, num_classes=head.num_classes)
    model = tstar.temper(model, T)

    optimizer = create_optimizer_v2(model, opt="sgd", lr=0.1, momentum=0.9, weight_decay=1e-4)
    norm = tempered_heads(model)[head.path].norm
    undecayed = {
        id(p) for g in optimizer.param_groups if g["weight_decay"] == 0 for p in g["params"]
    }
    assert {id(norm.weight), id(norm.bias)} <= undecayed

    ema = ModelEmaV3(model, decay=0.9)
    for _ in range(epochs):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            ema.update(model)

    averaged = ema.module.eval()
    plain = reparameterize_model(
        averaged
    )  # calls TemperedHead.fuse; tstar.fold(averaged) does the same
    assert not tempered_heads(plain)
    x = held_out.tensors[0]
    assert torch.allclose(plain(x), averaged(x), atol=1e-4)
    return accuracy(plain, held_out)


if __name__ == "__main__":
    print(f"accuracy {main():.3f}")
