"""Work outside a turn: doctor, history, intents, proposals, trace."""
