"""What a build is asked for, and what it yields. Does not import torch."""
