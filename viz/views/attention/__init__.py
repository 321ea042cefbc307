"""What stands under the explorer."""
