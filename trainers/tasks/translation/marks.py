"""The numbers of the special tokens: padding, unknown, beginning of a sentence, end of a sentence."""

PAD, UNK, BOS, EOS = range(4)
