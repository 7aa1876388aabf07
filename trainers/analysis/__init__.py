"""The paper's look into a training run: gradient noise, moments, and update sizes at the iterations it asks for."""
