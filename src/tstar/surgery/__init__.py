"""The output layer of any ``nn.Module``: find it, temper it, fold it away again."""

from tstar.surgery.finding import Head, find_head, fold, temper, untemper
from tstar.surgery.head import TemperedHead

__all__ = ["Head", "TemperedHead", "find_head", "fold", "temper", "untemper"]
