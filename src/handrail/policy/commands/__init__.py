"""Commands: which of them may run unasked, judged word by word once a shell grammar has read them."""
