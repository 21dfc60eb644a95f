"""Networks by name: the paper's, with every width scaled together, and those of three libraries.

===========================  ======================================================================
name                         network
===========================  ======================================================================
``resnet10``                 one basic block per stage, [64, 128, 256, 512]·M/512 channels
``vgg9``                     the eight convolutions of VGG configuration A, each with BN and ReLU
``pyramidnet10``             four basic blocks, channels growing additively to M
``…-1d``                     the same for signals (N×C×L)
``vit4``                     patches of 4×4 pixels, four blocks of attention of width M
``convnext4``                two ConvNeXt blocks of width M/2, two of width M
``mixer4``                   patches of 4×4 pixels, four MLP-Mixer blocks of width M
``mlp``                      two hidden layers of width M, each with BN and ReLU, for vectors (N×D)
``cnn4``, ``cnn4-1d``        four convolutions with ReLU, no norm anywhere
``mlp-no-norm``              two hidden layers of width M, no norm
``torchvision/NAME``         ``torchvision.models.get_model(NAME)``
``timm/NAME``                ``timm.create_model(NAME)``
``transformers/NAME``        a classifier of text: a name or a local folder (in a study: below the
                             data root); ``forward`` takes token ids and returns the logits
===========================  ======================================================================

The paper names its first three networks without spelling them out; these readings are ours. Each
ends in global average pooling and one ``nn.Linear`` called ``classifier`` on M features. Images may
have any size from 8 pixels on.
"""

from __future__ import annotations

from tstar.lab.models.registry import OWN, build, fitting_model, names, paper_init

__all__ = ["OWN", "build", "fitting_model", "names", "paper_init"]
