"""Whether a change that is said to keep behaviour does so, as far as it can be seen in the syntax trees."""
