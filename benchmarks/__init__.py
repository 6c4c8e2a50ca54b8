"""What wfe costs, measured: `make bench` runs `python -m benchmarks`; see docs/performance.md."""
