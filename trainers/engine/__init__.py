"""What every task shares: configuration, devices, data order, the train step, checkpoints and records."""
