"""Native libFuzzer harnesses for the C of the patches: the file as an arm has it, without a server around it."""
