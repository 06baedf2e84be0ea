"""Commands: which may run unasked, judged word by word after a shell grammar has parsed them."""
