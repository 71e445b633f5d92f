"""Campaigns: execution of cases up to a time, a number or an interrupt, with a store from which they can be resumed."""
