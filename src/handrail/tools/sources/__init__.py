"""Sources: servers of the Model Context Protocol whose tools a model can use."""
