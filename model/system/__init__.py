"""What this machine and its owner allow: settings, memory, deadlines, the queue, files on disk."""
