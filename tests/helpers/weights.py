"""A file of weights without a tensor, for a folder whose model nobody loads."""

# The length of the header, in eight bytes, and an empty header.
NO_TENSORS = b"\x02" + bytes(7) + b"{}"
