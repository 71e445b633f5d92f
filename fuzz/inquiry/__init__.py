"""What else is asked about a finding: of servers, of its oracle, of other builds."""
