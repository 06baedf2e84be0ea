"""What every room shares: ids, values, commands, events, errors. Imports only msgspec."""
