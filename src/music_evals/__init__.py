"""How music models are judged: metrics, benchmarks and protocols for music generation."""

__version__ = "0.1.0"
