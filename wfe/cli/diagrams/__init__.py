"""The steps of a workflow or an execution as a picture: what is in it, and what draws it.

`diagram` makes it, of boxes in stages. `characters` draws it on a terminal, `mermaid` for documents that draw
themselves, `svg` on paper, where `layout` has placed it.
"""
