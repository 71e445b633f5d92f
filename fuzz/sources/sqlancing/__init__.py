"""SQLancer as a program beside us: its jar, its options, its logs."""
