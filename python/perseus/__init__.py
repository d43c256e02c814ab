"""The Perseus client in a training process: see perseus.client, and perseus.adapters for frameworks."""

__version__ = "0.1.0"
