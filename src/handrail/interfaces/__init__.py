"""Ways in: each sends commands to the application and shows the events that follow."""
