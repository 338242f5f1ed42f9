"""A subscriber at QoS 1 whose messages are acknowledged when their work is done."""
