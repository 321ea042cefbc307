"""A site without a server: what it shows is made here, or computed by the reader's own browser."""
