"""What runs on the other side: sources that are sent into a sandbox, stdlib only.

Nothing here is imported by the rest of qualeval but to be read as text, or by tests; `launch`
enters the namespaces, `zygote` runs the programs.
"""
