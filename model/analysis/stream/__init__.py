"""What sub-layers add: norms, activations, positions, gradients."""
