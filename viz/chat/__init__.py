"""The explorer and the numbers of a run in a chat: a server of the Model Context Protocol, on this computer
alone.

`attention-lens mcp` starts it; a program for chats does that by itself. `answers` has the numbers and knows
nothing of the protocol, `server` has the tools and the picture. It needs `anywidget_mcp` and `mcp`
(requirements-mcp.txt), and neither Streamlit nor a network.
"""
