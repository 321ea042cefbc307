"""What the page of the feed-forward layers and the stream draws."""
