"""Which backend `import nki` resolves to: the choice, the backends, the modules in sys.modules."""
