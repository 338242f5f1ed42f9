"""Crossdock: one self-hosted server for webhooks, an API gateway, devices, an inbox and data sync."""

__version__ = "0.1.0"
