"""Which way to go where what is asked brings nothing new."""
