"""Comments that the codemod reads and writes: suppressions and TODOs."""
