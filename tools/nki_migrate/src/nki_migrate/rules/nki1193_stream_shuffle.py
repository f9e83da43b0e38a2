"""NKI1193: `nisa.nc_stream_shuffle` has its destination first."""

from nki_migrate.rewriting.operations.destination_arguments import into_given
from nki_migrate.rules.rule import Hooks

HOOKS = Hooks(
    calls={
        "nisa.nc_stream_shuffle": into_given(
            "NKI1193", "`nisa.nc_stream_shuffle` has its destination first"
        )
    }
)
