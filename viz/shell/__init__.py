"""What every page calls: the frame, the controls, the run, plots and tables."""
