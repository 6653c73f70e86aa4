"""What a varied cluster is made of: other hardware and other habits with every seed.

`habits` says what is drawn for a cluster as a whole, `hardware` what nodes have and what pods claim of it,
`population` who runs there and who waits.
"""
