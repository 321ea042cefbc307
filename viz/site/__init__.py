"""The site: pages without a server, from runs that are recorded when it is built."""
