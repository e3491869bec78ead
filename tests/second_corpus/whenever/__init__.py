"""Questions of time by the clock."""
