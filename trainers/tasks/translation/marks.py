"""The numbers that stand for no part of a text: padding, what is unknown, a sentence's beginning and its end."""

PAD, UNK, BOS, EOS = range(4)
