"""The study of docs/dynamic_warmup.md: which methods train where, and what follows for the dynamic warmup."""
