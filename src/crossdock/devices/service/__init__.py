"""The use cases of the devices slice, one class per group; one public method is one unit of work."""
