"""Where a model is trained: on which device, in which numbers, by how many processes together."""
