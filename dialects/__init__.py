"""The dialects of uopc: utensor (values), ukernel (plans and kernels), uloop (index ranges)."""
