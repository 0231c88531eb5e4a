import torch

torch.set_num_threads(1)  # the tensors here are small, and threads that wait for each other are slow
