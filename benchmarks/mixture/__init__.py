"""What a mixed cluster is made of.

`recipe` says what is left out, `hardware` what nodes have and what of it is in use,
`shapes` what pods ask for, `servers` the nodes with what runs there, `arrivals` the pods that wait.
"""
