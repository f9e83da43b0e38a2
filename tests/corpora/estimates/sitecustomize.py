"""What Python imports first where this folder is on PYTHONPATH."""

from launch_estimates import install

install()
