"""Derives small shapes from the text of a problem file that declares none. Does not import torch."""
