"""What the kernel of the system stops the code of users from doing."""
