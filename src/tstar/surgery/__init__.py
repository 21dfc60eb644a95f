"""The output layer of any ``nn.Module``: find it, temper it, fold it away again."""

from tstar.surgery.finding import Head, find_head
from tstar.surgery.head import TemperedHead
from tstar.surgery.tempering import fold, temper, untemper

__all__ = ["Head", "TemperedHead", "find_head", "fold", "temper", "untemper"]
