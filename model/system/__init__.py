"""What this machine and its owner allow: settings, memory, deadlines, the queue, folders on disk."""
