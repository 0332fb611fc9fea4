"""scaled_dot_product_attention over gathered pages, with the query heads of a group as its queries.

PyTorch's fused kernels take no page table, so keys and values are gathered first, padded to the longest sequence, and a
mask hides the padding. Query heads that share keys are further queries of one head, so keys needn't be repeated.
"""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(
        self, query: torch.Tensor, key_pages: torch.Tensor, value_pages: torch.Tensor, page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        keys, values = (pages[page_table].flatten(1, 2).transpose(1, 2) for pages in (key_pages, value_pages))
        seen = torch.arange(keys.shape[2], device=query.device) < lengths[:, None]
        groups = query.unflatten(1, (keys.shape[1], -1))
        return functional.scaled_dot_product_attention(
            groups, keys, values, attn_mask=seen[:, None, None].expand(-1, 1, groups.shape[2], -1)).flatten(1, 2)
