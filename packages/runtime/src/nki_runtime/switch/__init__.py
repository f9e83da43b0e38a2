"""The backend that `import nki` resolves to: its choice, and its modules in sys.modules."""
