"""The timeline against published times: programs rebuilt from their recipes, predicted, compared.

python -m benchmarks.model
"""
