"""Finds the code block to evaluate in a language model's response. Parses text, and never runs it.

Models write more kinds of blocks than CommonMark's fences. These rules apply too (`fences.py`, `scan.py`):

- A fence may be indented, or follow a list marker or quotation marks, or end a line of prose (if its language is
  Python, C, C++ or CUDA). Its block loses that indentation. A closing fence may be followed by a tag such as
  `<|im_end|>` or `</answer>`.
- A fence inside a triple-quoted string does not close the block, if the block is valid Python only with it.
- An unclosed block ends at the next fence with a language, or at the end of the reasoning.
- A `markdown` block is a wrapper: its inner blocks are read as if they were outside. So is a block without a language,
  or of plain text, that is not Python and contains a fence.
- Text before the first fence, or after the reasoning, is a block if it is Python that defines `ModelNew`: the response
  is bare Python, or continues a block that the prompt opened. Blank lines before it are left out.
- `<think>` at the start of a line begins the reasoning and `</think>` ends it (also `thinking`, `thought` and
  `reasoning`). An end without a beginning makes everything before it reasoning, unless some reasoning had ended before;
  then it is ignored. Tags count only in prose, not as a name in backticks or a string in valid Python.

Line ends become a single newline, and a byte order mark at the start is left out. Otherwise the source is exactly the
text between the fences. The language of a block is ignored: a block defines `ModelNew` if it is valid Python with a
class of that name at module level (also inside `if` or `try`), or with such a class under another name and
`ModelNew = Name`.

The last closed block outside the reasoning that defines `ModelNew` is evaluated (`choice.py`). If there is none, the
last unclosed one is. Blocks are never joined.
"""

from inlinebench.response.blocks import Block, blocks
from inlinebench.response.choice import Chosen, NoSolution, choose, solutions

__all__ = ["Block", "Chosen", "NoSolution", "blocks", "choose", "solutions"]
