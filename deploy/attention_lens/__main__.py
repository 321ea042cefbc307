"""`python -m attention_lens`, and the command `attention-lens`."""

from viz.command.command import main

if __name__ == "__main__":
    main()
