"""A model's whole answer as a solution: which of its code blocks is the one to evaluate. Reads text, runs nothing.

What counts as a block, beyond CommonMark's fences, because models write them so (`fences.py`, `scan.py`):

- A fence may be indented, stand behind a list's mark, in a quotation, or end a line of prose (if its language is a
  kernel's: Python, C++, CUDA); its block loses that indentation. A closing fence may be followed by a mark such as
  `<|im_end|>` or `</answer>`.
- A fence inside a triple-quoted string ends nothing, if the whole block is valid Python only with it.
- A block that was never closed ends where another opens with a language, or the reasoning ends.
- A `markdown` block is a wrapper: its blocks are read as if they stood outside. So is a block without a language, or of
  plain text, that isn't Python and holds a fence.
- What precedes the first fence (or follows the reasoning) is a block if it is Python that defines `ModelNew`: the
  answer is bare Python, or goes on where the prompt left a block open. Blank lines before it are left out.
- `<think>` at the start of a line begins reasoning and `</think>` ends it (also `thinking`, `thought`, `reasoning`). An
  end without a beginning makes everything before it reasoning, unless some reasoning had ended before: then it means
  nothing. Both count in prose only; a name in backticks and a string in valid Python are no tags.

Line ends become a single newline, as Python reads them anyway, and a byte order mark at the start is left out. What is
between the fences comes out unchanged otherwise. The tag of a block is not believed: what defines `ModelNew` is text
that Python could compile, with a class of that name at module level (also below `if` or `try`), or such a class under
another name and `ModelNew = Name`.

Which block is the answer (`choice.py`): the last closed one outside the reasoning that defines `ModelNew`; if there is
none, the last that isn't closed. Blocks are never joined.
"""

from inlinebench.response.blocks import Block, blocks
from inlinebench.response.choice import Chosen, NoSolution, choose, solutions

__all__ = ["Block", "Chosen", "NoSolution", "blocks", "choose", "solutions"]
