"""What every bench needs: load, servers to put it on, yardsticks, and a verdict in ratios."""
