"""LoRA without a task type freezes the tempered head and saves neither statistics nor T.

packages: peft
outcome: warns "The output layer was frozen after it was tempered"
"""

import torch
import toy
from peft import LoraConfig, get_peft_model

import tstar

adapted = get_peft_model(tstar.temper(toy.mlp(), 4.0), LoraConfig(r=2, target_modules=["0"]))
optimizer = torch.optim.SGD([p for p in adapted.parameters() if p.requires_grad], lr=0.1)
toy.train(adapted, optimizer, toy.points(), epochs=1)
