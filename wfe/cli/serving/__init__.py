"""What `wfe serve` and `wfe schedule` do until they are stopped.

`process` keeps all of it going. What happens is told by `journal`, in lines, or on a terminal by `board`, and
to whoever has started the process by `supervisor`. `reloads` takes over what changes in the modules.
"""
