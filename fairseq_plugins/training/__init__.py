"""What trainings do beside what fairseq does: how they are launched, and how they end early."""
